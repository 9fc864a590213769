"""Records of JSON as operations and events: what cannot be read is rejected with its reason, the others go on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.schemas import EVENTS, OPERATIONS, REJECT_REASON, REJECTED_ROW, SchemaError
from abeyant.pipeline.sources.records import read_events, read_operations
from abeyant.pipeline.spark.columns import check_table, operations_schema

GOOD = {"op_id": "o", "start": "2026-01-01T10:00:00Z", "timeout_ms": 5, "key": "k"}


def records(spark: SparkSession, values: list[str | bytes | None]) -> DataFrame:
    rows = [
        (
            bytearray(value.encode() if isinstance(value, str) else value) if value is not None else None,
            ("t", 2, offset),
        )
        for offset, value in enumerate(values)
    ]
    return spark.createDataFrame(rows, "value binary, record struct<topic string, partition int, offset bigint>")


def struct(ddl: str) -> StructType:
    fields = StructType.fromDDL(ddl)
    assert isinstance(fields, StructType)
    return fields


def reasons(table: DataFrame) -> list[str | None]:
    rows = sorted(table.collect(), key=lambda row: json.loads(row[REJECTED_ROW])["offset"])
    return [row[REJECT_REASON] for row in rows]


def test_a_record_has_defaults_and_its_own_types(spark: SparkSession) -> None:
    values: list[str | bytes | None] = [
        json.dumps(GOOD),
        json.dumps(GOOD | {"instance": "i", "kind": "x", "condition": "any", "required": "7", "timeout_ms": "5"}),
        json.dumps(GOOD | {"key": None, "watches": [{"key": "a", "required": 3}, {"key": "b"}]}),
        json.dumps({"instance": None, "key": 17, "at": "2026-01-01T10:00:00.000001Z"}),
    ]
    operations = read_operations(records(spark, values))
    check_table(operations, OPERATIONS, "operations")
    first, second, third, _ = sorted(operations.collect(), key=lambda row: row[REJECTED_ROW])
    assert (first.instance, first.kind, first.condition, first.watches) == ("", None, None, [("k", 1)])
    assert (second.instance, second.kind, second.condition, second.watches) == ("i", "x", "any", [("k", 7)])
    assert third.watches == [("a", 3), ("b", 1)]
    assert {first.timeout_ms, second.timeout_ms} == {5}
    events = read_events(records(spark, values[3:]))
    check_table(events, EVENTS, "events")
    [event] = events.selectExpr("*", "unix_micros(at) AS us").collect()
    assert (event.instance, event.key, event.progress, event.us % 1_000_000, event[REJECT_REASON]) == (
        "",
        "17",
        1,
        1,
        None,
    )


def test_what_cannot_be_read_says_why_and_whence(spark: SparkSession) -> None:
    def without(name: str) -> str:
        return json.dumps({key: value for key, value in GOOD.items() if key != name})

    bad: dict[str | bytes | None, str] = {
        None: "no value, or not UTF-8",
        b"\xff\xfe{}": "no value, or not UTF-8",
        "": "not a JSON object",
        "{": "not a JSON object",
        "[1]": "not a JSON object",
        f"[{json.dumps(GOOD)}]": "not a JSON object",
        '"text"': "not a JSON object",
        "null": "not a JSON object",
        "{'op_id': 'o'}": "not a JSON object",
        f"{json.dumps(GOOD)} and more": "not a JSON object",
        json.dumps(GOOD) * 2: "not a JSON object",
        without("op_id"): "no op_id",
        without("start"): "no start",
        without("timeout_ms"): "no timeout_ms",
        without("key"): "no key, and no watches",
        json.dumps(GOOD | {"start": "yesterday"}): "start is not a timestamp: yesterday",
        json.dumps(GOOD | {"start": 1767225600}): "start is not a timestamp: 1767225600",
        json.dumps(GOOD | {"timeout_ms": "soon"}): "timeout_ms is not a whole number: soon",
        json.dumps(GOOD | {"timeout_ms": {"s": 1}}): 'timeout_ms is not a whole number: {"s":1}',
        json.dumps(GOOD | {"required": 1.5}): "required is not a whole number: 1.5",
        json.dumps(GOOD | {"watches": "k"}): "watches is not a list of key and required",
    }
    table = read_operations(records(spark, [json.dumps(GOOD), *bad, json.dumps(GOOD)]))
    assert reasons(table) == [None, *bad.values(), None]
    rows = [json.loads(row[REJECTED_ROW]) for row in table.collect()]
    assert {(row["topic"], row["partition"]) for row in rows} == {("t", 2)}
    assert [row["value"] for row in rows if row["offset"] == 4] == ["{"]
    assert [row["value_base64"] for row in rows if row["offset"] == 2] == ["//57fQ=="]


@pytest.mark.slow  # many expressions
def test_columns_come_from_expressions_over_fields_and_the_record(spark: SparkSession) -> None:
    mapping = {
        "op_id": "concat(record.topic, '-', record.offset)",
        "key": "upper(`the order`)",
        "start": "timestamp(at)",
        "timeout_ms": "minutes * 60000",
    }
    said = {"the order": "k", "at": "2026-01-01T10:00:00Z", "minutes": 15}
    values = [said, said | {"minutes": "x"}, said | {"at": "?"}, said | {"minutes": 10**18}]
    table = read_operations(records(spark, [json.dumps(value) for value in values]), mapping)
    # An expression that fails on a record ends that record, not the stream.
    assert reasons(table) == [
        None,
        "no timeout_ms: minutes * 60000 is null",
        "no start: timestamp(at) is null",
        "no timeout_ms: minutes * 60000 is null",
    ]
    [row] = table.where(f"{REJECT_REASON} IS NULL").collect()
    assert (row.op_id, row.watches, row.timeout_ms) == ("t-0", [("K", 1)], 900_000)


def test_further_columns_are_read_where_they_are_named(spark: SparkSession) -> None:
    """By an expression or by the declared fields; how long may be a duration or an instant."""
    said = GOOD | {"timeout": "15 min", "died": "d", "deadline": "2026-01-01T12:00:00Z", "extend_ms": 7}
    values = [json.dumps(said | {"timeout_ms": None} | more) for more in ({}, {"timeout": "soon"}, {"timeout": None})]
    mapping = {"cancel_key": "died", "extend": "INTERVAL 5 MINUTES"}
    table = read_operations(records(spark, list(values)), mapping, struct("timeout string, extend_ms bigint"))
    assert reasons(table) == [None, "timeout is not a duration such as '15 min': soon", "no timeout"]
    assert operations_schema(table).fieldNames() == [
        "instance", "op_id", "kind", "start", "timeout", "watches", "condition", "cancel_key", "extend_ms", "extend",
    ]  # fmt: skip
    [row] = table.where(f"{REJECT_REASON} IS NULL").collect()
    minute = timedelta(minutes=1)
    assert (row.timeout, row.extend, row.extend_ms, row.cancel_key) == (15 * minute, 5 * minute, 7, "d")
    assert "timeout_ms" not in table.columns
    watches = struct("watches array<struct<key string, required bigint, role string>>, deadline string")
    listed = {"key": None, "watches": [{"key": "a"}, {"key": "b", "role": "cancel"}]}
    values = [json.dumps(said | listed), json.dumps(said)]
    table = read_operations(records(spark, list(values)), {}, watches).selectExpr("*", "unix_micros(deadline) AS us")
    found = table.orderBy(REJECTED_ROW).collect()
    assert [row.watches for row in found] == [[("a", 1, None), ("b", 1, "cancel")], [("k", 1, None)]]
    assert {row.us for row in found} == {1_767_268_800_000_000}


def test_fields_may_have_types_and_parts(spark: SparkSession) -> None:
    fields = struct("payment struct<at timestamp, order: string>, n bigint")
    values = ['{"payment":{"at":"2026-01-01T10:00:00Z","order":"k"},"n":3}', '{"payment":"none","n":3}', '{"n":"x"}']
    events = read_events(
        records(spark, list(values)), {"key": "payment.order", "at": "payment.at", "progress": "n"}, fields
    )
    assert reasons(events)[0] is None
    assert all(reason is not None and reason.startswith("no ") for reason in reasons(events)[1:])
    capitals = read_events(
        records(spark, ['{"Key":"k","At":"2026-01-01T10:00:00Z"}']), {}, struct("Key string, At string")
    )
    assert [row.key for row in capitals.collect()] == ["k"]


@pytest.mark.parametrize(
    ("mapping", "said"),
    [
        ({"id": "x"}, "cannot map the unknown column 'id'"),
        ({"op_id": "nothing("}, "operations: op_id=nothing("),
        ({"op_id": "no_such_function(x)"}, "operations: op_id=no_such_function(x): "),
        ({"timeout_ms": "60*24*3600*1000"}, "operations: timeout_ms=60*24*3600*1000: [ARITHMETIC_OVERFLOW"),
        ({"op_id": "payment.id"}, "operations: op_id=payment.id: "),
    ],
)
def test_a_mapping_that_cannot_work_is_refused_at_once(
    spark: SparkSession, mapping: Mapping[str, str], said: str
) -> None:
    with pytest.raises(AbeyantError) as error:
        read_operations(records(spark, []), mapping)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_column_of_another_type_is_refused(spark: SparkSession) -> None:
    def refused(mapping: Mapping[str, str], fields: str) -> Any:
        with pytest.raises(SchemaError) as error:
            read_events(records(spark, []), mapping, struct(fields))
        return str(error.value)

    said = "events: column 'at' is bigint, expected timestamp; timestamp_millis(n) or timestamp_seconds(n) makes"
    assert refused({"at": "n"}, "n bigint") == f"{said} a time of a number; --event at=SQL converts it"
    said = "events: column 'progress' is boolean, expected bigint; --event progress=SQL converts it"
    assert refused({}, "progress boolean") == said
