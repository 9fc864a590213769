"""The tables of outcomes beside the same counted by hand: of Spark, of Spark Connect, and in this process."""

from __future__ import annotations

import random
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError, SchemaError
from abeyant.pipeline import plots
from abeyant.pipeline.notebooks import on_spark
from abeyant.pipeline.schemas import OPERATIONS, OUTCOMES
from abeyant.tables.schemas import OUTCOMES as OUTCOME_COLUMNS

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def tables() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Outcomes, some without a kind, and their operations, with one watch or more, a key twice, and a row twice."""
    rng = random.Random(1)
    operations: list[dict[str, Any]] = [
        {
            "instance": rng.choice(["a", "b"]), "op_id": str(n), "kind": rng.choice(["order", "refund", None]),
            "start": NOON, "timeout_ms": 1000, "condition": "any",
            "watches": [{"key": f"k{rng.randrange(5)}", "required": 1} for _ in range(rng.randint(1, 3))],
        }
        for n in range(300)
    ]  # fmt: skip
    outcomes = []
    for operation in operations:
        ms = round(min(rng.expovariate(1 / 700), 1000.0), 3)
        ended = "completed" if ms < 1000 else "expired"
        row = {name: operation[name] for name in ("instance", "op_id", "kind")}
        outcomes.append({**row, "outcome": ended, "at": NOON + timedelta(milliseconds=ms), "waited_ms": ms})
    return outcomes, [*operations, operations[0]]


def arrow(outcomes: list[dict[str, Any]], operations: list[dict[str, Any]]) -> tuple[pa.Table, pa.Table]:
    return pa.Table.from_pylist(outcomes, OUTCOME_COLUMNS), pa.Table.from_pylist(operations)


def check(found: Any, outcomes: list[dict[str, Any]], operations: list[dict[str, Any]]) -> None:
    rows = {row["kind"]: row for row in found.summary.to_dict("records")}
    counts = Counter((row["kind"] or "(no kind)", row["outcome"]) for row in outcomes)
    assert {(kind, ended): rows[kind][ended] for kind, ended in counts} == counts
    for kind, row in rows.items():
        lengths = sorted(o["waited_ms"] for o in outcomes if (o["kind"] or "(no kind)") == kind)
        exact = lengths[-(-len(lengths) // 2) - 1]
        assert exact <= row["p50_ms"] <= exact * 1.005 + 1e-6
    ended = {o["op_id"] for o in outcomes if o["outcome"] == "expired"}
    struck = {(o["op_id"], o["instance"], w["key"]) for o in operations if o["op_id"] in ended for w in o["watches"]}
    by_hand = Counter((instance, key) for _, instance, key in struck)
    page = found._repr_html_()
    keys = page[page.index("Keys that expire most") :]
    for (instance, key), number in by_hand.items():
        cells = (f"<bdi>{key}</bdi></code></td><td><bdi>{instance}</bdi></td>", f">{number}</td></tr>")
        row = next(row for row in keys.split("<tr>") if cells[0] in row)
        assert cells[1] in row, row


def test_of_spark(either: SparkSession) -> None:
    outcomes, operations = tables()
    frames = either.createDataFrame(outcomes, OUTCOMES), either.createDataFrame(operations, OPERATIONS)
    check(plots(*frames), outcomes, operations)


def test_in_this_process(tmp_path: Path) -> None:
    outcomes, operations = tables()
    found, waiting = arrow(outcomes, operations)
    check(plots(found, waiting), outcomes, operations)
    check(plots(found.to_pandas(), waiting.to_pandas()), outcomes, operations)
    check(plots(found.to_reader(max_chunksize=7), waiting.to_reader(max_chunksize=11)), outcomes, operations)
    pq.write_table(found, tmp_path / "outcomes.parquet")
    assert repr(plots(tmp_path / "outcomes.parquet")) == repr(plots(found))


def test_without_operations_no_keys_are_told_of() -> None:
    found, _ = arrow(*tables())
    assert "Keys that expire most" not in plots(found)._repr_html_()


def test_no_outcomes() -> None:
    found, waiting = arrow(*tables())
    nothing = plots(found.slice(0, 0), waiting)
    assert repr(nothing) == "No operation was resolved"
    assert "Nothing waited." in nothing._repr_html_()


def test_what_is_no_table_of_outcomes_is_refused(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes, operations = tables()
    found, _ = arrow(outcomes, operations)
    frame = spark.createDataFrame(outcomes, OUTCOMES)
    for given, error, said in (
        ((found.drop_columns("outcome"),), SchemaError, "outcomes: no column 'outcome', expected text"),
        ((frame.drop("outcome"),), SchemaError, "outcomes: no column 'outcome', expected string"),
        (([1, 2],), TypeError, "outcomes must be a table with an Arrow interface .*, not list"),
        ((found, frame), TypeError, "operations are a Spark DataFrame, but outcomes are not"),
        ((spark.readStream.format("rate").load(),), AbeyantError, "outcomes are a stream"),
    ):
        with pytest.raises(error, match=said):
            plots(*given)
    unknown = found.set_column(5, "waited_ms", pa.nulls(300, pa.float64()))
    with pytest.raises(SchemaError, match="column 'waited_ms' has nulls"):
        plots(unknown)
    monkeypatch.setattr(on_spark, "MOST_COUNTS", 20)
    with pytest.raises(AbeyantError, match="too many different kinds"):
        plots(frame)


def test_hostile_names_stay_text() -> None:
    outcomes, operations = tables()
    evil = '"></iframe><script>alert(1)</script>&quot;'
    for row in outcomes:
        row["kind"] = evil
    page = plots(*arrow(outcomes, operations))._repr_html_()
    assert page.count('"') == 6, "three attributes of the frame, and nothing ends one early"
    assert page.endswith("></iframe>")
    assert evil not in page


def test_spark_is_not_imported_without_need() -> None:
    program = "import sys\nfrom abeyant import pipeline\npipeline.plots\nprint('pyspark' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
