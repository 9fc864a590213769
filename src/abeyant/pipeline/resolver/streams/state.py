"""The state of a shard as one value, with its version: a layout that is not known is refused, never guessed at.

version   of all that follows
state     length of the head, the head (JSON, padded to eight bytes), steps (four 64-bit integers each), watches (Arrow)
"""

from __future__ import annotations

import json
import struct
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from abeyant.errors import AbeyantError
from abeyant.former import written_before
from abeyant.pipeline.resolver.streams.clock import Clock
from abeyant.pipeline.resolver.streams.layout import WATCHES, joined, rows_from, rows_to
from abeyant.pipeline.resolver.streams.options import Deadline, Options
from abeyant.tables.words import Words

__all__ = [
    "STATE",
    "VERSION",
    "WORDS_VERSION",
    "ShardState",
    "StateError",
    "deadline_of",
    "decode_shard",
    "encode_shard",
    "fixed_options",
    "read_head",
    "write_state",
]

STATE: Final = "version int, state binary"

_BEFORE: Final = 1
"""The one version that the project wrote under its former name."""

VERSION: Final = 2
"""Version of a shard's encoded state. Increase it with every change below, or of a schema in `layout`."""

WORDS_VERSION: Final = 101
"""That of the state of a shard with words (`words.state`)."""

_LENGTH: Final = struct.Struct("<q")
_WORD: Final = 8

# What decides where a row goes and what its outcome is, so it cannot change while anything waits.
_FIXED: Final = ("shards", "deadline", "time")
_WORDS: Final = ("count", "combine", "holds", "serves", "within", "calendar", "details")
_PLAIN: Final = {name: getattr(Words(), name) for name in _WORDS} | {"columns": "no words"}


class StateError(AbeyantError):
    """A checkpoint's state cannot be continued: it has another layout, or was made with other options."""


@dataclass(frozen=True)
class ShardState:
    """What a shard remembers between batches.

    `steps` are rows of (place, identity, progress, at): the staircase of each key, of which all that lies below the
    watermark is one step. `watches` are those that are pending.
    """

    clock: Clock
    watches: pa.RecordBatch
    steps: NDArray[np.int64]

    @classmethod
    def first(cls) -> ShardState:
        """Return the state before the first batch."""
        return cls(Clock(), joined([], WATCHES), np.empty((0, 4), np.int64))


def encode_shard(state: ShardState, options: Options) -> tuple[int, bytes]:
    """Return the row of `STATE` of a shard."""
    head = {"options": fixed_options(options), "clock": asdict(state.clock), "steps": len(state.steps)}
    return VERSION, write_state(head, state.steps.tobytes(), rows_to(state.watches))


def decode_shard(version: int, state: bytes, options: Options | None) -> ShardState:
    """Read the row of `STATE` of a shard.

    Raises `StateError`, with what was found and what was expected, for another version, or where `options` are given
    and those that are fixed by a checkpoint's first run differ.
    """
    head, begin = read_head(version, state, VERSION, options)
    end = begin + head["steps"] * 4 * _WORD
    steps = np.frombuffer(state, np.int64, head["steps"] * 4, begin).reshape(-1, 4)
    return ShardState(Clock(**head["clock"]), rows_from(pa.py_buffer(state)[end:], WATCHES), steps)


def fixed_options(options: Options) -> dict[str, Any]:
    """Return what cannot change while a checkpoint is used, in JSON's types."""
    fixed = {name: getattr(options, name) for name in _FIXED}
    if options.columns is None:
        return fixed
    words = {name: getattr(options.words, name) for name in _WORDS}
    calendar = options.words.calendar
    return fixed | words | {"calendar": calendar and repr(calendar), "columns": options.columns.described()}


def read_head(version: int, state: bytes, expected: int, options: Options | None) -> tuple[dict[str, Any], int]:
    """Return the head of a state, and where what follows it begins. Raises as `decode_shard`."""
    if version not in (VERSION, WORDS_VERSION):
        _check_version(version)
    head, begin = _head(state)
    if options is not None:
        _check_options(head["options"], options)
    if version != expected:
        _check_version(version)
    return head, begin


def write_state(head: dict[str, Any], *parts: Any) -> bytes:
    """Return a state: its head, and what follows."""
    encoded = json.dumps(head).encode()
    encoded += b" " * (-len(encoded) % _WORD)
    return b"".join((_LENGTH.pack(len(encoded)), encoded, *parts))


def deadline_of(state: bytes) -> Deadline:
    """Return which deadlines a state was made with."""
    found: Deadline = _head(state)[0]["options"]["deadline"]
    return found


def _head(state: bytes) -> tuple[dict[str, Any], int]:
    """Return the head, and where what follows it begins."""
    (length,) = _LENGTH.unpack_from(state)
    begin = _LENGTH.size + length
    return json.loads(state[_LENGTH.size : begin]), begin


def _check_version(found: int) -> None:
    if found == _BEFORE:
        raise StateError(
            str(written_before("the checkpoint", "begin a new checkpoint, and another place for the result"))
        )
    if found != VERSION:
        raise StateError(
            f"the checkpoint's state has layout version {found}, expected {VERSION}: go on with the release of "
            "abeyant that wrote it, or end its input there and begin a new checkpoint"
        )


def _check_options(found: dict[str, Any], options: Options) -> None:
    found, expected = _PLAIN | found, _PLAIN | fixed_options(options)
    for name, given in expected.items():
        if found[name] != given:
            raise StateError(
                f"the checkpoint was begun with {name}={found[name]!r}, not {given!r}: give the same again, "
                "or begin a new checkpoint"
            )
