"""Other time-outs: exact against `resolve` run for each, and against brute force; of a log, no more than it tells."""

from __future__ import annotations

import math
from collections import defaultdict
from functools import cache
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.pipeline.replayer.what_if import client_timeouts
from abeyant.pipeline.report.offers import Offer, clients_to_change
from abeyant.pipeline.schemas import CLIENT_TIMEOUTS, WHAT_IF, SchemaError
from abeyant.pipeline.spark.columns import check_table
from pipeline.long_known import Known, traces, with_timeout
from pipeline.resolve_traces import MS, Deadline, Event, Op, Watch, by_brute_force
from pipeline.trace_tables import event_row, events_table, operation_row, operations_table

TIMEOUTS = [0, 1, 2, 5, 8, 30]
PERCENTILES = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99, "max_ms": 100}

Found = dict[tuple[str, int], dict[str, Any]]


def rows_of(table: DataFrame) -> Found:
    check_table(table, WHAT_IF, "what_if")
    assert table.columns == WHAT_IF.fieldNames()
    rows = table.toArrow().to_pylist()
    found = {(row["instance"], row["timeout_ms"]): row for row in rows}
    assert len(found) == len(rows)
    return found


@cache
def by_hand(deadline: Deadline) -> Found:
    """Every trace and every time-out by brute force; percentiles by nearest rank."""
    found: Found = {}
    for timeout in TIMEOUTS:
        groups: dict[str, list[tuple[str, float]]] = defaultdict(list)
        for number, trace in enumerate(traces()):
            trace = with_timeout(trace, timeout)
            outcomes = by_brute_force(trace, deadline)
            for op in trace.operations:
                outcome, at = outcomes[op.op_id]
                for instance in (f"t{number}", "*"):
                    groups[instance].append((outcome, (at - op.start) / MS))
        for instance, ends in groups.items():
            waits = sorted(wait for _, wait in ends)
            expired = sum(outcome == "expired" for outcome, _ in ends)
            found[instance, timeout] = {
                "instance": instance,
                "kind": "TEST",
                "timeout_ms": timeout,
                "operations": len(ends),
                "completed": len(ends) - expired,
                "expired": expired,
                "unknown": 0,
                "expired_share": expired / len(ends),
                "expired_share_most": expired / len(ends),
                **{name: waits[math.ceil(len(waits) * p / 100) - 1] for name, p in PERCENTILES.items()},
            }
    return found


def watched_for_long(known: Known) -> DataFrame:
    return known.outcomes.withColumn("timeout_ms", F.lit(None).cast("long"))


def test_o1_to_o3_one_pass_equals_brute_force_for_each_time_out(known: Known) -> None:
    unlimited = known.operations.withColumn("timeout_ms", F.lit(None).cast("long"))
    assert rows_of(pipeline.what_if(unlimited, known.events, TIMEOUTS)) == by_hand("inclusive")
    exclusive = pipeline.what_if(watched_for_long(known), None, TIMEOUTS, deadline="exclusive")
    assert rows_of(exclusive) == by_hand("exclusive")


def test_one_pass_equals_resolve_run_for_each_time_out(known: Known) -> None:
    """One table holds every operation once for each time-out, as an instance of its own."""
    each = F.explode(F.array(*(F.lit(timeout).cast("long") for timeout in TIMEOUTS)))
    numbered = F.concat_ws(":", "instance", "timeout_ms").alias("instance")
    operations = known.operations.withColumn("timeout_ms", each).withColumn("instance", numbered)
    events = known.events.withColumn("timeout_ms", each).withColumn("instance", numbered)
    by_resolve: dict[tuple[str, int], tuple[int, int]] = {}
    expired = F.count_if(F.col("outcome") == "expired").alias("expired")
    for row in (
        pipeline.resolve(operations, events, deadline="exclusive")
        .groupBy("instance")
        .agg(F.count("*").alias("operations"), expired)
        .collect()
    ):
        instance, timeout = row.instance.split(":")
        by_resolve[instance, int(timeout)] = row.operations, row.expired
    found = rows_of(pipeline.what_if(watched_for_long(known), None, TIMEOUTS, deadline="exclusive"))
    ends = {place: (row["operations"], row["expired"]) for place, row in found.items() if place[0] != "*"}
    assert ends == by_resolve


def test_a_log_says_no_more_than_it_knows(known: Known) -> None:
    """With their own time-outs, most operations were watched for less than what is asked."""
    found = rows_of(pipeline.what_if(known.log, None, TIMEOUTS))
    unknown = told = 0
    for place, truth in by_hand("inclusive").items():
        row = found[place]
        unknown += row["unknown"]
        assert row["operations"] == truth["operations"] == row["completed"] + row["expired"] + row["unknown"]
        assert row["expired"] <= truth["expired"] <= row["expired"] + row["unknown"]
        assert row["expired_share"] <= truth["expired_share"] <= row["expired_share_most"]
        for name in PERCENTILES:
            assert row[name] in (None, truth[name])
            told += bool(row["unknown"]) and row[name] is not None
        if not row["unknown"]:
            assert row == truth
    assert unknown > 100
    assert told > 100


def test_kafka_expires_up_to_a_millisecond_early_and_that_is_no_time_out_left_unknown(spark: SparkSession) -> None:
    log = spark.createDataFrame(
        [("i", "FETCH", 500, "expired", 499.3), ("i", "FETCH", 500, None, 20.0), ("i", "FETCH", None, None, None)],
        "instance string, kind string, timeout_ms long, outcome string, waited_ms double",
    )
    found = rows_of(pipeline.what_if(log, None, [10, 500, 501]))
    ends = {place[1]: (row["expired"], row["unknown"]) for place, row in found.items() if place[0] == "i"}
    assert ends == {10: (2, 0), 500: (1, 1), 501: (0, 2)}


def test_whom_to_change(spark: SparkSession) -> None:
    """The clients whose time-out is not the one offered, against a loop over the operations."""
    waits = [
        (f"app-{n % 5}" if n % 7 else None, timeout, float(n % 40 if n % 151 else timeout))
        for n, timeout in enumerate([50, 100, 1_000] * 400)
    ]
    rows = [("PRODUCE", *wait) for wait in [*waits, ("unlimited", None, 1.0), ("as offered", 100, 1.0)]]
    columns = "kind string, client_id string, timeout_ms long, waited_ms double"
    operations = spark.createDataFrame([*rows, ("FETCH", "poller", 500, 500.0)], columns)
    ended = F.expr("if(waited_ms >= timeout_ms, 'expired', 'completed')")
    clients = client_timeouts(operations.withColumn("outcome", ended))
    check_table(clients, CLIENT_TIMEOUTS, "client_timeouts")
    offer = Offer("PRODUCE", 0.01, pd.Series({"timeout_ms": 100}), is_enough=True)
    expected: dict[str, dict[str, Any]] = {}
    for client, timeout, waited in waits:
        if timeout != 100:
            new = {"operations": 0, "expired": 0, "least_ms": timeout, "most_ms": 0}
            mine = expected.setdefault(client or "", new)
            mine["operations"] += 1
            mine["expired"] += waited >= timeout
            mine["least_ms"], mine["most_ms"] = min(mine["least_ms"], timeout), max(mine["most_ms"], timeout)
    listed = sorted(expected.items(), key=lambda each: (-each[1]["expired"], -each[1]["operations"], each[0]))
    found = clients_to_change(offer, clients.toArrow().to_pandas())
    assert found.to_dict("records") == [{"client_id": client} | numbers for client, numbers in listed]
    assert clients_to_change(offer._replace(is_enough=False), found).empty
    assert clients_to_change(offer, None).empty


def test_what_resolve_sets_aside_is_rejected_here(spark: SparkSession) -> None:
    watches = (Watch("k", 1),)
    rows = [operation_row(Op(name, 0, ms, watches, "all")) for name, ms in (("fine", 5), ("negative", -5))]
    rows.append(operation_row(Op("unlimited", 0, 0, watches, "all")) | {"timeout_ms": None})
    rows.append(operation_row(Op("unwatched", 0, 5, (), "all")))
    operations, events = operations_table(spark, rows), events_table(spark, [event_row(Event("k", 2 * MS, 1))])
    found = rows_of(pipeline.what_if(operations, events, [1, 9]))
    assert {place: (row["operations"], row["expired"]) for place, row in found.items() if place[0] == "i"} == {
        ("i", 1): (2, 2),
        ("i", 9): (2, 0),
    }


def test_what_is_no_time_out_is_refused(known: Known) -> None:
    operations, events = known.operations, known.events
    with pytest.raises(ValueError, match="timeouts_ms is empty"):
        pipeline.what_if(operations, events, [])
    for wrong in (-1, 1.5, True):
        with pytest.raises(ValueError, match="a time-out must be a whole number of milliseconds"):
            pipeline.what_if(operations, events, [wrong])  # type: ignore[list-item]
    with pytest.raises(SchemaError, match="operations: no column 'outcome'"):
        pipeline.what_if(operations, None, [1])
    with pytest.raises(ValueError, match="deadline must be"):
        pipeline.what_if(operations, events, [1], deadline="open")  # type: ignore[arg-type]
