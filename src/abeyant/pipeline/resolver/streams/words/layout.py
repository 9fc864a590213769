"""What travels to a shard of a stream with words, and stays in its state. See `streams.layout`."""

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
        "deadline": _LONG,  # start + time-out, or the instant
        "extend": _LONG,  # null: the time-out
        "watches": pa.list_(pa.struct({"key": _TEXT, "required": _LONG, "role": _TEXT})),
        "lacking": _LONG,  # what is required after the events that have served it; null: none has
        "served": _LONG,  # how many have
    }
)
"""Operations, whole. Times in microseconds."""

EVENTS: Final = pa.schema({"instance": _TEXT, "key": _TEXT, "progress": _LONG, "at": _LONG})

DETAILS: Final = pa.schema([*OUTCOMES, *list(in_process.DETAILS)[len(OUTCOMES) :]])
"""The outcomes with `details`."""

WIDTH: Final = 6
PLACE, IDENTITY, PROGRESS, AT, COUNTED, USES = range(WIDTH)
"""The columns of an event in the state: `COUNTED` is the number of events it represents, `USES` flags of `Use`."""


class Use:
    """What an event in the state is for."""

    LINES: Final = 1  # completes, cancels or extends
    LEVELS: Final = 2  # pauses
    SERVING: Final = 4  # may yet serve an operation
    SEEN: Final = 8  # says when something last happened on its key


@dataclass(frozen=True)
class Columns:
    """What the columns of `operations` make possible, whatever is in them."""

    several_keys: bool
    """An operation may watch more than one key."""
    deadline: bool
    """The time-out is given as a `deadline`, a point in time."""
    roles: bool
    """A watch may cancel or extend."""
    pauses: bool

    def described(self) -> str:
        """Return this in words: what a checkpoint says that it was begun with."""
        said = ("several keys" if self.several_keys else "one key", *(n for n in _NAMES if getattr(self, n)))
        return ", ".join(said)


_NAMES: Final = ("deadline", "roles", "pauses")
