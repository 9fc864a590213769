"""Operations that name several keys, in shards: what Spark does with `Shards`, in this process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

from abeyant import tables as in_process
from abeyant.pipeline.resolver.tables import by_rules
from abeyant.pipeline.resolver.tables.by_rules import Shards
from abeyant.tables.keys import draw_seed
from abeyant.tables.rules import Rules
from pipeline.resolver.tables.test_rules import rows_of

TIME = pa.timestamp("us", "UTC")
WATCHES = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64())]))


def world(dice: random.Random, size: int) -> tuple[pa.Table, pa.Table]:
    """Return operations and events. One key is named by half of the operations, whatever completes them."""
    keys = ["shared", *(f"{n}" for n in range(30))]
    weights = [30, *[1] * 30]

    def further() -> list[str | None]:
        return [None if dice.random() < 0.3 else key for key in dice.choices(keys, weights, k=size)]

    watches = [
        [{"key": key, "required": dice.randint(0, 4)} for key in dice.sample(keys, dice.randint(1, 3))]
        for _ in range(size)
    ]
    operations = {
        "instance": pa.array(dice.choices(["x", "y"], k=size)),
        "op_id": pa.array([f"{n}" for n in range(size)]),
        "kind": pa.nulls(size, pa.string()),
        "start": pa.array([dice.randrange(40) for _ in range(size)], TIME),
        "timeout": pa.array([dice.randint(0, 9) for _ in range(size)], pa.duration("us")),
        "condition": pa.array([dice.choice(["all", "any", None]) for _ in range(size)]),
        "watches": pa.array(watches, WATCHES),
        **{name: pa.array(further(), pa.string()) for name in ("cancel_key", "extend_key", "pause_key")},
    }
    events = {
        "instance": pa.array(dice.choices(["x", "y", "nobody's"], k=4 * size)),
        "key": pa.array(dice.choices([*keys, "unknown"], k=4 * size)),
        "progress": pa.array([dice.randint(-1, 4) for _ in range(4 * size)], pa.int64()),
        "at": pa.array([dice.randint(-3, 60) for _ in range(4 * size)], TIME),
    }
    return pa.table(operations), pa.table(events)


def shuffled(chunks: list[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Bring the values of a shard together, kind by kind, as a task of Spark gets them."""
    rows = sorted(row for chunk in chunks for row in zip(*chunk.to_pydict().values(), strict=True))
    schema = pa.schema([("shard", pa.int32()), ("kind", pa.int32()), ("packed", pa.binary())])
    for begin in range(0, len(rows), 50):
        columns = zip(*rows[begin : begin + 50], strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


@pytest.mark.parametrize("seed", range(4))
def test_events_go_to_each_home_that_needs_them_once(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_rules, "_EVENTS_AT_ONCE", 7)
    dice = random.Random(seed)
    operations, events = world(dice, 300)
    given: Any = dice.choice([{"combine": "sum"}, {"count": "after_start"}, {"combine": "last"}]) | {"details": True}
    shards = Shards(draw_seed(), dice.choice([8, 256]), Rules(**given))
    packed = [
        *shards.pack_operations(iter(operations.to_batches(97)), needs=True),
        *shards.pack_events(iter(events.to_batches(89))),
    ]
    forwarded = list(shards.forward(shuffled(packed)))
    places = [
        (shard, bytes(row))
        for chunk in forwarded
        for shard, kind, value in zip(*chunk.to_pydict().values(), strict=True)
        if kind == 1
        for row in by_rules._rows([value])
    ]
    sent = {key: len(list(same)) for key, same in groupby(sorted(places))}
    rows = events.to_pylist()
    assert max(sent.values()) <= max(rows.count(row) for row in rows), "no event goes to one home twice"
    found = pa.Table.from_batches(list(shards.resolve(shuffled(forwarded))))
    assert rows_of(found) == rows_of(in_process.resolve(operations, events, **given)), given
