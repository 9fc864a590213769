"""The summary of outcomes beside the same counted by hand: percentiles, and the keys that expire most."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant.pipeline.analysis import outcomes as outcomes_module
from abeyant.pipeline.analysis.outcomes import binned, expired_keys
from abeyant.pipeline.commands.outcome_result import write_summary
from abeyant.pipeline.commands.stream_run.topic_sink import TopicSink
from abeyant.pipeline.report.outcomes import read_outcomes
from abeyant.pipeline.results import outcome_counts
from abeyant.pipeline.results.outcome_counts import Sample, count_outcomes
from abeyant.pipeline.results.waits import Waits
from abeyant.pipeline.sources.source import Kafka
from pages.page_checks import check_page


@pytest.mark.slow  # a table whole, again and again
def test_counts_percentiles_and_keys_are_those_of_the_table(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(1)
    rows = [(f"{n}", rng.choice(["slow", "fast"]), min(rng.expovariate(1 / 400), 1000.0)) for n in range(3000)]
    rows = [(op, kind, round(ms if kind == "slow" else ms / 50, 3)) for op, kind, ms in rows]
    watches = {op: [f"k{rng.randrange(4)}", f"k{rng.randrange(9)}"] for op, _, _ in rows}
    outcomes = [("i", op, kind, "expired" if ms == 1000.0 else "completed", ms) for op, kind, ms in rows]
    names = ("instance", "op_id", "kind", "outcome", "waited_ms")
    files = [tmp_path / "1.parquet", tmp_path / "2.parquet"]
    for file, half in zip(files, (outcomes[:1000], outcomes[1000:]), strict=True):
        pq.write_table(pa.table(dict(zip(names, map(list, zip(*half, strict=True)), strict=True))), file)
    copies = [*watches.items(), ("0", watches["0"])]  # an operation that is there twice
    operations = spark.createDataFrame(
        [("i", op, [(key, 1) for key in keys]) for op, keys in copies],
        "instance string, op_id string, watches array<struct<key string, required long>>",
    )
    ended = count_outcomes(files)
    keys = expired_keys(ended, operations)
    write_summary(tmp_path, ended, keys, kicker="test", rejected={"late": 2}, about={})
    check_page(tmp_path / "report.html", ["plot-waits"])
    found = read_outcomes(tmp_path)
    expired = [op for op, _, ms in rows if ms == 1000.0]
    assert len(expired) > 50
    assert (found.count("expired"), found.count("completed")) == (len(expired), 3000 - len(expired))
    for row in found.summary.to_dict("records"):
        lengths = sorted(ms for _, kind, ms in rows if kind == row["kind"])
        assert row["operations"] == len(lengths)
        for name, percent in (("p50_ms", 50), ("p95_ms", 95), ("p99_ms", 99)):
            exact = lengths[-(-len(lengths) * percent // 100) - 1]
            assert exact <= row[name] <= exact * 1.005 + 1e-6
        assert row["max_ms"] == lengths[-1]
    by_hand = Counter(key for op in expired for key in set(watches[op]))
    assert found.keys is not None
    counted = dict(zip(found.keys["key"], found.keys["expired"], strict=True))
    assert counted == by_hand
    assert found.keys["expired"].is_monotonic_decreasing
    # Of a few they are counted in this process: the same ones.
    ended = count_outcomes(files)
    by_spark = expired_keys(ended, operations)
    monkeypatch.setattr(outcomes_module, "_FEW", len(expired))
    assert expired_keys(ended, operations).to_pylist() == by_spark.to_pylist()
    # Of very many a sample is looked at, and the counts are estimates, said to be such.
    monkeypatch.setattr(outcome_counts, "EXACT_UP_TO", len(expired) // 2)
    monkeypatch.setattr(outcome_counts, "_BATCH_ROWS", 100)
    ended = count_outcomes(files)
    assert ended.sample is not None
    assert len(expired) // 8 < ended.sample.num_rows <= len(expired) // 2
    assert ended.waits.sort_by("bin").equals(pq.read_table(tmp_path / "waits").sort_by("bin"))
    assert ended.waits.num_rows < 1_500
    waits = Waits()
    waits.add(binned(spark.createDataFrame(outcomes, list(names))).toPandas())
    assert waits.table().equals(ended.waits)
    estimated = expired_keys(ended, operations).to_pandas()
    assert estimated["one_in"].iloc[0] == len(expired) / ended.sample.num_rows
    assert 0.7 < estimated["expired"].sum() / by_hand.total() < 1.4


def test_keys_of_a_few_are_those_of_their_own_instances(spark: SparkSession, tmp_path: Path) -> None:
    names = ("instance", "op_id", "kind", "outcome", "waited_ms")
    rows = [("i", "1", "k", "expired", 5.0), ("j", "2", "k", "expired", 5.0), ("i", "2", "k", "completed", 1.0)]
    pq.write_table(pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))), tmp_path / "1.parquet")
    operations = spark.sql("""
        SELECT instance, op_id, array(named_struct('key', concat(instance, op_id), 'required', 1L), NULL) AS watches
        FROM VALUES ('i', '1'), ('i', '2'), ('j', '1'), ('j', '2'), ('j', NULL) AS (instance, op_id)""")
    found = expired_keys(count_outcomes([tmp_path / "1.parquet"]), operations).to_pylist()
    assert found == [
        {"instance": instance, "key": key, "expired": 1, "one_in": 1.0} for instance, key in (("i", "i1"), ("j", "j2"))
    ]


def test_what_is_pending_for_ever_is_counted_apart(tmp_path: Path) -> None:
    rows = [(str(n), outcome, wait) for n, (outcome, wait) in enumerate([("completed", 1.0), *[("pending", None)] * 2])]
    ids, ends, waits = zip(*rows, strict=True)
    table = {"instance": [""] * 3, "op_id": ids, "kind": ["k"] * 3, "outcome": ends, "waited_ms": waits}
    pq.write_table(pa.table({name: list(values) for name, values in table.items()}), tmp_path / "outcomes.parquet")
    found = count_outcomes([tmp_path / "outcomes.parquet"])
    assert (found.pending, found.count("completed"), found.count("pending")) == (2, 1, 0)


def test_what_is_pending_for_ever_is_counted_on_its_way_to_a_topic(spark: SparkSession) -> None:
    rows = [("", "a", "k", "completed", 1.0), ("", "b", None, "pending", None), ("", "c", "k", "pending", None)]
    schema = "instance string, op_id string, kind string, outcome string, waited_ms double"
    sink = TopicSink(Kafka("localhost:1"), "outcomes")
    for some in rows[:2], rows[2:]:
        sink.count(spark.createDataFrame(some, schema))
    ended = sink.sent.ended()
    assert (ended.pending, ended.count("completed"), ended.count("pending")) == (2, 1, 0)


def test_a_sample_keeps_few_of_many_and_each_as_likely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outcome_counts, "EXACT_UP_TO", 100)
    sample = Sample()
    for part in range(10):
        ids = [f"{part}-{n}" for n in range(300)]
        one_in = sample.sample_at_most(len(ids))
        drawn = ids[::one_in]
        sample.add_drawn(pa.table({"instance": [""] * len(drawn), "op_id": drawn}))
    kept = Counter(op[0] for op in sample.table()["op_id"].to_pylist())
    assert sample.one_in in (32, 64)
    assert 3000 // sample.one_in // 2 < kept.total() <= 100
    assert len(kept) == 10
