"""Encode the state of a shard with options as one value. See `streams.state`.

state     the head (JSON), events (six 64-bit integers each), operations (Arrow)
"""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pyarrow as pa

from abeyant.pipeline.resolver.streams.clock import Clock
from abeyant.pipeline.resolver.streams.layout import pack_rows, unpack_rows
from abeyant.pipeline.resolver.streams.options import Options
from abeyant.pipeline.resolver.streams.rules.layout import WAITS, WIDTH
from abeyant.pipeline.resolver.streams.rules.step import RulesState
from abeyant.pipeline.resolver.streams.state import RULES_VERSION, fixed_options, read_head, write_state

__all__ = ["decode_rules", "encode_rules"]


def encode_rules(state: RulesState, options: Options) -> tuple[int, bytes]:
    """Encode a shard's state as a row of `streams.state.STATE`."""
    head = {
        "options": fixed_options(options),
        "clock": asdict(state.clock),
        "seed": state.seed.hex(),
        "events": len(state.events),
    }
    return RULES_VERSION, write_state(head, state.events.tobytes(), pack_rows(state.operations))


def decode_rules(version: int, state: bytes, options: Options | None) -> RulesState:
    """Decode a shard's state from a row. Raises `StateError` as `streams.state.decode_shard` does."""
    head, begin = read_head(version, state, RULES_VERSION, options)
    integers = head["events"] * WIDTH
    events = np.frombuffer(state, np.int64, integers, begin).reshape(-1, WIDTH)
    operations = unpack_rows(pa.py_buffer(state)[begin + integers * events.itemsize :], WAITS)
    return RulesState(Clock(**head["clock"]), bytes.fromhex(head["seed"]), operations, events)
