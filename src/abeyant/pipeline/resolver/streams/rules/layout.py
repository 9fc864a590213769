"""The schemas of the rows that a stream with options sends to shards and keeps as state. See `streams.layout`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from abeyant.pipeline.resolver.streams.layout import OUTCOMES
from abeyant.tables import schemas as in_process

__all__ = [
    "AT",
    "COUNTED",
    "DETAILS",
    "EVENTS",
    "IDENTITY",
    "PLACE",
    "PROGRESS",
    "USES",
    "WAITS",
    "WIDTH",
    "Columns",
    "Use",
]

_TEXT, _LONG = pa.string(), pa.int64()

WAITS: Final = pa.schema(
    {
        "instance": _TEXT,
        "op_id": _TEXT,
        "kind": _TEXT,
        "condition": _TEXT,
        "start": _LONG,
        "deadline": _LONG,  # start + time-out, or the operation's `deadline`
        "extend": _LONG,  # microseconds by which an event extends; null: the time-out
        "watches": pa.list_(pa.struct({"key": _TEXT, "required": _LONG, "role": _TEXT})),
        "lacking": _LONG,  # progress still required after the events that served it; null: no event did
        "served": _LONG,  # number of events that served it
    }
)
"""Operations that wait, with all their watches. Times are in microseconds."""

EVENTS: Final = pa.schema({"instance": _TEXT, "key": _TEXT, "progress": _LONG, "at": _LONG})

DETAILS: Final = pa.schema([*OUTCOMES, *list(in_process.DETAILS)[len(OUTCOMES) :]])
"""The schema of outcomes with `details`."""

WIDTH: Final = 6
PLACE, IDENTITY, PROGRESS, AT, COUNTED, USES = range(WIDTH)
"""The columns of an event in the state: `COUNTED` is how many events it represents, `USES` has flags of `Use`."""


class Use:
    """Flags of an event in the state, which say what the event is kept for."""

    LINES: Final = 1  # may complete, cancel or extend
    LEVELS: Final = 2  # may pause
    SERVING: Final = 4  # may yet serve an operation
    SEEN: Final = 8  # has the time of its key's last event, for `forget_after`


@dataclass(frozen=True)
class Columns:
    """The features that the columns of `operations` allow, whatever values they hold."""

    several_keys: bool
    """An operation may watch more than one key."""
    deadline: bool
    """The time-out is given as a `deadline`, a point in time."""
    roles: bool
    """A watch may have a role: cancel or extend."""
    pauses: bool

    def described(self) -> str:
        """Return a description, which a checkpoint keeps to refuse other columns."""
        said = ("several keys" if self.several_keys else "one key", *(n for n in _NAMES if getattr(self, n)))
        return ", ".join(said)


_NAMES: Final = ("deadline", "roles", "pauses")
