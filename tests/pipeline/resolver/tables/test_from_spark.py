"""Tables that Spark reads: what goes to Python's workers, and what these pack."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.kernels.resolve import Staircases
from abeyant.pipeline.resolver.tables import from_spark
from abeyant.pipeline.resolver.tables.from_spark import _IS_FIRST, _IS_ONE, _pack
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE
from abeyant.pipeline.resolver.tables.packing import (
    ALONE,
    COMBINED,
    EVENTS,
    KINDS,
    READ,
    SHARDS,
    unpacked_events,
    unpacked_operations,
)
from abeyant.pipeline.resolver.tables.reaching import first_reached
from abeyant.pipeline.spark import chunks
from pipeline.resolve_traces import Event, Op, Watch
from pipeline.trace_tables import event_row, events_table, operation_row, operations_table

Row = tuple[list[int], list[str | None]]

ROWS = pa.schema([("numbers", pa.list_(pa.int64())), ("texts", pa.list_(pa.string()))])


def rows_of(rows: Sequence[Row]) -> pa.RecordBatch:
    return pa.record_batch([[numbers for numbers, _ in rows], [texts for _, texts in rows]], schema=ROWS)


def keyed_events(count: int, parts: int, *, several: bool = True) -> tuple[list[list[int]], list[pa.RecordBatch]]:
    """Some events as `_pack` takes them, and in so many batches."""
    dice = random.Random(1)
    keys = [(dice.randrange(-(1 << 63), 1 << 63), n) for n in range(40)]
    rows = [[*dice.choice(keys), dice.randrange(-9, 9), dice.randrange(9)] for _ in range(count)]
    told: list[Row] = [([*rows[0], int(several)], []), *((row, []) for row in rows[1:])]
    return rows, [rows_of(told[n : n + count // parts]) for n in range(0, count, count // parts)]


def watch(place: int, op_id: str, *version: str, about: int = _IS_ONE + _IS_FIRST) -> Row:
    return [5, 9, 1, place, place, about], ["here", op_id, None, *version]


def steps_of(packed: Sequence[pa.RecordBatch]) -> array[int]:
    steps = array("q")
    for batch in packed:
        for order, value in zip(batch["order"].to_pylist(), batch["packed"].to_pylist(), strict=True):
            some = unpacked_events(value, order // KINDS)
            assert {(place >> 54) + SHARDS // 2 for place in some[::4]} == {order // KINDS}
            steps += some
    return steps


def kinds_of(packed: Sequence[pa.RecordBatch]) -> set[int]:
    return {order % KINDS for batch in packed for order in batch["order"].to_pylist()}


def test_packed_events_are_the_steps_of_their_shards() -> None:
    """The map side: what comes out is the staircases of what goes in, by shard, whatever the batches were."""
    rows, batches = keyed_events(5000, 7)
    packed = list(_pack([batches[0][:0], *batches]))
    whole = Staircases(array("q", [value for row in rows for value in row]))
    assert list(steps_of(packed)) == list(whole.steps)


def test_where_nothing_is_combined_no_row_is_for_the_second_step() -> None:
    for several in (True, False):
        _, batches = keyed_events(100, 2, several=several)
        kinds = kinds_of(list(_pack([*batches, rows_of([watch(7, "op")])])))
        assert kinds < set(READ[ALONE])
        assert bool(kinds & set(READ[COMBINED])) == several


@pytest.mark.parametrize("cut", [99, 100, 101])
def test_a_partition_may_have_the_rows_of_both_tables(cut: int) -> None:
    """So it is where both are one partition: Spark puts them together. They may even share a batch."""
    rows, batches = keyed_events(100, 1)
    both = pa.Table.from_batches([*batches, rows_of([watch(7, "a"), watch(8, "b")])]).combine_chunks()
    packed = list(_pack([*both.slice(0, cut).to_batches(), *both.slice(cut).to_batches()]))
    events = [batch for batch in packed if kinds_of([batch]) == {EVENTS}]
    assert sorted(steps_of(events)) == sorted(Staircases(array("q", [value for row in rows for value in row])).steps)
    others = [batch for batch in packed if kinds_of([batch]) == {ALONE}]
    assert len(events) + len(others) == len(packed)
    assert op_ids(others, ALONE) == ["a", "b"]


def op_ids(packed: Sequence[pa.RecordBatch], kind: int) -> list[str]:
    return sorted(
        op_id
        for batch in packed
        for order, value in zip(batch["order"].to_pylist(), batch["packed"].to_pylist(), strict=True)
        if order % KINDS == kind
        for op_id in unpacked_operations([memoryview(value)], kind, order // KINDS)[1]["op_id"].to_pylist()
    )


def test_texts_beyond_those_of_each_row_are_its_version() -> None:
    rows = [
        watch(7, "one"),
        watch(7, "twice", "any", "k", "1"),
        watch(7, "two", about=_IS_FIRST),
        watch(7, "last", "all"),
    ]
    rows[0][0].append(1)
    (packed,) = _pack([rows_of(rows)])
    assert op_ids([packed], ALONE) == ["one"]
    ((order, value),) = (
        (order, value)
        for order, value in zip(packed["order"].to_pylist(), packed["packed"].to_pylist(), strict=True)
        if order % KINDS == COMBINED
    )
    _, texts = unpacked_operations([memoryview(value)], COMBINED, order // KINDS)
    assert dict(zip(texts["op_id"].to_pylist(), texts["version"].to_pylist(), strict=True)) == {
        "twice": ["any", "k", "1"],
        "two": [],
        "last": ["all"],
    }
    assert texts["kind"].null_count == 3


@pytest.mark.parametrize("most", [1, 40, 1 << 26])
@pytest.mark.parametrize("rows_of_a_batch", [1, 3, 4, 100])
def test_each_watch_of_an_operation_has_the_version_of_the_first(
    most: int, rows_of_a_batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever batches and chunks part them: Spark tells it once, or it would be as long as the watches' square."""
    monkeypatch.setattr(chunks, "CHUNK_BYTES", most)
    versions: dict[str, list[str]] = {"a": ["all", "k", "l", "m", "1", "2", "3"], "b": [], "c": ["any", "k", "1"]}
    watches = {"a": 3, "b": 4, "c": 1}
    rows = [
        watch(7, op_id, *(versions[op_id] if nth == 0 else []), about=_IS_FIRST if nth == 0 else 0)
        for op_id, count in watches.items()
        for nth in range(count)
    ]
    rows[0][0].append(1)
    batches = [rows_of(rows[n : n + rows_of_a_batch]) for n in range(0, len(rows), rows_of_a_batch)]
    found = [
        (op_id, version)
        for batch in _pack(batches)
        for order, value in zip(batch["order"].to_pylist(), batch["packed"].to_pylist(), strict=True)
        for texts in [unpacked_operations([memoryview(value)], COMBINED, order // KINDS)[1]]
        for op_id, version in zip(texts["op_id"].to_pylist(), texts["version"].to_pylist(), strict=True)
    ]
    assert sorted(found) == sorted((op_id, versions[op_id]) for op_id, count in watches.items() for _ in range(count))


def test_a_task_without_the_cuts_or_with_others_is_refused() -> None:
    """Rows that were placed by different cuts would not find each other: better no outcome than a wrong one."""
    _, batches = keyed_events(100, 2)
    with pytest.raises(RuntimeError, match="the first row of a partition has no cuts"):
        list(_pack(batches[1:]))
    with pytest.raises(RuntimeError, match="another row than the first of a partition has cuts"):
        list(_pack([batches[0], *batches]))
    first, *others = batches[1]["numbers"].to_pylist()
    cut_otherwise = list(_pack([rows_of([([*first, 1, 1, 2, 1, 1], []), *((row, []) for row in others)])]))
    with pytest.raises(RuntimeError, match="the sample of hot keys was read twice and differs"):
        list(first_reached([*_pack(batches[:1]), *cut_otherwise], ALONE, "inclusive"))


def test_operations_that_differ_from_those_that_were_looked_at_are_refused() -> None:
    """Their events are not where they look for them."""
    rows = [watch(7, "one"), watch(7, "two", about=_IS_FIRST)]
    rows[0][0].append(0)
    assert next(_pack([rows_of(rows[:1])])).num_rows == 1
    with pytest.raises(RuntimeError, match="operations were read twice and differ: persist them first"):
        list(_pack([rows_of(rows)]))


def test_no_list_that_goes_to_python_is_null(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Spark's defaults, handing a null list over takes a time that grows with the rows of its batch."""
    monkeypatch.setattr(from_spark, "_pack", lambda batches: batches)
    monkeypatch.setattr(from_spark, "PACKED", "numbers array<bigint>, texts array<string>")
    operations = operations_table(spark, [operation_row(Op("op", 0, 10, (Watch("k", 1),), "any"))])
    events = events_table(spark, [event_row(Event("k", 3, 1))])
    every = F.array_repeat(F.unhex(F.repeat(F.lit("01"), 1 << 12)), 256)
    for repeated, version in ((F.lit(None).cast("array<binary>"), []), (every, ["any", "k", "1"])):
        seen = F.struct(F.array(F.lit(0).cast("bigint")).alias("cuts"), repeated.alias("repeated"))
        rows = from_spark.packed_by_spark(operations, events, seen, ids=True).toArrow()
        assert not any(rows[name].null_count for name in ("numbers", "texts"))
        assert sorted(filter(None, rows["texts"].to_pylist())) == [["i", "op", "TEST", *version]]
        assert [] in rows["texts"].to_pylist()


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


def test_rows_without_a_version_take_nothing_for_those_of_others() -> None:
    long = ["all", *(f"key {n}" for n in range(5000))]
    rows = [watch(n << 54, str(n), about=_IS_FIRST) for n in range(512)]
    rows[0][1].extend(long)
    rows[0][0].append(1)
    (packed,) = _pack([rows_of(rows)])
    sizes = sorted(len(value) for value in packed["packed"].to_pylist())
    assert sizes[-2] < 2000 < 20_000 < sizes[-1]
    assert op_ids([packed], COMBINED) == sorted(str(n) for n in range(512))
