"""The analyses against dumb plain-Python oracles, on random tables full of ties, zeros and unknowns."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline import by_key, incidents, pending_over_time, pending_plot, summary, timeout_curve, waits
from abeyant.pipeline.schemas import BY_KEY, INCIDENTS, OBSERVED, PENDING, SUMMARY, TIMEOUT_CURVE, WAITS, SchemaError
from abeyant.pipeline.spark.columns import check_table

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = ("PRODUCE", "FETCH_CONSUMER", "JOIN_GROUP")


@dataclass(frozen=True)
class Op:
    instance: str
    kind: str
    start_us: int
    wait_us: int
    outcome: str | None
    keys: tuple[str, ...]


def some_operations(seed: int) -> list[Op]:
    """Make operations with ties of all sorts, spread over minutes, one kind much larger than the others."""
    dice = random.Random(seed)
    grain = dice.choice([1, 1000, 250_000])  # the coarser, the more ties
    made = []
    for _ in range(dice.choice([1, 40, 900])):
        kind = KINDS[min(int(dice.expovariate(1)), 2)]
        wait = dice.choice([0, 0, 500_000, round(dice.lognormvariate(9, 3)) // grain * grain])
        made.append(
            Op(
                instance=dice.choice(["b1", "b1", "b2", "b3"]),
                kind=kind,
                start_us=dice.randrange(90_000_000) // grain * grain,
                wait_us=wait,
                outcome=dice.choice(["completed", "completed", "expired", None]),
                keys=tuple(f"k{dice.randrange(4)}" for _ in range(dice.randrange(4))),
            )
        )
    return made


def table(spark: SparkSession, operations: list[Op]) -> DataFrame:
    rows = [
        (
            op.instance,
            str(number),
            op.kind,
            EPOCH + timedelta(microseconds=op.start_us),
            1000,
            [(key, None) for key in op.keys],
            "all",
            op.outcome,
            op.wait_us / 1000,
            op.kind,
            *(0, None),
            *(None, None, None, None),
        )
        for number, op in enumerate(operations)
    ]
    return spark.createDataFrame(rows, OBSERVED)


def grouped(operations: Iterable[Op], *, by_keys: bool = False) -> dict[tuple[str, ...], list[Op]]:
    groups: dict[tuple[str, ...], list[Op]] = defaultdict(list)
    for op in operations:
        if by_keys:
            for key in set(op.keys):
                groups[op.instance, op.kind, key].append(op)
        else:
            groups[op.instance, op.kind].append(op)
            groups["*", op.kind].append(op)
    return groups


def expected_waits(group: list[Op]) -> dict[str, float]:
    ordered = sorted(op.wait_us for op in group)
    at = {p: ordered[math.ceil(p * len(ordered) / 100) - 1] / 1000 for p in (50, 95, 99)}
    return {"p50_ms": at[50], "p95_ms": at[95], "p99_ms": at[99], "max_ms": ordered[-1] / 1000}


def expected_share(group: list[Op]) -> float | None:
    known = [op for op in group if op.outcome is not None]
    return sum(op.outcome == "expired" for op in known) / len(known) if known else None


def found_rows(frame: DataFrame, *by: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = [row.asDict() for row in frame.collect()]
    found = {tuple(row[name] for name in by): row for row in rows}
    assert len(found) == len(rows)
    return found


def us(moment: datetime) -> int:
    """Return microseconds since EPOCH of what collect() gives: a naive time of this machine's zone."""
    return round((moment.astimezone(UTC) - EPOCH) / timedelta(microseconds=1))


def some_traces(*seeds: int) -> list[Op]:
    """Traces in one table, each with instances of its own: an analysis of many rows costs Spark as much as of few."""
    return [replace(op, instance=f"{op.instance}-{seed}") for seed in seeds for op in some_operations(seed)]


# Of 40, 900, 900 and 40 operations, in grains of 1 ms, 1 us twice, and 250 ms; and of a single operation.
@pytest.fixture(params=[(0, 1, 3, 5), (2,)], ids=["four traces", "one operation"], scope="module")
def case(request: pytest.FixtureRequest, spark: SparkSession) -> tuple[list[Op], DataFrame]:
    operations = some_traces(*request.param)
    return operations, table(spark, operations).persist()


Case = tuple[list[Op], DataFrame]


def test_summary(case: Case) -> None:
    operations, frame = case
    result = summary(frame)
    check_table(result, SUMMARY, "summary")
    found = found_rows(result, "instance", "kind")
    groups = grouped(operations)
    assert found.keys() == groups.keys()
    for name, group in groups.items():
        outcomes = [op.outcome for op in group]
        assert found[name] == {
            "instance": name[0],
            "kind": name[1],
            "operations": len(group),
            "waited": sum(op.wait_us > 0 for op in group),
            "completed": outcomes.count("completed"),
            "expired": outcomes.count("expired"),
            "unknown": outcomes.count(None),
            "expired_share": expected_share(group),
            **expected_waits(group),
        }


def test_by_key(case: Case) -> None:
    operations, frame = case
    result = by_key(frame)
    check_table(result, BY_KEY, "by_key")
    found = found_rows(result, "instance", "kind", "key")
    groups = grouped(operations, by_keys=True)
    assert found.keys() == groups.keys()
    for name, group in groups.items():
        outcomes = [op.outcome for op in group]
        assert found[name] == dict(zip(("instance", "kind", "key"), name, strict=True)) | {
            "operations": len(group),
            "completed": outcomes.count("completed"),
            "expired": outcomes.count("expired"),
            "expired_share": expected_share(group),
            **expected_waits(group),
            "total_waited_ms": sum(op.wait_us for op in group) / 1000,
        }


def expected_pending(group: list[Op]) -> list[tuple[int, int]]:
    times = sorted({t for op in group for t in (op.start_us, op.start_us + op.wait_us)})
    counted = [(t, sum(op.start_us <= t < op.start_us + op.wait_us for op in group)) for t in times]
    before = [0, *(n for _, n in counted)]
    return [(t, n) for (t, n), last in zip(counted, before, strict=False) if n != last]


def test_pending_over_time(case: Case) -> None:
    operations, frame = case
    result = pending_over_time(frame)
    check_table(result, PENDING, "pending")
    found: dict[tuple[str, ...], list[tuple[int, int]]] = defaultdict(list)
    for row in result.collect():
        found[row["instance"], row["kind"]].append((us(row["at"]), row["pending"]))
    expected = {name: expected_pending(group) for name, group in grouped(operations).items()}
    assert {name: sorted(series) for name, series in found.items()} == {n: e for n, e in expected.items() if e}


Curves = dict[tuple[str, str], list[tuple[int, int]]]


@pytest.fixture(scope="module")
def pending(spark: SparkSession) -> tuple[DataFrame, Curves]:
    frame = pending_over_time(table(spark, some_operations(5))).persist()
    exact: Curves = defaultdict(list)
    for row in frame.collect():
        exact[row["instance"], row["kind"]].append((us(row["at"]), row["pending"]))
    return frame, exact


@pytest.mark.parametrize("points", [3, 30, 100_000])
def test_pending_plot_keeps_every_peak(pending: tuple[DataFrame, Curves], points: int) -> None:
    frame, exact = pending
    kept: Curves = defaultdict(list)
    plot = pending_plot(frame, points)
    check_table(plot, PENDING, "pending_plot")
    for row in plot.collect():
        kept[row["instance"], row["kind"]].append((us(row["at"]), row["pending"]))
    assert kept.keys() == exact.keys()
    times = [t for series in exact.values() for t, _ in series]
    first, span, bins = min(times), max(times) - min(times) + 1, points // 3
    for name, series in exact.items():
        assert len(kept[name]) == len(set(kept[name])) <= points
        expected = set()
        inside: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for t, n in series:
            inside[(t - first) * bins // span].append((t, n))
        for group in inside.values():
            expected |= {
                min(group, key=lambda p: (p[1], p[0])),
                max(group, key=lambda p: (p[1], -p[0])),
                max(group),
            }
        assert set(kept[name]) == expected


def expected_curve(group: list[Op]) -> list[tuple[float, int, int, float, float, float]]:
    """Kaplan and Meier's estimate and Greenwood's log-log band, straight from their definitions."""
    share, spread, rows = 1.0, 0.0, []
    longest = max(op.wait_us for op in group)
    for wait in sorted({op.wait_us for op in group}):
        at_risk = sum(op.wait_us >= wait for op in group)
        completed = sum(op.wait_us == wait and op.outcome == "completed" for op in group)
        share *= 1 - completed / at_risk
        if completed < at_risk:
            spread += completed / (at_risk * (at_risk - completed))
        low = high = share
        if 0 < share < 1:
            width = 1.959963984540054 * math.sqrt(spread) / abs(math.log(share))
            low, high = share ** math.exp(width), share ** math.exp(-width)
        if completed or wait == longest:
            rows.append((wait / 1000, at_risk, completed, share, low, high))
    return rows


def test_timeout_curve(case: Case) -> None:
    operations, frame = case
    result = timeout_curve(frame)
    check_table(result, TIMEOUT_CURVE, "timeout_curve")
    found: dict[tuple[str, ...], list[tuple[float, ...]]] = defaultdict(list)
    for row in result.collect():
        found[row["instance"], row["kind"]].append(tuple(row[name] for name in TIMEOUT_CURVE.names[2:]))
    groups = grouped(operations)
    assert found.keys() == groups.keys()
    for name, group in groups.items():
        expected = expected_curve(group)
        series = sorted(found[name])
        assert [point[:3] for point in series] == [point[:3] for point in expected]
        for point, wanted in zip(series, expected, strict=True):
            assert point[3:] == pytest.approx(wanted[3:], rel=1e-9, abs=1e-12)


def test_the_curve_without_expiries_is_the_share_of_longer_waits(spark: SparkSession) -> None:
    operations = [Op("b", "K", 0, wait, "completed", ()) for wait in (0, 1, 1, 5, 9)]
    rows = sorted(
        timeout_curve(table(spark, operations)).where("instance = 'b'").collect(), key=lambda r: r["timeout_ms"]
    )
    assert [row["share_expiring"] for row in rows] == pytest.approx([0.8, 0.4, 0.2, 0.0])


def test_a_thinned_curve_keeps_true_points(spark: SparkSession) -> None:
    dice = random.Random(3)
    operations = [Op("b", "K", 0, round(dice.lognormvariate(12, 2)), "completed", ()) for _ in range(800)]
    operations += [Op("b", "few", 0, wait, "completed", ()) for wait in range(50)]
    frame = table(spark, operations)
    exact, thin = (
        {tuple(row) for row in timeout_curve(frame, points=most).collect() if row["instance"] == "b"}
        for most in (None, 100)
    )
    assert thin < exact
    kinds = {kind: [row for row in thin if row[1] == kind] for kind in ("K", "few")}
    assert len(kinds["few"]) == 50
    assert 100 < len(kinds["K"]) < 700
    assert max(exact) in thin or max(row[2] for row in exact) == max(row[2] for row in thin)


def test_waits(case: Case) -> None:
    operations, frame = case
    result = waits(frame)
    check_table(result, WAITS, "waits")
    groups = grouped(operations)
    counted = {name: len(group) for name, group in groups.items()}
    seen: dict[tuple[str, ...], int] = defaultdict(int)
    for row in result.collect():
        name = row["instance"], row["kind"]
        inside = [
            op
            for op in groups[name]
            if (op.outcome or "unknown") == row["outcome"]
            and (row["low_ms"] <= op.wait_us / 1000 < row["high_ms"] if row["high_ms"] else op.wait_us == 0)
        ]
        assert row["operations"] == len(inside) > 0
        assert row["high_ms"] == pytest.approx(row["low_ms"] * 10**0.1)
        seen[name] += row["operations"]
    assert seen == counted


def test_waits_at_the_edges_of_bins(spark: SparkSession) -> None:
    operations = [Op("b", "K", 0, 10**power, "completed", ()) for power in range(9)]
    rows = waits(table(spark, operations)).where("instance = 'b'").collect()
    assert sorted(row["low_ms"] for row in rows) == [10.0**power for power in range(-3, 6)]


def struck(operations: list[Op]) -> dict[tuple[str, int], list[Op]]:
    """The incidents of long waits, by the rule, with a list and a loop; by kind and first start."""
    found: dict[tuple[str, int], list[Op]] = {}
    for kind in {op.kind for op in operations}:
        waited = [op for op in operations if op.kind == kind and op.wait_us > 0]
        lengths = [op.wait_us for op in waited] or [0]
        usual = float(np.percentile(lengths, 95))
        if kind == "PRODUCE":
            usual = min(usual, max(3 * float(np.percentile(lengths, 50)), 25_000))
        long = max(10 * usual, 100_000)
        fails = "FETCH" not in kind
        suffer = [op for op in waited if op.wait_us >= long or (fails and op.outcome == "expired")]
        bursts: list[list[Op]] = []
        for op in sorted(suffer, key=lambda op: op.start_us + op.wait_us):
            second = (op.start_us + op.wait_us) // 1_000_000
            last = bursts[-1][-1] if bursts else None
            if last is None or second - (last.start_us + last.wait_us) // 1_000_000 > 10:
                bursts.append([])
            bursts[-1].append(op)
        found |= {(kind, min(op.start_us for op in burst)): burst for burst in bursts if len(burst) >= 3}
    return found


def test_incidents(case: Case) -> None:
    operations, frame = case
    late = [replace(op, start_us=op.start_us + 200_000_000, wait_us=2 * 10**9, keys=("k9",)) for op in operations[-4:]]
    mixed = frame.union(table(frame.sparkSession, late))
    result = incidents(mixed)
    check_table(result, INCIDENTS, "incidents")
    found = {(row["kind"], us(row["first"])): row for row in result.where("trouble = 'waited'").collect()}
    expected = struck([*operations, *late])
    assert found.keys() == expected.keys()
    for name, burst in expected.items():
        row, expires = found[name], [op for op in burst if op.outcome == "expired" and "FETCH" not in op.kind]
        assert us(row["last"]) == max(op.start_us + op.wait_us for op in burst)
        assert (row["operations"], row["expired"]) == (len(burst), len(expires))
        assert row["longest_ms"] == max(op.wait_us for op in burst) / 1000
        assert row["instances"] == sorted({op.instance for op in burst})
        keys = Counter(key for op in burst for key in set(op.keys))
        assert (row["keys_struck"] or 0) == len(keys)
        assert (row["keys"] or []) == sorted(keys, key=lambda key: (-keys[key], key))[:5]


def test_a_burst_is_an_incident_and_a_long_poll_is_none(spark: SparkSession) -> None:
    usual = [Op("b1", kind, 10_000 * n, 2_000, "completed", ("k",)) for n in range(200) for kind in KINDS]
    failed = [Op("b2", kind, 60_000_000 + n, 1_500_000, "expired", ("k", "l")) for n in range(3) for kind in KINDS]
    polls = [Op("b1", "FETCH_CONSUMER", 90_000_000 + n, 5_000, "expired", ("k",)) for n in range(50)]
    own = [Op("b1", "PREFETCH", 90_000_000 + n, 5_000, "expired", ("k",)) for n in range(4)]  # none of Kafka's
    rows = incidents(table(spark, [*usual, *failed, *polls, *own])).orderBy("kind").collect()
    assert [(row["kind"], row["operations"], row["expired"], row["keys"]) for row in rows] == [
        ("FETCH_CONSUMER", 3, 0, ["k", "l"]),  # 1.5 s is long for its kind
        ("JOIN_GROUP", 3, 3, ["k", "l"]),
        ("PREFETCH", 4, 4, ["k"]),
        ("PRODUCE", 3, 3, ["k", "l"]),
    ]


@pytest.mark.slow  # one more log
def test_clients_that_are_refused_are_an_incident_and_followers_are_none(spark: SparkSession) -> None:
    kinds = ("PRODUCE", "FETCH_FOLLOWER")
    rows = table(spark, [Op("b1", kind, 1_000 * n, 10, "completed", ("k",)) for n in range(4) for kind in kinds])
    assert incidents(rows).count() == 0
    refused = rows.withColumn("error_code", F.lit(6))
    assert [(row["kind"], row["trouble"], row["operations"]) for row in incidents(refused).collect()] == [
        ("PRODUCE", "refused", 4)
    ]


@pytest.mark.slow  # one more log
def test_few_joins_are_an_incident_only_if_they_were_stuck(spark: SparkSession) -> None:
    joins = [
        Op("b1", "JOIN_GROUP", 0, wait_us, "completed", ("join-g",)) for wait_us in (5_000_000, 5_000_000, 9_999_999)
    ]
    assert incidents(table(spark, joins)).count() == 0
    stuck = replace(joins[0], wait_us=10_000_000)
    assert [row["trouble"] for row in incidents(table(spark, [*joins, stuck])).collect()] == ["rebalanced"]


@pytest.mark.slow
def test_no_operation_no_row(spark: SparkSession) -> None:
    empty = table(spark, [])
    for analysis in (summary, by_key, pending_over_time, timeout_curve, waits, incidents):
        assert analysis(empty).count() == 0
    assert pending_plot(pending_over_time(empty)).count() == 0


def test_a_table_that_is_none_says_what_is_wrong(spark: SparkSession) -> None:
    frame = table(spark, [])
    with pytest.raises(SchemaError, match="operations: no column 'waited_ms', expected double"):
        summary(frame.drop("waited_ms"))
    with pytest.raises(SchemaError, match="operations: column 'start' is string, expected timestamp"):
        pending_over_time(frame.withColumn("start", frame["start"].cast("string")))
    with pytest.raises(SchemaError, match="operations: no column 'watches', expected array<struct<key"):
        by_key(frame.drop("watches"))
    with pytest.raises(ValueError, match="points must be at least 3, not 2"):
        pending_plot(pending_over_time(frame), 2)
