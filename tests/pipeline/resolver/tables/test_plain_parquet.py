"""Tables that are plain Parquet files, which the workers read themselves: what is plain, and the outcomes of it.

The outcomes are those of brute force, and of the way of all other tables.
"""

from __future__ import annotations

import base64
import datetime
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyarrow.parquet import encryption
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant import pipeline
from abeyant.pipeline.resolver.tables.hot_keys import DEFAULT_SAMPLE, HotKeys, Sample
from abeyant.pipeline.resolver.tables.packing import (
    COARSE,
    COMBINED,
    EVENTS,
    KINDS,
    PROFILE,
    SHARDS,
    EventPacker,
    Watches,
    binary,
    pack_operations,
    unpacked_events,
    unpacked_operations,
)
from abeyant.pipeline.resolver.tables.plain_parquet import map_side, tasks
from abeyant.pipeline.resolver.tables.plain_parquet.footers import DIRECT, PlainTable, RowGroup, _groups_of, plain_table
from abeyant.pipeline.resolver.tables.plain_parquet.stored import Stored
from abeyant.pipeline.resolver.tables.plain_parquet.tasks import Task, _read, tasks_of
from abeyant.pipeline.resolver.tables.profile import Profiler
from abeyant.pipeline.schemas import EVENTS as EVENT_COLUMNS
from abeyant.pipeline.schemas import OPERATIONS
from abeyant.pipeline.spark import chunks
from abeyant.pipeline.spark.errors import in_one_line
from abeyant.tables.keys import PairHash
from pipeline.resolve_traces import Deadline, Event, Op, Trace, Watch, by_brute_force, some_traces
from pipeline.small_cases import small_events, small_operations
from pipeline.trace_tables import (
    ARROW_EVENTS,
    ARROW_OPERATIONS,
    EPOCH_US,
    event_row,
    events_table,
    operation_row,
    tables,
)
from seeds import share, with_slow

ALL_HOT = Sample(fraction=1.0, piece=1)
Rows = list[dict[str, Any]]
_FAILED = (PySparkException, Py4JJavaError)  # a subquery's failure is the second


def is_direct(outcomes: DataFrame) -> bool:
    return not outcomes.inputFiles()


@contextmanager
def set_to(spark: SparkSession, name: str, value: str) -> Iterator[None]:
    before = spark.conf.get(name, None)
    spark.conf.set(name, value)
    try:
        yield
    finally:
        if before is None:
            spark.conf.unset(name)
        else:
            spark.conf.set(name, before)


def rows_of(outcomes: DataFrame) -> list[tuple[Any, ...]]:
    found = outcomes.withColumn("at", F.unix_micros("at")).collect()
    return sorted((tuple(row) for row in found), key=repr)


def read(spark: SparkSession, folder: Path) -> tuple[DataFrame, DataFrame]:
    return spark.read.parquet(f"file://{folder}/operations"), spark.read.parquet(f"file://{folder}/events")


@cache
def traces() -> list[Trace]:
    return some_traces(share(1000), seed=20261124)


@pytest.fixture(scope="module")
def trace_files(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Several files of several row groups, whose dictionaries differ."""
    folder = tmp_path_factory.mktemp("traces")
    for name, table in zip(("operations", "events"), tables(spark, traces()), strict=True):
        table.write.option("parquet.block.size", 1 << 12).parquet(f"file://{folder}/{name}")
    assert max(pq.read_metadata(path).num_row_groups for path in folder.glob("*/*.parquet")) > 1
    return folder


@pytest.mark.parametrize(
    ("deadline", "sample"),
    [("inclusive", ALL_HOT), pytest.param("exclusive", DEFAULT_SAMPLE, marks=pytest.mark.slow)],
)
def test_o1_to_o4_files_equal_brute_force(
    spark: SparkSession, trace_files: Path, deadline: Deadline, sample: Sample
) -> None:
    operations, events = read(spark, trace_files)
    outcomes = pipeline.resolve(operations, events, deadline=deadline, sample=sample)
    assert is_direct(outcomes)
    expected = {
        (f"t{number}", op_id): ends
        for number, trace in enumerate(traces())
        for op_id, ends in by_brute_force(trace, deadline).items()
    }
    assert {(row[0], row[1]): (row[3], row[4] - EPOCH_US) for row in rows_of(outcomes)} == expected


# -- all that is small ---------------------------------------------------------------------------------------------


def small_rows() -> tuple[Rows, Rows]:
    wide = "x" * 300  # of more kinds than one byte tells apart, and texts of no common length
    several = [
        operation_row(
            Op(f"{wide}{n}", n, 40, (Watch("a", n % 7), Watch(f"k{n % 3}", 1)), ["all", "any"][n % 2]), "wide"
        )
        | {"kind": f"kind-{n}" if n % 5 else None}
        for n in range(700)
    ]
    happened = [event_row(Event("a", at, at % 9), "wide") for at in range(60)]
    return small_operations() + several, small_events() + happened + [event_row(Event("k1", 30, 1), "wide")]


Write = Callable[[pa.Table, str], None]


def by_arrow(**how: Any) -> Write:
    def write(table: pa.Table, path: str) -> None:
        pq.write_table(table, f"{path}/0.parquet", row_group_size=300, **how)
        pq.write_table(table.slice(0, 0), f"{path}/empty.parquet", **how)

    return write


def as_others_write(table: pa.Table, path: str) -> None:
    """As pandas and Polars do: categories, large texts, milliseconds."""
    for name in ("kind", "condition", "instance"):
        if name in table.column_names:
            at = table.column_names.index(name)
            text = table.column(name)
            kind = text.dictionary_encode() if name == "kind" else text.cast(pa.large_string())
            table = table.set_column(at, name, kind)
    pq.write_table(table, f"{path}/0.parquet", use_dictionary=False)


def each_otherwise(table: pa.Table, path: str) -> None:
    """One table, whose files differ in all that may differ."""
    part = -(-table.num_rows // 4)
    large = pa.list_(pa.struct([("key", pa.large_string()), ("required", pa.int64())]))
    for number in range(4):
        rows = table.slice(number * part, part)
        for place, column in enumerate(rows.columns):
            name, kind = rows.column_names[place], column.type
            if kind == pa.string() and number in (1, 2):
                column = column.dictionary_encode() if number == 1 else column.cast(pa.large_string())
            elif pa.types.is_list(kind) and number == 2:
                column = column.cast(large)
            elif pa.types.is_timestamp(kind) and number == 3:
                column = column.cast(pa.timestamp("us", "Asia/Tokyo"))
            rows = rows.set_column(place, pa.field(name, column.type, nullable=True), column)
        pq.write_table(rows, f"{path}/{number}.parquet", use_dictionary=number != 3, row_group_size=200)


def as_differences(table: pa.Table, path: str) -> None:
    """Encodings that Arrow makes no dictionary of."""
    encoding = {name: "DELTA_BYTE_ARRAY" for name in table.column_names if table.schema.field(name).type == pa.string()}
    pq.write_table(table, f"{path}/0.parquet", use_dictionary=False, column_encoding=encoding)
    if "kind" in encoding:
        encoding = dict.fromkeys(encoding, "DELTA_LENGTH_BYTE_ARRAY")
        pq.write_table(table.slice(0, 0), f"{path}/1.parquet", use_dictionary=False, column_encoding=encoding)


WRITERS: dict[str, Write] = {
    "each otherwise": each_otherwise,
    "differences": as_differences,
    "arrow": by_arrow(),
    "without dictionaries": by_arrow(use_dictionary=False, compression="none"),
    "pages of version 2": by_arrow(data_page_version="2.0", compression="zstd"),
    "others": as_others_write,
}


@pytest.fixture(scope="module")
def expected(spark: SparkSession) -> list[tuple[Any, ...]]:
    """By the way of small tables, which is held to brute force."""
    operations, events = small_rows()
    made = (
        spark.createDataFrame(pa.Table.from_pylist(rows, schema))
        for rows, schema in ((operations, ARROW_OPERATIONS), (events, ARROW_EVENTS))
    )
    return rows_of(pipeline.resolve(*made))


def written(folder: Path, write: Write) -> Path:
    for name, rows, schema in zip(
        ("operations", "events"), small_rows(), (ARROW_OPERATIONS, ARROW_EVENTS), strict=True
    ):
        (folder / name).mkdir(parents=True)
        write(pa.Table.from_pylist(rows, schema), str(folder / name))
    return folder


@pytest.mark.slow  # for each writer
@pytest.mark.parametrize("writer", WRITERS)
def test_files_of_any_writer_give_the_same(
    spark: SparkSession, tmp_path: Path, expected: list[tuple[Any, ...]], writer: str
) -> None:
    operations, events = read(spark, written(tmp_path, WRITERS[writer]))
    outcomes = pipeline.resolve(operations, events, sample=ALL_HOT)
    assert is_direct(outcomes)
    assert rows_of(outcomes) == expected


INSTANTS = ("INT96", "TIMESTAMP_MICROS", "TIMESTAMP_MILLIS")


@pytest.mark.slow
@pytest.mark.parametrize("kind", INSTANTS)
def test_files_of_spark_give_the_same_whatever_a_timestamp_is_in_them(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    written(tmp_path / "whole", WRITERS["arrow"])
    with set_to(spark, "spark.sql.parquet.outputTimestampType", kind):
        for name, table in zip(("operations", "events"), read(spark, tmp_path / "whole"), strict=True):
            time = "start" if name == "operations" else "at"
            whole = table.withColumn(time, F.date_trunc("second", F.col(time)))
            whole.write.parquet(f"file://{tmp_path}/{name}")
    operations, events = read(spark, tmp_path)
    outcomes = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE)
    assert is_direct(outcomes)
    with set_to(spark, DIRECT, "false"):
        other = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE)
        assert not is_direct(other)
        assert rows_of(other) == rows_of(outcomes)


@pytest.mark.slow
def test_times_of_96_bits_that_arrow_mistakes_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path, WRITERS["arrow"])
    operations, events = read(spark, tmp_path)
    with set_to(spark, "spark.sql.parquet.outputTimestampType", "INT96"):
        for name, year in (("ancient", "-5000"), ("old", "0002"), ("far", "+12000")):
            at = F.expr(f"CAST('{year}-06-01 00:00:00' AS timestamp)")
            events.where("instance = 'a'").withColumn("at", at).write.parquet(f"file://{tmp_path}/{name}")
    for name, fine in (("ancient", False), ("old", True), ("far", False)):
        outcomes = pipeline.resolve(operations, spark.read.parquet(f"file://{tmp_path}/{name}"), sample=DEFAULT_SAMPLE)
        assert is_direct(outcomes)
        if fine:
            assert outcomes.where("instance = 'a' AND outcome = 'completed'").count() == 1
            continue
        with pytest.raises(_FAILED) as failed:
            outcomes.collect()
        assert "is outside the years 1 to 9999, and only Spark can read such times: set" in in_one_line(failed.value)


@pytest.mark.slow
def test_unique_ids_need_no_look_at_them(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path, WRITERS["arrow"])
    operations, events = read(spark, tmp_path)
    wide = operations.columns
    operations.where("instance = 'wide'").select(*wide).write.parquet(f"file://{tmp_path}/wide")
    operations = spark.read.parquet(f"file://{tmp_path}/wide")
    found = pipeline.resolve(operations, events, unique_ids=True, sample=ALL_HOT)
    assert is_direct(found)
    assert rows_of(found) == rows_of(pipeline.resolve(operations, events, sample=ALL_HOT))
    assert found.count() == 700


@pytest.mark.parametrize(
    "rules",
    with_slow(
        [{"count": "after_start", "details": True}, {"combine": "sum"}, {"serves": "oldest"}],
        [{"combine": "sum"}, {"serves": "oldest"}],
    ),
)
def test_rules_over_plain_events_give_the_same(spark: SparkSession, tmp_path: Path, rules: dict[str, Any]) -> None:
    """Workers read the events; the operations, whose columns differ, are Spark's to read."""
    operations, events = read(spark, written(tmp_path, each_otherwise))
    operations, events = operations.where("size(watches) = 1"), events.where("progress < 8")
    if rules.get("serves") is None:
        operations = operations.withColumn("cancel_key", F.expr("if(xxhash64(op_id) % 3 = 0, 'k1', NULL)"))
    outcomes = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE, **rules)
    assert {path.split("/")[-2] for path in outcomes.inputFiles()} == {"operations"}
    with set_to(spark, DIRECT, "false"):
        other = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE, **rules)
        assert {path.split("/")[-2] for path in other.inputFiles()} == {"operations", "events"}
        assert rows_of(other) == rows_of(outcomes)


# -- what is plain -------------------------------------------------------------------------------------------------


def types_of(schema: StructType) -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in schema.fields}


def groups(table: DataFrame) -> Sequence[RowGroup] | None:
    schema = OPERATIONS if "op_id" in table.columns else EVENT_COLUMNS
    plain = plain_table(table, schema)
    return None if plain is None else plain.groups


def test_a_scan_is_plain_and_nothing_more_than_one(spark: SparkSession, trace_files: Path) -> None:
    operations, events = read(spark, trace_files)
    found = groups(operations)
    assert found is not None
    assert sum(group.rows for group in found) == operations.count()
    assert all(0 < group.size < Path(group.file.name).stat().st_size for group in found)
    assert groups(events.select("key", "at", "instance", "progress")) is not None
    events.createOrReplaceTempView("plain_events")
    assert groups(spark.sql("SELECT * FROM plain_events")) is not None
    cached = spark.read.parquet(f"file://{trace_files}/events").persist()
    for more in (
        events.where("progress % 3 = 1"),
        events.limit(5),
        events.union(events),
        events.sample(0.5),
        events.repartition(2),
        events.distinct(),
        events.withColumn("progress", F.col("progress") + 1),
        cached,
        events.join(events.select("key"), "key"),
        events.join(operations.groupBy("instance").count(), "instance"),
        spark.createDataFrame([], EVENT_COLUMNS),
    ):
        assert groups(more) is None
    cached.unpersist()
    # The optimizer drops this join: then the files of one side are scanned, and of no other.
    other = spark.read.parquet(f"file://{trace_files}/operations").groupBy("instance").count()
    found = groups(events.join(other, "instance", "left").select(*EVENT_COLUMNS.fieldNames()))
    assert found == groups(events)


def test_options_and_catalogs_leave_all_to_spark(spark: SparkSession, trace_files: Path) -> None:
    reader = spark.read.option("ignoreMissingFiles", "true")
    assert groups(reader.parquet(f"file://{trace_files}/events")) is None
    reader = spark.read.option("mergeSchema", "true").option("pathGlobFilter", "*.parquet")
    assert groups(reader.parquet(f"file://{trace_files}/events")) is not None
    spark.sql(f"CREATE TABLE plain_table USING parquet LOCATION 'file://{trace_files}/events'")
    try:
        assert groups(spark.table("plain_table")) is None
    finally:
        spark.sql("DROP TABLE plain_table")


def test_settings_that_pass_over_files_leave_all_to_spark(spark: SparkSession, trace_files: Path) -> None:
    _, events = read(spark, trace_files)
    for name, value in (
        ("spark.sql.files.ignoreCorruptFiles", "true"),
        ("spark.sql.files.ignoreMissingFiles", "true"),
        (DIRECT, "false"),
    ):
        with set_to(spark, name, value):
            assert groups(events) is None
    assert groups(events) is not None


def test_a_file_that_differs_leaves_all_to_spark(spark: SparkSession, tmp_path: Path) -> None:
    rows = [event_row(Event("k", at, at)) for at in range(5)]
    table = pa.Table.from_pylist(rows, ARROW_EVENTS)
    whole = pa.array([0] * 5, pa.timestamp("ns"))
    old = pa.array([datetime.datetime(1890, 1, 1, tzinfo=datetime.UTC)] * 5, pa.timestamp("us", "UTC"))
    others = {
        "a column is missing": table.drop_columns(["progress"]),
        "an int": table.set_column(3, "progress", table["progress"].cast(pa.int32())),
        "its case": table.rename_columns(["instance", "Key", "at", "progress"]),
        "nanoseconds": table.set_column(table.column_names.index("at"), "at", whole),
        "another case as well": table.append_column("Key", table["key"]),
        "before 1900": table.set_column(table.column_names.index("at"), "at", old),
    }
    for why, other in others.items():
        folder = tmp_path / why.replace(" ", "-")
        folder.mkdir()
        pq.write_table(table, folder / "0.parquet")
        events = spark.read.schema(EVENT_COLUMNS).parquet(f"file://{folder}")
        assert groups(events) is not None
        pq.write_table(other, folder / "1.parquet")
        events = spark.read.schema(EVENT_COLUMNS).parquet(f"file://{folder}")
        assert groups(events) is None, why
    (tmp_path / "broken").mkdir()
    pq.write_table(table, tmp_path / "broken" / "0.parquet")
    (tmp_path / "broken" / "1.parquet").write_bytes(b"PAR1 and no more")
    assert groups(spark.read.schema(EVENT_COLUMNS).parquet(f"file://{tmp_path}/broken")) is None


class Keys(encryption.KmsClient):  # type: ignore[misc]  # it has no types
    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> bytes:
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key: bytes, master_key_identifier: str) -> bytes:
        return base64.b64decode(wrapped_key)


@pytest.mark.parametrize("column", ["progress", "another"])
def test_a_file_with_an_encrypted_column_leaves_all_to_spark(spark: SparkSession, tmp_path: Path, column: str) -> None:
    """Its footer can be read, but Arrow ends the process when it is asked about that column."""
    table = pa.Table.from_pylist([event_row(Event("k", at, at)) for at in range(5)], ARROW_EVENTS)
    factory = encryption.CryptoFactory(lambda _: Keys())
    how = encryption.EncryptionConfiguration(footer_key="f", column_keys={"c": [column]}, plaintext_footer=True)
    properties = factory.file_encryption_properties(encryption.KmsConnectionConfig(), how)
    file = tmp_path / "0.parquet"
    pq.write_table(table.append_column("another", table["progress"]), file, encryption_properties=properties)
    assert pq.read_metadata(file).num_rows == 5
    assert groups(spark.read.schema(EVENT_COLUMNS).parquet(f"file://{file}")) is None


def test_a_partition_s_column_is_in_no_file(spark: SparkSession, tmp_path: Path) -> None:
    events = events_table(spark, [event_row(Event("k", at, at), f"t{at % 2}") for at in range(6)])
    events.withColumn("day", F.lit("d")).write.partitionBy("day").parquet(f"file://{tmp_path}/by-day")
    events.write.partitionBy("instance").parquet(f"file://{tmp_path}/by-instance")
    (tmp_path / "twice" / "instance=t9").mkdir(parents=True)
    pq.write_table(
        pa.Table.from_pylist([event_row(Event("k", 1, 1), "t1")], ARROW_EVENTS),
        tmp_path / "twice/instance=t9/0.parquet",
    )
    in_the_path_too = spark.read.parquet(f"file://{tmp_path}/twice")
    assert in_the_path_too.first()["instance"] == "t9"  # type: ignore[index]
    assert groups(in_the_path_too) is None
    by_day = spark.read.parquet(f"file://{tmp_path}/by-day")
    assert [group.rows for group in groups(by_day) or []] != []
    assert groups(spark.read.parquet(f"file://{tmp_path}/by-instance").select(*EVENT_COLUMNS.fieldNames())) is None


@pytest.mark.slow  # many paths
def test_a_path_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "50% of é, + and #1 [x]"
    written(folder, WRITERS["arrow"])
    escaped = str(folder).replace("[", "\\[").replace("]", "\\]")
    operations, events = (spark.read.parquet(f"{escaped}/{name}") for name in ("operations", "events"))
    outcomes = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE)
    assert is_direct(outcomes)
    assert outcomes.count() > 700


@pytest.mark.slow  # many tables
def test_a_file_that_was_replaced_or_has_gone_is_named(spark: SparkSession, tmp_path: Path) -> None:
    written(tmp_path, WRITERS["arrow"])
    operations, events = read(spark, tmp_path)
    first, second = (pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE) for _ in range(2))
    file = tmp_path / "events" / "0.parquet"
    pq.write_table(pa.Table.from_pylist([event_row(Event("k", 1, 1))], ARROW_EVENTS), file)
    with pytest.raises(_FAILED) as failed:
        first.collect()
    assert in_one_line(failed.value) == f"{file} has changed since the table was opened: read the table anew"
    file.unlink()
    with pytest.raises(_FAILED) as failed:
        second.collect()
    assert in_one_line(failed.value).startswith(f"cannot read {file}: ")


def test_tasks_are_of_one_size() -> None:
    def sizes(*of_groups: int) -> list[list[int]]:
        given = [RowGroup(Stored("f"), number, 1000, size << 20) for number, size in enumerate(of_groups)]
        return [[group.size >> 20 for group in task.groups] for task in tasks_of("events", PlainTable(given, {}, None))]

    assert sizes() == []
    assert sizes(*[1] * 9) == [[1] * 4, [1] * 4, [1]]
    assert sizes(900, 1, 1) == [[900], [1, 1]]
    assert sizes(*[60] * 1000)[0] == [60, 60]  # of much data
    many = [RowGroup(Stored("f"), number, 3 << 20, 1) for number in range(3)]
    assert [len(task.groups) for task in tasks_of("events", PlainTable(many, {}, None))] == [1, 1, 1]


def packed_operations(task: Task) -> list[pa.RecordBatch]:
    found = map_side._pack_operations(task, PairHash(), HotKeys(()), Profiler(Sample(0.0, 1 << 30), 0), ids=True)
    return [batch for batch in found if batch["order"][0].as_py() % KINDS != PROFILE]


def test_a_chunk_is_bounded_in_bytes_where_rows_are_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However little a file with few distinct texts takes on the disk, and each row a watch has its operation's."""
    for module in (tasks, chunks):
        monkeypatch.setattr(module, "CHUNK_BYTES", 1 << 20)
    rows = [
        operation_row(Op(f"{n:05000d}", n, 9, tuple(Watch(f"k{m}", m) for m in range(60)), "all")) for n in range(300)
    ]
    pq.write_table(pa.Table.from_pylist(rows, ARROW_OPERATIONS), tmp_path / "0.parquet")
    file = pq.ParquetFile(tmp_path / "0.parquet")
    (group,) = _groups_of(Stored(str(tmp_path / "0.parquet")), types_of(OPERATIONS)) or []
    task = Task("operations", [group])
    first = next(_read(task, OPERATIONS.fieldNames()))
    assert first.num_rows < 200 < file.metadata.num_rows
    found = packed_operations(task)
    assert len(found) > 60
    assert max(batch.nbytes for batch in found) < 4 << 20
    told = [
        unpacked_operations([memoryview(value)], order // KINDS)[1].num_rows
        for batch in found
        for order, value in zip(batch["order"].to_pylist(), batch["packed"].to_pylist(), strict=True)
    ]
    assert sum(told) == 300 * 60


def test_a_long_text_that_all_rows_share_is_not_held_for_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (tasks, chunks):
        monkeypatch.setattr(module, "CHUNK_BYTES", 1 << 20)
    rows = [operation_row(Op(f"{n}", n, 9, (Watch("k", n),), "all")) | {"kind": "x" * 5000} for n in range(3000)]
    pq.write_table(pa.Table.from_pylist(rows, ARROW_OPERATIONS), tmp_path / "0.parquet")
    task = Task("operations", _groups_of(Stored(str(tmp_path / "0.parquet")), types_of(OPERATIONS)) or [])
    assert next(_read(task, OPERATIONS.fieldNames())).nbytes < 1 << 20  # as a dictionary
    found = packed_operations(task)
    assert max(batch.nbytes for batch in found) < 2 << 20
    kinds = [
        kind
        for batch in found
        for order, value in zip(batch["order"].to_pylist(), batch["packed"].to_pylist(), strict=True)
        for kind in unpacked_operations([memoryview(value)], order // KINDS)[1]["kind"].to_pylist()
    ]
    assert kinds == ["x" * 5000] * 3000


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="only /proc tells which files are open")
def test_many_small_files_are_not_open_at_once(tmp_path: Path) -> None:
    table = pa.Table.from_pylist([event_row(Event("k", 1, 1))], ARROW_EVENTS)
    groups_of_all = []
    for number in range(60):
        pq.write_table(table, tmp_path / f"{number}.parquet")
        groups_of_all += _groups_of(Stored(str(tmp_path / f"{number}.parquet")), types_of(EVENT_COLUMNS)) or []
    before = len(os.listdir("/proc/self/fd"))
    most = 0
    for _ in _read(Task("events", groups_of_all), EVENT_COLUMNS.fieldNames()):
        most = max(most, len(os.listdir("/proc/self/fd")))
    assert most - before < 10


def test_a_value_beyond_what_arrow_counts_is_refused() -> None:
    with pytest.raises(OverflowError, match="the rows of one chunk have 3,000,000,000 bytes in all"):
        binary([1_500_000_000] * 2, b"")


# -- what is packed ------------------------------------------------------------------------------------------------


def packed_rows(batches: list[pa.RecordBatch]) -> list[tuple[int, ...]]:
    found = []
    for batch in batches:
        for order, packed in zip(batch["order"].to_pylist(), batch["packed"].to_pylist(), strict=True):
            assert order % KINDS == EVENTS
            values = unpacked_events(packed, order // KINDS).tolist()
            found += [tuple(values[n : n + 4]) for n in range(0, len(values), 4)]
    return sorted(found)


@pytest.mark.parametrize("together", [1, COARSE])
def test_events_are_reduced_while_that_is_worth_it_and_dealt_out_otherwise(together: int) -> None:
    dice = np.random.default_rng(1)
    place, identity = dice.integers(-(2**63), 2**63 - 1, (2, 4000))
    progress, at = dice.integers(-5, 10**6, 4000), dice.integers(0, 10**15, 4000)
    pack = EventPacker(together)
    packed = [pack(place, identity, progress, at).batch() for _ in range(2)]
    assert not pack._reduces
    assert packed_rows(packed[:1]) == packed_rows(packed[1:])
    assert packed[0]["order"].sort() == packed[1]["order"].sort()
    assert {order // KINDS % together for order in packed[0]["order"].to_pylist()} == {0}
    assert SHARDS // together * 0.9 < packed[0].num_rows <= SHARDS // together
    assert packed_rows(packed[:1]) == sorted(
        zip(place.tolist(), (identity % 2**32).tolist(), progress, at, strict=True)
    )
    pack = EventPacker(together)
    same = np.full(4000, 7)
    packed = [pack(same, same, progress, at).batch() for _ in range(2)]
    assert pack._reduces
    assert len(packed_rows(packed[:1])) < 100


def test_texts_come_back_however_many_there_are_of_a_kind() -> None:
    def column(values: list[str | None], few: bool) -> pa.Array:
        text = pa.array(values, pa.string())
        return text.dictionary_encode() if few else text

    for count, few in ((3, True), (3, False), (256, True), (257, True), (257, False)):
        rows = 5000
        kinds = [None if n % 7 == 0 else f"kind {n % count} é" for n in range(rows)]
        texts = pa.record_batch(
            {
                "instance": column(["i"] * rows, few),
                "op_id": pa.array([f"op-{n}" for n in range(rows)]),
                "kind": column(kinds, few),
                "key": pa.array([f"k{n % 9}" for n in range(rows)]),
            }
        )
        place = (np.arange(rows) % 4 - 2) << 62
        start = np.arange(rows) * 10**9
        one = np.arange(rows)
        flags, group, version = np.zeros(rows, np.int64), one % 7 << 10, one * (2**62 // rows)
        numbers = Watches(place.copy(), one, one % 5 - 2, start, start + 2**40, flags, group, version)
        packed = pack_operations(texts, numbers).batch()
        found = []
        for order, value in zip(packed["order"].to_pylist(), packed["packed"].to_pylist(), strict=True):
            assert order % KINDS == COMBINED
            back, told = unpacked_operations([memoryview(value)] * 2, order // KINDS)
            assert told.num_rows % 2 == 0
            assert told.slice(0, told.num_rows // 2) == told.slice(told.num_rows // 2)
            half = told.num_rows // 2
            found += list(zip(*(part[:half].tolist() for part in back), told.slice(0, half).to_pylist(), strict=True))
        found.sort(key=lambda row: row[1])
        assert [row[:-1] for row in found] == list(zip(*(part.tolist() for part in numbers), strict=True))
        plain = texts.cast(pa.schema([(name, pa.string()) for name in texts.schema.names]))
        assert [row[-1] for row in found] == plain.to_pylist()


# -- filters, and columns that are renamed, constant or made of a key ------------------------------------------------

START = datetime.datetime.fromtimestamp(EPOCH_US / 1e6, datetime.UTC)
FILTERED = pa.schema(
    [
        *ARROW_EVENTS,
        *(("small", pa.int32()), ("day", pa.date32()), ("yes", pa.bool_()), ("name", pa.string())),
    ]
)
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "=")
VALUES = {
    "progress": ("3", "-1", "5000000000", "NULL"),
    "small": ("2", "-1"),
    "day": ("date'2026-03-01'", "date'1969-12-31'"),
    "at": ("timestamp'2026-03-01 00:00:00.000001'", "timestamp'1955-11-05 06:15:00'"),
    "name": ("'b'", "''", "'é'", "'Z'", "'\U0001f600'"),
    "key": ("name", "'k1'"),
}


def conditions(seed: int, count: int) -> list[str]:
    dice = random.Random(seed)

    def one(depth: int) -> str:
        kind = dice.random() if depth else 1.0
        if kind < 0.25:
            return f"({one(depth - 1)} AND {one(depth - 1)})"
        if kind < 0.5:
            return f"({one(depth - 1)} OR {one(depth - 1)})"
        if kind < 0.65:
            return f"(NOT {one(depth - 1)})"
        column = dice.choice([*VALUES, "yes", "small", "name"])
        if column == "yes" or dice.random() < 0.15:
            return f"({column} IS {dice.choice(['', 'NOT '])}NULL)" if column != "yes" else "yes"
        values = VALUES[column]
        if dice.random() < 0.2:
            return f"({column} {dice.choice(['', 'NOT '])}IN ({', '.join(dice.sample(values, 2))}))"
        return f"({column} {dice.choice(COMPARISONS)} {dice.choice(values)})"

    return [one(3) for _ in range(count)]


def filtered_rows(dice: random.Random, count: int) -> Rows:
    instants = [
        datetime.datetime(2026, 3, 1, tzinfo=datetime.UTC) + datetime.timedelta(microseconds=n) for n in range(3)
    ]

    def maybe(*values: Any) -> Any:
        return dice.choice([*values, None])

    return [
        {
            "instance": "i",
            "key": maybe("k1", "k2", "b"),
            "at": maybe(*instants),
            "progress": maybe(3, -1, 5 * 10**9),
            "small": maybe(2, -1, 7),
            "day": maybe(datetime.date(2026, 3, 1), datetime.date(1969, 12, 31)),
            "yes": maybe(True, False),
            "name": maybe("b", "", "é", "Z", "\U0001f600", "a" * 40),
        }
        for _ in range(count)
    ]


def read_directly(table: DataFrame, schema: StructType) -> list[dict[str, Any]] | None:
    plain = plain_table(table, schema)
    if plain is None:
        return None
    found = [batch for task in tasks_of("events", plain) for batch in _read(task, schema.fieldNames())]
    return [row for batch in found for row in batch.to_pylist()]


@pytest.mark.slow  # many filters
def test_a_filter_keeps_the_rows_that_spark_keeps(spark: SparkSession, tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(filtered_rows(random.Random(7), 400), FILTERED)
    pq.write_table(rows.slice(0, 250), tmp_path / "0.parquet", row_group_size=90)
    pq.write_table(rows.slice(250), tmp_path / "1.parquet", use_dictionary=False)
    table = spark.read.parquet(f"file://{tmp_path}")
    asked = conditions(11, 60)
    of_spark = table.select(
        *EVENT_COLUMNS.fieldNames(), *(F.expr(sql).alias(f"c{n}") for n, sql in enumerate(asked))
    ).toArrow()
    direct = 0
    for number, sql in enumerate(asked):
        found = read_directly(table.where(sql).select(*EVENT_COLUMNS.fieldNames()), EVENT_COLUMNS)
        if found is None:
            continue
        direct += 1
        wanted = of_spark.filter(of_spark[f"c{number}"]).select(EVENT_COLUMNS.fieldNames()).to_pylist()
        assert sorted(found, key=repr) == sorted(wanted, key=repr), sql
    assert direct > 50  # some the optimizer makes something else of


@pytest.mark.slow
def test_columns_may_be_renamed_constant_and_made_of_a_key(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"order": n, "place": f"p{n % 3}", "opened": START + datetime.timedelta(seconds=n), "wanted": n % 5}
        for n in range(300)
    ]
    orders = pa.schema(
        [("order", pa.int64()), ("place", pa.string()), ("opened", pa.timestamp("us", "UTC")), ("wanted", pa.int32())]
    )
    pq.write_table(pa.Table.from_pylist(rows, orders), tmp_path / "orders.parquet", row_group_size=70)
    happened = [event_row(Event(f"p{n % 3}", n, n % 7), "") for n in range(500)]
    pq.write_table(pa.Table.from_pylist(happened, ARROW_EVENTS), tmp_path / "events.parquet")
    operations = (
        spark.read.parquet(f"file://{tmp_path}/orders.parquet")
        .where("order >= 20 AND place <> 'p2'")
        .select(
            F.lit("").alias("instance"),
            F.col("order").cast("string").alias("op_id"),
            F.col("opened").alias("start"),
            F.lit(60_000).cast("bigint").alias("timeout_ms"),
            F.col("place").alias("key"),
            F.col("wanted").cast("bigint").alias("required"),
        )
    )
    events = spark.read.parquet(f"file://{tmp_path}/events.parquet").where("at < timestamp'2100-01-01'")
    outcomes = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE)
    assert is_direct(outcomes)
    with set_to(spark, DIRECT, "false"):
        other = pipeline.resolve(operations, events, sample=DEFAULT_SAMPLE)
        assert not is_direct(other)
        assert rows_of(outcomes) == rows_of(other)
    assert outcomes.count() == sum(n >= 20 and n % 3 != 2 for n in range(300))
