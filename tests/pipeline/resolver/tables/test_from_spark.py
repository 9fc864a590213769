"""Tables that Spark reads: what goes to Python's workers, what these pack, and how hot keys are cut of it."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from abeyant import pipeline
from abeyant.kernels.resolve import Staircases
from abeyant.pipeline.resolver.tables import from_spark
from abeyant.pipeline.resolver.tables.from_spark import _pack_events, _pack_operations
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE, Sample
from abeyant.pipeline.resolver.tables.packing import (
    ALONE,
    COARSE,
    COMBINED,
    CONDITION,
    EVENTS,
    IS_ONE,
    KINDS,
    NTH,
    ORDERS,
    PROFILE,
    RIVALS,
    SHARDS,
    shards_of,
    unpacked_events,
    unpacked_operations,
)
from abeyant.pipeline.resolver.tables.profile import DIRECT, SLOW, _merge, marks_of
from abeyant.pipeline.resolver.tables.reaching import cut_hot_keys, first_reached
from abeyant.pipeline.spark import chunks
from pipeline.resolve_traces import Event, Op, Watch
from pipeline.trace_tables import event_row, events_table, operation_row, operations_table

NONE = Sample(0.0, 1)
NUMBERS = pa.list_(pa.int64())
Row = tuple[list[int], list[str | None]]


def rows_of(rows: Sequence[Row]) -> pa.RecordBatch:
    texts = pa.array([texts for _, texts in rows], pa.list_(pa.string()))
    return pa.record_batch({"numbers": pa.array([numbers for numbers, _ in rows], NUMBERS), "texts": texts})


def keyed_events(count: int, parts: int) -> tuple[list[list[int]], list[pa.RecordBatch]]:
    """Some events as `_pack_events` takes them, and in so many batches."""
    dice = random.Random(1)
    keys = [(dice.randrange(-(1 << 63), 1 << 63), n) for n in range(40)]
    rows = [[*dice.choice(keys), dice.randrange(-9, 9), dice.randrange(9)] for _ in range(count)]
    size = count // parts
    return rows, [pa.record_batch([pa.array(rows[n : n + size], NUMBERS)], ["numbers"]) for n in range(0, count, size)]


def watch(place: int, op_id: str, *, flags: int = IS_ONE, id_hash: int = 0) -> Row:
    return [place, place, 1, 5, 9, flags, id_hash, 3 << 40], ["here", op_id, None, "k"]


def values_of(packed: Sequence[pa.RecordBatch], *kinds: int) -> Iterator[tuple[int, memoryview]]:
    for batch in packed:
        for order, value in zip(batch["order"].to_pylist(), batch["packed"].to_pylist(), strict=True):
            if order % KINDS in kinds:
                yield order, memoryview(value)


def steps_of(packed: Sequence[pa.RecordBatch], together: int = 1) -> array[int]:
    steps = array("q")
    for order, value in values_of(packed, EVENTS):
        some = unpacked_events(value, order // KINDS % SHARDS)
        assert {(place >> 54) + SHARDS // 2 & -together for place in some[::4]} == {order // KINDS % SHARDS}
        steps += some
    return steps


def op_ids(packed: Sequence[pa.RecordBatch], kind: int) -> list[str]:
    return sorted(
        op_id
        for order, value in values_of(packed, kind)
        for op_id in unpacked_operations([value], order // KINDS % SHARDS)[1]["op_id"].to_pylist()
    )


@pytest.mark.parametrize("together", [1, COARSE])
def test_packed_events_are_the_steps_of_their_shards(together: int) -> None:
    """The map side: what comes out is the staircases of what goes in, by shard, whatever the batches were."""
    rows, batches = keyed_events(5000, 7)
    packed = list(_pack_events([batches[0][:0], *batches], NONE, together))
    whole = Staircases(array("q", [value for row in rows for value in row]))
    assert list(steps_of(packed, together)) == list(whole.steps)


def test_operations_of_one_watch_are_told_from_others() -> None:
    rows = [watch(7, "one"), watch(7, "two", flags=0), watch(7, "two", flags=NTH)]
    packed = list(_pack_operations([rows_of(rows)], NONE, ids=True))
    assert (op_ids(packed, ALONE), op_ids(packed, COMBINED)) == (["one"], ["two", "two"])
    (last,) = [value for order, value in values_of(packed, COMBINED)]
    watches, texts = unpacked_operations([last], 512)
    assert (watches.flags.tolist(), watches.version.tolist()) == ([0, NTH], [3 << 40] * 2)
    assert (texts["key"].to_pylist(), texts["kind"].null_count) == (["k", "k"], 2)


@pytest.mark.parametrize("most", [1, 40, 1 << 26])
def test_all_watches_are_packed_whatever_a_chunk_holds(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_BYTES", most)
    rows = [watch(n << 54, str(n)) for n in range(100)]
    batches = [rows_of(rows[n : n + 7]) for n in range(0, 100, 7)]
    narrow = [rows_of([(numbers, texts[:3]) for numbers, texts in rows[n : n + 7]]) for n in range(0, 100, 7)]
    for ids, given in ((True, batches), (False, narrow)):
        assert op_ids(list(_pack_operations(given, NONE, ids=ids)), ALONE) == sorted(map(str, range(100)))


# -- the profile ---------------------------------------------------------------------------------------------------


def profile_of(packed: Sequence[pa.RecordBatch], piece: int = 1) -> list[dict[str, object]]:
    rows = sorted((order, bytes(value)) for order, value in values_of(packed, PROFILE))
    batch = pa.record_batch(
        {"order": pa.array([order for order, _ in rows], pa.int64()), "packed": [v for _, v in rows]}
    )
    return [row for merged in _merge([batch], piece) for row in merged.to_pylist()]


def test_a_shard_that_is_large_in_a_chunk_is_dealt_out_and_named() -> None:
    """So no task has all of it, wherever the cuts of its keys will be."""
    _, batches = keyed_events(400, 4)
    packed = [batch for some in batches for batch in _pack_events([some], Sample(1.0, 8))]  # more than one row
    dealt = {order // KINDS % SHARDS for order, _ in values_of(packed, EVENTS) if order >= ORDERS}
    whole = {order // KINDS % SHARDS for order, _ in values_of(packed, EVENTS)}
    assert 0 < len(dealt) < len(whole)
    named = [row["shards"] for row in profile_of(packed, 1000) if row["part"] == 512]
    assert named == [sorted(dealt)]


def test_ids_that_are_there_twice_are_marked() -> None:
    rows = [watch(7, str(n), id_hash=n << 44) for n in (1, 2, 2, 300)]
    rows.append(watch(7, "2", flags=NTH, id_hash=300 << 44))  # another watch of an operation is no duplicate
    repeated = [row["groups"] for row in profile_of(list(_pack_operations([rows_of(rows)], NONE, ids=True)))]
    marks = marks_of(pa.scalar([*repeated, None], pa.list_(pa.binary())))
    assert marks is not None
    assert np.flatnonzero(marks).tolist() == [2]
    assert marks_of(pa.scalar(None, pa.list_(pa.binary()))) is None


# -- the second shuffle --------------------------------------------------------------------------------------------


PROFILE_ROW = pa.struct(
    {
        "cuts": NUMBERS,
        "shards": pa.list_(pa.int32()),
        "repeated": pa.list_(pa.binary()),
        "several": pa.bool_(),
        "ways": NUMBERS,
    }
)


def with_profile(packed: Sequence[pa.RecordBatch], profile: dict[str, object] | None) -> list[pa.RecordBatch]:
    table = pa.Table.from_batches([batch for batch in packed if batch["order"].to_pylist()[0] % KINDS != PROFILE])
    profiles = pa.array([profile, *[None] * (table.num_rows - 1)], PROFILE_ROW)
    batches: list[pa.RecordBatch] = table.sort_by("order").append_column("profile", profiles).to_batches()
    return batches


@pytest.mark.parametrize("together", [1, COARSE])
def test_hot_keys_are_cut_and_others_are_handed_on(together: int) -> None:
    hot, cold = 5 << 54, -(9 << 54)
    events = [[place, place, n, n] for n in range(200) for place in (hot, cold)]
    both = [pa.record_batch([pa.array(events, NUMBERS)], ["numbers"])]
    rows = [watch(hot, "hot"), watch(cold, "cold"), watch(cold, "two", flags=0)]
    packed = [*_pack_events(both, NONE, together), *_pack_operations([rows_of(rows)], NONE, True, together)]
    identity = hot & 0xFFFFFFFF
    shards = shards_of(np.array([hot]), together).tolist()
    profile: dict[str, object] = {"cuts": [hot, identity, 3, 50, 100, 150], "shards": shards}
    again = list(cut_hot_keys(with_profile(packed, profile), together))
    steps = np.array(steps_of(again, together)).reshape(-1, 4)
    assert len(set(steps[steps[:, 0] != cold, 0].tolist())) == 4
    assert (steps[:, 0] == cold).sum() == 200
    assert (op_ids(again, ALONE), op_ids(again, RIVALS), op_ids(again, COMBINED)) == (["hot"], ["cold"], ["two"])
    for found, ways in (({}, DIRECT), ({"several": True}, DIRECT + SLOW), ({"shards": [], "repeated": [b""]}, SLOW)):
        cut = cut_hot_keys(with_profile(packed, profile | found), together)
        assert {order // ORDERS for batch in cut for order in batch["order"].to_pylist()} == {ways}


def test_rows_that_were_moved_away_from_the_profile_are_refused() -> None:
    """They would be cut by nothing, or duplicates would all have an outcome: better none than a wrong one."""
    _, batches = keyed_events(100, 1)
    packed = with_profile(list(_pack_events(batches, NONE)), None)
    for reads in (cut_hot_keys, partial(first_reached, deadline="inclusive")):
        with pytest.raises(RuntimeError, match="the first row of a partition has no profile"):
            list(reads(packed))


# -- what Spark hands over -----------------------------------------------------------------------------------------


def test_no_list_that_goes_to_python_is_null(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Spark's defaults, handing a null list over takes a time that grows with the rows of its batch."""

    def handed_over(batches: Iterator[pa.RecordBatch], **_: object) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if any(column.null_count for column in batch.columns):
                raise ValueError("a list is null")
            texts = pa.array([[]] * batch.num_rows, pa.list_(pa.string()))
            yield batch if "texts" in batch.schema.names else batch.append_column("texts", texts)

    operations = operations_table(spark, [operation_row(Op("op", 0, 10, (Watch("k", 1),), "any"))])
    events = events_table(spark, [event_row(Event("k", 3, 1))])
    monkeypatch.setattr(from_spark, "PACKED", "numbers array<bigint>, texts array<string>")
    for name in ("_pack_events", "_pack_operations"):
        monkeypatch.setattr(from_spark, name, handed_over)
    rows = from_spark.packed_by_spark(operations, events, DEFAULT_SAMPLE, ids=True).toArrow().to_pylist()
    assert sorted(row["texts"] for row in rows) == [[], ["i", "op", "TEST", "k"]]
    (numbers,) = (row["numbers"] for row in rows if row["texts"])
    assert numbers[2:6] == [1, 1_767_225_600_000_000, 1_767_225_600_010_000, IS_ONE + 2 * CONDITION]


@pytest.mark.slow  # many tables
@pytest.mark.parametrize("large", ["false", "true"])
def test_tables_of_one_partition_each(spark: SparkSession, large: str) -> None:
    spark.conf.set("spark.sql.execution.arrow.useLargeVarTypes", large)
    operations = [Op(str(n), 0, 10, (Watch(f"k{n}", 1),), "all") for n in range(50)]
    table = operations_table(spark, list(map(operation_row, operations)))
    events = events_table(spark, [event_row(Event(f"k{n}", 3, 1)) for n in range(0, 50, 2)])
    try:
        outcomes = pipeline.resolve(table.coalesce(1), events.coalesce(1), sample=DEFAULT_SAMPLE).collect()
    finally:
        spark.conf.unset("spark.sql.execution.arrow.useLargeVarTypes")
    assert {int(row.op_id): row.outcome for row in outcomes} == {
        n: "expired" if n % 2 else "completed" for n in range(50)
    }
