"""Hot keys of calls with rules, cut along the time: the same outcomes, and shards as even as the rows allow."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from abeyant import pipeline
from abeyant import tables as in_process
from abeyant.pipeline.resolver.tables import by_rules
from abeyant.pipeline.resolver.tables.by_rules import Shards
from abeyant.pipeline.resolver.tables.hot_keys import Sample
from abeyant.pipeline.resolver.tables.hot_times import HotTime, find_hot_times, may_be_cut
from abeyant.tables.keys import PairHash, draw_seed
from abeyant.tables.rules import Rules
from pipeline.resolver.tables.test_rules import rows_of

TIME = pa.timestamp("us", "UTC")
CUT: list[dict[str, Any]] = [
    {"count": count, "combine": combine, "holds": holds, "deadline": deadline}
    for count in ("always", "from_start", "after_start")
    for combine in ("max", "sum", "last")
    for holds in ("ever", "at_deadline")
    for deadline in ("inclusive", "exclusive")
]


def world(dice: random.Random, size: int, span: int, longest: int, others: int = 10) -> tuple[pa.Table, ...]:
    """Return operations and events, half of them of one key, at few instants."""
    keys = ["hot", *(f"{n}" for n in range(others))]
    weights = [others, *[1] * others]
    waits = {
        "instance": [""] * size,
        "op_id": [f"{n}" for n in range(size)],
        "key": dice.choices(keys, weights, k=size),
        "required": [dice.randint(0, 6) for _ in range(size)],
        "start": [dice.randrange(span) for _ in range(size)],
        "timeout": [dice.randint(0, longest) for _ in range(size)],
        "condition": [dice.choice(["all", "any", None]) for _ in range(size)],
    }
    events = {
        "instance": [""] * 2 * size,
        "key": dice.choices(keys, weights, k=2 * size),
        "at": [dice.randint(-3, span + longest) for _ in range(2 * size)],
        "progress": [dice.randint(-3, 4) for _ in range(2 * size)],
    }
    kinds: dict[str, pa.DataType] = {"start": TIME, "at": TIME, "timeout": pa.duration("us"), "required": pa.int64()}
    return tuple(
        pa.table({name: pa.array(values, kinds.get(name)) for name, values in table.items()})
        for table in (waits, events)
    )


class Cut:
    """What Spark does with `Shards`, in this process: pack in chunks, bring each shard's values together, resolve."""

    def __init__(self, rules: Rules, cuts: list[int], longest: int) -> None:
        seed = draw_seed()
        texts = (pa.chunked_array([pa.array([text])]) for text in ("", "hot"))
        place, identity = (int(hashes[0]) for hashes in PairHash(seed)(*texts))
        hot = [HotTime(place, identity, np.array(cuts, np.int64), longest)] if cuts else []
        self.shards = Shards(seed, 256, rules, tuple(hot))

    def packed(self, operations: pa.Table, events: pa.Table) -> list[tuple[int, int, bytes]]:
        chunks = [
            *self.shards.pack_operations(iter(operations.to_batches(97)), needs=False),
            *self.shards.pack_events(iter(events.select(["instance", "key", "progress", "at"]).to_batches(89))),
        ]
        return sorted(row for chunk in chunks for row in zip(*chunk.to_pydict().values(), strict=True))

    def outcomes(self, operations: pa.Table, events: pa.Table) -> pa.Table:
        return pa.Table.from_batches(list(self.shards.resolve(_batches(self.packed(operations, events)))))


def _batches(rows: list[tuple[int, int, bytes]]) -> Iterator[pa.RecordBatch]:
    for _, some in groupby(rows, key=lambda row: row[0]):
        shard, kind, packed = zip(*some, strict=True)
        yield pa.RecordBatch.from_arrays(
            [pa.array(shard, pa.int32()), pa.array(kind, pa.int32()), pa.array(packed, pa.binary())],
            ["shard", "kind", "packed"],
        )


@pytest.mark.parametrize("seed", range(6))
def test_cuts_change_no_outcome(seed: int) -> None:
    dice = random.Random(seed)
    operations, events = world(dice, 300, span=40, longest=6)
    for given in CUT[seed::6]:
        rules = Rules(**given)
        assert may_be_cut(rules)
        cuts = sorted(dice.sample(range(1, 40), dice.randint(1, 8)))
        found = Cut(rules, cuts, longest=6).outcomes(operations, events)
        assert rows_of(found) == rows_of(in_process.resolve(operations, events, **given)), (given, cuts)


def test_details_of_what_came_after_the_start_may_be_cut() -> None:
    operations, events = world(random.Random(1), 300, span=40, longest=6)
    for count in ("from_start", "after_start"):
        rules: dict[str, Any] = {"count": count, "combine": "sum", "details": True}
        found = Cut(Rules(**rules), [10, 20], longest=6).outcomes(operations, events)
        assert rows_of(found) == rows_of(in_process.resolve(operations, events, **rules))


def test_what_needs_the_whole_key_is_not_cut() -> None:
    calendar = in_process.Calendar("Mon-Fri 09:00-17:00")
    refused: list[dict[str, Any]] = [
        {"serves": "oldest"},
        {"serves": "newest"},
        {"calendar": calendar},
        {"details": True},
    ]
    assert not any(may_be_cut(Rules(**given)) for given in refused)


def test_the_shards_of_a_key_with_half_of_the_rows_are_even() -> None:
    """The greatest shard holds some pieces of what there is, and before the cuts half of it."""
    operations, events = world(random.Random(2), 20_000, span=100_000, longest=1_000, others=2_000)
    rows = 60_000
    sizes = {}
    for cuts in ([], list(range(4_000, 100_000, 4_000))):
        by_shard = np.zeros(256)
        for shard, kind, packed in Cut(Rules(count="after_start"), cuts, 1_000).packed(operations, events):
            by_shard[shard] += len(packed) / 32 if kind == 1 else pa.ipc.open_stream(packed).read_all().num_rows
        sizes[len(cuts)] = by_shard
    assert sizes[0].max() > rows * 0.49
    assert sizes[24].max() < rows / 2 / 25 * 1.5 + rows / 100
    assert sizes[24].sum() < sizes[0].sum() * 1.15, "an event goes to two pieces at most, and most go to one"


@pytest.mark.slow  # once more on Spark
def test_on_spark_hot_keys_are_found_and_cut(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    operations, events = world(random.Random(3), 400, span=4_000, longest=60)
    operations = operations.append_column("again", operations["start"])
    seen: list[HotTime] = []

    def note(*given: Any) -> list[HotTime]:
        seen[:] = find_hot_times(*given)
        return seen

    monkeypatch.setattr(by_rules, "find_hot_times", note)
    frames = [spark.createDataFrame(table).repartition(2) for table in (operations, events)]
    some: list[dict[str, Any]] = [{"combine": "sum"}, {"count": "after_start", "details": True}]
    for rules in some:
        found = pipeline.resolve(*frames, **rules, sample=Sample(0.5, 40))
        assert rows_of(found) == rows_of(in_process.resolve(operations, events, **rules))
        (hot,) = seen
        assert hot.longest == 60
        assert 5 < len(hot.cuts) < 34
        assert np.diff(hot.cuts).min() >= 120
    pipeline.resolve(*frames, serves="oldest", sample=Sample(0.5, 40))
    assert len(seen) == 1, "it was not called again"
