"""The assignor of streams groups, `sticky`: tasks stay where they are as far as the load stays even.

An active task goes to the member that had it, else to a member with a standby copy, else to the least loaded process.
A standby task goes to a process that does not have the task. Deterministic, whatever the order of its input.
Kafka: `StickyTaskAssignor`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from abeyant.broker.groups.streams.tasks import NO_TASKS, Task, Tasks


def assign(
    processes: Mapping[str, str],
    counts: Mapping[str, int],
    stateful: Collection[str],
    standbys: int,
    present: Mapping[str, Tasks],
) -> dict[str, Tasks]:
    """Return each member's tasks. O(tasks x processes).

    `processes` are the process ids by member id, `counts` the numbers of tasks by subtopology. Tasks of the
    subtopologies in `stateful` have `standbys` standby copies. `present` is the previous target assignment.
    """
    return _Assignment(processes, counts, stateful, standbys, present).run() if processes else {}


class _Quota:
    """The number of tasks that a member may keep: an even share of the tasks that full members do not have."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks, self._members = tasks, members
        self._share()

    def _share(self) -> None:
        self.each = -(-self._tasks // self._members) if self._members else 0

    def took(self, count: int) -> None:
        """Recompute the quota of the other members if a member that now has `count` tasks has reached the quota."""
        if count == self.each:
            self._members -= 1
            self._tasks -= count
            self._share()


class _Assignment:
    def __init__(
        self,
        processes: Mapping[str, str],
        counts: Mapping[str, int],
        stateful: Collection[str],
        standbys: int,
        present: Mapping[str, Tasks],
    ) -> None:
        self._process = processes
        self._standbys = standbys
        self._active_tasks = [(name, index) for name, count in counts.items() for index in range(count)]
        self._stateful_tasks = [task for task in self._active_tasks if task[0] in stateful]
        self._active: dict[str, set[Task]] = {member: set() for member in sorted(processes)}
        self._standby: dict[str, set[Task]] = {member: set() for member in sorted(processes)}
        self._members: dict[str, list[str]] = defaultdict(list)  # of each process
        self._held: dict[str, set[Task]] = defaultdict(set)  # by each process
        self._had_active: dict[Task, str] = {}
        self._had_standby: dict[Task, list[str]] = defaultdict(list)
        for member in sorted(processes):
            self._members[processes[member]].append(member)
            previous = present.get(member, NO_TASKS)
            self._had_active.update(dict.fromkeys(previous.active, member))
            for task in previous.standby:
                self._had_standby[task].append(member)
        active = len(self._active_tasks)
        self._active_quota = _Quota(active, len(processes))
        self._quota = _Quota(active + standbys * len(self._stateful_tasks), len(processes))

    def run(self) -> dict[str, Tasks]:
        self._assign_active()
        for _ in range(self._standbys):
            self._assign_standby()
        return {
            member: Tasks(frozenset(self._active[member]), frozenset(self._standby[member])) for member in self._active
        }

    def _assign_active(self) -> None:
        remaining = sorted(self._active_tasks, key=lambda task: (task[1], task[0]))
        for previous in (self._had_active_before, self._had_standby_before):
            unassigned = []
            for task in remaining:
                member = previous(task)
                if member is not None and self._size(member) < self._active_quota.each:
                    self._give(member, task, self._active)
                else:
                    unassigned.append(task)
            remaining = unassigned
        for task in sorted(remaining):
            process = min(sorted(self._members), key=self._load)
            self._give(self._least_loaded(process), task, self._active)

    def _assign_standby(self) -> None:
        """Assign one more standby copy of each stateful task."""
        remaining = []
        for task in sorted(self._stateful_tasks, key=lambda task: (task[1], task[0]), reverse=True):
            candidates = [self._had_active.get(task), *sorted(self._had_standby[task], key=self._member_load)]
            free = [member for member in candidates if member is not None and self._may_copy(member, task)]
            if free:
                self._give(free[0], task, self._standby)
            else:
                remaining.append(task)
        for task in sorted(remaining, reverse=True):
            processes = [process for process in sorted(self._members) if task not in self._held[process]]
            if processes:  # else there are more copies than processes
                self._give(self._least_loaded(min(processes, key=self._load)), task, self._standby)

    def _had_active_before(self, task: Task) -> str | None:
        return self._had_active.get(task)

    def _had_standby_before(self, task: Task) -> str | None:
        return min(self._had_standby[task], key=self._member_load, default=None)

    def _may_copy(self, member: str, task: Task) -> bool:
        return task not in self._held[self._process[member]] and self._size(member) < self._quota.each

    def _give(self, member: str, task: Task, to: dict[str, set[Task]]) -> None:
        to[member].add(task)
        self._held[self._process[member]].add(task)
        if to is self._active:
            self._active_quota.took(self._size(member))
        self._quota.took(self._size(member))

    def _size(self, member: str) -> int:
        return len(self._active[member]) + len(self._standby[member])

    def _load(self, process: str) -> float:
        members = self._members[process]
        return sum(map(self._size, members)) / len(members)

    def _member_load(self, member: str) -> tuple[float, int, str]:
        return self._load(self._process[member]), self._size(member), member

    def _least_loaded(self, process: str) -> str:
        return min(self._members[process], key=lambda member: (self._size(member), member))
