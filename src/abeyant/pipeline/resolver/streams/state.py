"""Encode a shard's state as one value with a version; a state of an unknown version is refused.

version   the version of this layout
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
from abeyant.pipeline.resolver.streams.layout import WATCHES, joined, pack_rows, unpack_rows
from abeyant.pipeline.resolver.streams.options import Deadline, Options
from abeyant.tables.rules import Rules

__all__ = [
    "RULES_VERSION",
    "STATE",
    "VERSION",
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
"""The only version that the project wrote under its former name."""

VERSION: Final = 2
"""Version of a shard's encoded state. Increase it when anything below, or a schema in `layout`, changes."""

RULES_VERSION: Final = 101
"""Version of the encoded state of a shard with rules (`rules.state`)."""

_LENGTH: Final = struct.Struct("<q")
_WORD: Final = 8

# These options decide to which shard a row is sent and its outcome, so they must not change while a checkpoint is used.
_FIXED: Final = ("shards", "deadline", "time")
_RULES: Final = ("count", "combine", "holds", "serves", "within", "calendar", "details")
_PLAIN: Final = {name: getattr(Rules(), name) for name in _RULES} | {"columns": "no rules"}


class StateError(AbeyantError):
    """A checkpoint's state cannot be continued: it has another layout, or was made with other options."""


@dataclass(frozen=True)
class ShardState:
    """A shard's state between batches.

    `steps` are rows of (place, identity, progress, at): the staircase of each key, with one step for all events below
    the watermark. `watches` are the pending watches.
    """

    clock: Clock
    watches: pa.RecordBatch
    steps: NDArray[np.int64]

    @classmethod
    def first(cls) -> ShardState:
        """Return the state before the first batch."""
        return cls(Clock(), joined([], WATCHES), np.empty((0, 4), np.int64))


def encode_shard(state: ShardState, options: Options) -> tuple[int, bytes]:
    """Encode a shard's state as a row of `STATE`."""
    head = {"options": fixed_options(options), "clock": asdict(state.clock), "steps": len(state.steps)}
    return VERSION, write_state(head, state.steps.tobytes(), pack_rows(state.watches))


def decode_shard(version: int, state: bytes, options: Options | None) -> ShardState:
    """Decode a shard's state from a row of `STATE`.

    Raises `StateError`, with the value found and the value expected, for another version, and for `options` that differ
    from the options of the checkpoint's first run.
    """
    head, begin = read_head(version, state, VERSION, options)
    end = begin + head["steps"] * 4 * _WORD
    steps = np.frombuffer(state, np.int64, head["steps"] * 4, begin).reshape(-1, 4)
    return ShardState(Clock(**head["clock"]), unpack_rows(pa.py_buffer(state)[end:], WATCHES), steps)


def fixed_options(options: Options) -> dict[str, Any]:
    """Return the options that must not change while a checkpoint is used, in types of JSON."""
    fixed = {name: getattr(options, name) for name in _FIXED}
    if options.columns is None:
        return fixed
    rules = {name: getattr(options.rules, name) for name in _RULES}
    calendar = options.rules.calendar
    return fixed | rules | {"calendar": calendar and repr(calendar), "columns": options.columns.described()}


def read_head(version: int, state: bytes, expected: int, options: Options | None) -> tuple[dict[str, Any], int]:
    """Return the head of a state, and the offset of the rest in bytes. Raises `StateError` as `decode_shard` does."""
    if version not in (VERSION, RULES_VERSION):
        _check_version(version)
    head, begin = _head(state)
    if options is not None:
        _check_options(head["options"], options)
    if version != expected:
        _check_version(version)
    return head, begin


def write_state(head: dict[str, Any], *parts: Any) -> bytes:
    """Return an encoded state: the head, then the parts."""
    encoded = json.dumps(head).encode()
    encoded += b" " * (-len(encoded) % _WORD)
    return b"".join((_LENGTH.pack(len(encoded)), encoded, *parts))


def deadline_of(state: bytes) -> Deadline:
    """Return the option `deadline` that a state was made with."""
    deadline: Deadline = _head(state)[0]["options"]["deadline"]
    return deadline


def _head(state: bytes) -> tuple[dict[str, Any], int]:
    """Return the head, and the offset of the rest in bytes."""
    (length,) = _LENGTH.unpack_from(state)
    begin = _LENGTH.size + length
    return json.loads(state[_LENGTH.size : begin]), begin


def _check_version(version: int) -> None:
    if version == _BEFORE:
        raise StateError(
            str(written_before("the checkpoint", "begin a new checkpoint, and another place for the result"))
        )
    if version != VERSION:
        raise StateError(
            f"the checkpoint's state has layout version {version}, expected {VERSION}: continue with the release of "
            "abeyant that wrote it, or end its input there and begin a new checkpoint"
        )


def _check_options(stored: dict[str, Any], options: Options) -> None:
    stored, expected = _PLAIN | stored, _PLAIN | fixed_options(options)
    for name, value in expected.items():
        if stored[name] != value:
            raise StateError(
                f"the checkpoint was begun with {name}={stored[name]!r}, not {value!r}: give the first value again, "
                "or begin a new checkpoint"
            )
