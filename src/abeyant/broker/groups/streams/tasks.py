"""Tasks of a Kafka Streams application, and sets of them.

A task processes one partition of each source topic of a subtopology. An active task does the work; a standby task
keeps a copy of its state. Warm-up tasks are not assigned, as in Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from abeyant.broker.wire.schema import Message

Task = tuple[str, int]
"""A subtopology's id and a partition's index."""

TaskSet = frozenset[Task]


class Tasks(NamedTuple):
    """The tasks of a member by role, active or standby."""

    active: TaskSet = frozenset()
    standby: TaskSet = frozenset()

    def overlaps(self, other: Tasks) -> bool:
        """Return whether some task is also in `other`, in the same role."""
        return bool(self.active & other.active or self.standby & other.standby)

    def within(self, other: Tasks) -> bool:
        """Return whether all tasks are in `other`, in the same role."""
        return self.active <= other.active and self.standby <= other.standby

    def without(self, other: Tasks) -> Tasks:
        """Return the tasks that are not in `other` in the same role."""
        return Tasks(self.active - other.active, self.standby - other.standby)


NO_TASKS = Tasks()


def read_tasks(rows: Iterable[Any] | None) -> TaskSet:
    """Return the tasks in a message's rows, one for each subtopology."""
    return frozenset((row.subtopology_id, index) for row in rows or () for index in row.partitions)


def task_rows(tasks: TaskSet, **fields: Any) -> list[Message]:
    """Return one row of a message per subtopology, sorted by its id.

    Each of `fields` is a function that computes a further field of a row from the tasks of its subtopology.
    """
    found = [(name, list(rows)) for name, rows in groupby(sorted(tasks), itemgetter(0))]
    return [
        Message(
            subtopology_id=name,
            partitions=[index for _, index in rows],
            **{field: value(rows) for field, value in fields.items()},
        )
        for name, rows in found
    ]
