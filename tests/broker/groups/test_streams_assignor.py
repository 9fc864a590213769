"""The sticky assignor of streams groups."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from abeyant.broker.groups.streams.assignor import assign
from abeyant.broker.groups.streams.tasks import NO_TASKS, Tasks

PROCESSES = st.dictionaries(st.sampled_from("abcdefgh"), st.sampled_from("xyz"), min_size=1)
COUNTS = st.dictionaries(st.sampled_from(["0", "1", "2"]), st.integers(1, 7), min_size=1)


@given(PROCESSES, PROCESSES, COUNTS, st.sets(st.sampled_from(["0", "1", "2"])), st.integers(0, 3))
def test_each_task_is_active_once_and_copied_elsewhere(
    first: dict[str, str], processes: dict[str, str], counts: dict[str, int], stateful: set[str], standbys: int
) -> None:
    present = assign(first, counts, stateful, standbys, {})
    found = assign(processes, counts, stateful, standbys, present)
    tasks = {(name, index) for name, count in counts.items() for index in range(count)}
    assert found.keys() == processes.keys()
    assert Counter(task for one in found.values() for task in one.active) == Counter(tasks)
    for task in tasks:
        where = [
            processes[member] for member, one in found.items() for held in (one.active, one.standby) if task in held
        ]
        assert len(set(where)) == len(where), "a process has a task once"
        copies = min(standbys, len(set(processes.values())) - 1) if task[0] in stateful else 0
        assert len(where) == 1 + copies
    if len(set(processes.values())) == 1:
        sizes = [len(one.active) for one in found.values()]
        assert max(sizes) - min(sizes) <= 1
    assert assign(dict(reversed(processes.items())), counts, stateful, standbys, present) == found


@given(PROCESSES, COUNTS)
def test_nothing_moves_without_a_reason(processes: dict[str, str], counts: dict[str, int]) -> None:
    before = assign(processes, counts, counts, 1, {})
    after = assign(processes, counts, counts, 1, before)
    assert {member: one.active for member, one in after.items()} == {
        member: one.active for member, one in before.items()
    }


def test_a_standby_copy_becomes_the_active_task() -> None:
    present = {
        "a": Tasks(frozenset({("0", 0)})),
        "b": Tasks(frozenset({("0", 1)}), frozenset({("0", 0)})),
        "c": NO_TASKS,
    }
    found = assign({"b": "x", "c": "y"}, {"0": 2}, {"0"}, 0, present)
    assert found["b"].active == {("0", 1)}, "it has its share"
    found = assign({"b": "x"}, {"0": 2}, {"0"}, 0, present)
    assert found["b"].active == {("0", 0), ("0", 1)}
    present = {"b": Tasks(frozenset(), frozenset({("0", 1)})), "c": NO_TASKS}
    assert assign({"b": "x", "c": "y"}, {"0": 2}, {"0"}, 0, present)["b"].active == {("0", 1)}
