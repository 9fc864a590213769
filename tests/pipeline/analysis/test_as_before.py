"""The analyses in columns give the same rows as those in Spark's windows did, which stay in `former` until shown."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline import analysis
from abeyant.pipeline.analysis.by_time import Slices
from abeyant.pipeline.analysis.small_tables import time_tables, waits_tables
from abeyant.pipeline.replayer.what_if import what_if
from abeyant.pipeline.schemas import OBSERVED
from pipeline.analysis.former import by_time, incidents, keys, pending, ranked, summary, timeout_curve
from pipeline.analysis.former.what_if import what_if as former_what_if
from pipeline.conftest import SHIPPED

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

Row = tuple[Any, ...]

WAIT_MS = st.one_of(
    st.sampled_from([None, 0.0, 0.001, 0.0005, 0.0015, 100.0, 500.0, 1000.0, 30_000.0, 1e9]),
    st.floats(0, 5_000, allow_nan=False),
)
START_S = st.one_of(st.none(), st.floats(0, 30), st.floats(0, 1e6), st.sampled_from([0.0, 1.0, 10.0, 11.0]))
OPERATION = st.tuples(
    st.sampled_from(["b1", "b1", "b2", "b3"]),
    st.sampled_from(["PRODUCE", "PRODUCE", "FETCH_CONSUMER", "JOIN_GROUP"]),
    START_S,
    st.lists(st.sampled_from(["k0", "k1", "k2", "k3", "k4", "k5", "k6"]), max_size=4),
    st.sampled_from(["completed", "completed", "expired", None]),
    WAIT_MS,
)


def frame(spark: SparkSession, found: list[list[Row]]) -> DataFrame:
    """One table of many: each has instances of its own."""
    rows = [
        (
            f"{instance}-{table}",
            str(number),
            kind if kind == "PRODUCE" else f"{kind}-{table}",
            None if start is None else EPOCH + timedelta(microseconds=round(start * 1e6)),
            1000,
            [(key, None) for key in keys],
            "all",
            outcome,
            wait,
            kind,
            0,
            None,
        )
        for table, operations in enumerate(found)
        for number, (instance, kind, start, keys, outcome, wait) in enumerate(operations)
    ]
    return spark.createDataFrame(rows, OBSERVED)


def same(found: DataFrame | list[Row], expected: DataFrame | list[Row]) -> None:
    rows, wanted = (sorted(map(_row, some if isinstance(some, list) else some.collect())) for some in (found, expected))
    assert len(rows) == len(wanted)
    for row, other in zip(rows, wanted, strict=True):
        assert row[0] == other[0]
        assert row[1] == pytest.approx(other[1], rel=1e-12, abs=1e-15)


def _row(row: Row) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """What is compared as it is, and what as a number that was summed in another order."""
    values = [value.astimezone(UTC) if isinstance(value, datetime) else value for value in row]
    return (
        tuple("float" if isinstance(value, float) else repr(value) for value in values),
        tuple(value for value in values if isinstance(value, float)),
    )


@pytest.fixture(scope="module", params=["generated", "shipped"])
def operations(request: pytest.FixtureRequest, spark: SparkSession) -> DataFrame:
    if request.param == "shipped":
        from abeyant.pipeline import read_kafka_request_log

        return read_kafka_request_log(spark, SHIPPED).persist()
    found: list[list[Row]] = []

    @settings(max_examples=60, database=None)
    @given(st.lists(OPERATION, max_size=120))
    def gather(some: list[Row]) -> None:
        found.append(some)

    gather()
    return frame(spark, found).persist()


@pytest.mark.parametrize(
    ("now", "before"),
    [
        (analysis.summary, summary.summary),
        (analysis.waits, summary.waits),
        (analysis.by_key, keys.by_key),
        (analysis.pending_over_time, pending.pending_over_time),
        (analysis.timeout_curve, timeout_curve.timeout_curve),
        (analysis.incidents, incidents.incidents),
        (
            lambda rows: what_if(rows, None, [0, 10, 500, 30_000]),
            lambda rows: former_what_if(rows, None, [0, 10, 500, 30_000]),
        ),
    ],
    ids=["summary", "waits", "by_key", "pending", "timeout_curve", "incidents", "what_if"],
)
def test_an_analysis_is_as_before(
    operations: DataFrame, now: Callable[[DataFrame], DataFrame], before: Callable[[DataFrame], DataFrame]
) -> None:
    same(now(operations), before(operations))


def test_pending_plot_is_as_before(operations: DataFrame) -> None:
    rows = pending.pending_over_time(operations).persist()
    same(analysis.pending_plot(rows, 90), pending.pending_plot(rows, 90))


def test_the_tables_of_a_job_are_as_before(spark: SparkSession, operations: DataFrame) -> None:
    requests = operations.groupBy("instance", "api", F.date_trunc("second", "start").alias("at")).agg(
        F.count("*").alias("requests"), F.count_if(F.col("waited_ms") > 0).alias("waited")
    )
    start = F.unix_micros("start")
    (span,) = operations.agg(F.min(start), F.max(start), F.count("*")).collect()
    found = waits_tables(operations, span[2])
    found |= time_tables(operations, requests.where(F.col("at").isNotNull()), Slices(span[0], span[1]), found)
    all_ranked = ranked.ranked_waits(operations)
    by_key = keys.by_key(operations)
    expected = {
        "summary": summary.summary(all_ranked),
        "waits": summary.waits(all_ranked),
        "by_key": by_key,
        "timeout_curve": timeout_curve.timeout_curve(all_ranked, most_points=2000),
        "incidents": incidents.incidents(operations, all_ranked),
        "waits_by_time": by_time.waits_by_time(operations),
        "keys_by_time": by_time.keys_by_time(operations, by_key),
        "requests_by_time": by_time.requests_by_time(requests.where(F.col("at").isNotNull()), operations),
    }
    for name, table in expected.items():
        same(list(zip(*found[name].to_pydict().values(), strict=True)), table)
