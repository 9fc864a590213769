"""`abeyant model` on genuine Kafka: every outcome as logged, the errors that docs/model.md tells, and a page."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant.cli import main
from abeyant.pipeline.commands.model import _found
from abeyant.pipeline.replication.explanations import OUTCOME, UNEXPLAINED
from abeyant.pipeline.request_log.line import LineParser
from abeyant.pipeline.request_log.replication import facts
from abeyant.pipeline.schemas import HIGH_WATERMARKS, PREDICTIONS
from abeyant.pipeline.spark.columns import check_table
from pages.page_checks import check_page
from pipeline.conftest import SHIPPED
from pipeline.request_log.kafka_lines import line, names_told

DOCS = Path(__file__).parents[3] / "docs" / "model.md"
TABLES = ["high_watermarks", "predictions", "explanations", "errors", "agreement", "outliers"]


@pytest.fixture(scope="module")
def result(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("model") / "out"
    assert main(["model", str(SHIPPED), "--out", str(out), "--quiet"]) == 0
    return out


@pytest.mark.slow  # of a whole log
def test_every_produce_ends_as_kafka_says_and_nearly_all_when_it_says(spark: SparkSession, result: Path) -> None:
    for name, schema in (("predictions", PREDICTIONS), ("high_watermarks", HIGH_WATERMARKS)):
        check_table(spark.read.parquet(f"file://{result / name}"), schema, name)
    rows = pq.read_table(result / "predictions").to_pylist()
    # 18,229 produces, less 4,010 with acks=1, 248 with acks=0 and 37 that were refused at once.
    assert len(rows) == len({(row["instance"], row["op_id"]) for row in rows}) == 13_934
    assert sum(row["logged"] == row["predicted"] == "expired" for row in rows) == 60
    assert not any(row["explanation"] == OUTCOME for row in rows)
    near = sum(abs(row["error_ms"]) <= 1 for row in rows)
    assert near / len(rows) > 0.94
    assert sum(row["explanation"] == UNEXPLAINED for row in rows) / len(rows) < 0.01
    assert sum(row["predicted_ms"] > 1000 for row in rows) > 100  # freezes: not only what is over at once


@pytest.mark.slow  # of a whole log
def test_the_figures_in_the_documentation_are_these(result: Path) -> None:
    told = {
        match[1].strip(): int(match[2].replace(",", ""))
        for match in re.finditer(r"^\| ([a-z' ]+?) \| ([\d,]+) \|", DOCS.read_text(), re.MULTILINE)
    }
    found = {row["explanation"]: row["produces"] for row in pq.read_table(result / "explanations").to_pylist()}
    assert {name: count for name, count in told.items() if name in found} == found


@pytest.mark.slow  # of a whole log
def test_kafka_s_own_answers_tell_the_high_watermarks_that_were_rebuilt(
    result: Path, shipped: tuple[bytes, ...]
) -> None:
    """Answers to fetches name it; the model does not look at when they do."""
    moved: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row in pq.read_table(result / "high_watermarks").sort_by("at").to_pylist():
        moved[row["key"]].append((round(row["at"].timestamp() * 1e6), row["progress"]))

    def at(key: str, time_us: int) -> int:
        place = bisect_right(moved[key], time_us, key=lambda step: step[0])
        return moved[key][place - 1][1] if place else 0

    parser = LineParser()
    fetches = [one for one in shipped if b'"requestApiKeyName":"FETCH"' in one][::5]
    names = names_told(shipped)
    told = [f for one in fetches for f in facts(parser.parse(one), names) if f.what == "watermark" and f.key in moved]
    agreeing = sum(at(f.key, f.at_us - 1000) <= (f.offset or 0) <= at(f.key, f.at_us + 1000) for f in told)
    assert len(told) > 15_000
    assert agreeing / len(told) > 0.985


@pytest.mark.slow  # of a whole log
def test_all_tables_and_a_page(result: Path) -> None:
    assert sorted(path.name for path in result.iterdir() if path.is_dir()) == sorted(TABLES)
    check_page(result / "report.html", ["plot-agreement", "plot-errors"])
    found = json.loads(json.dumps(_found(result), allow_nan=False, default=str))
    assert found["tiles"][0] == {"name": "produces", "value": "13,934", "note": "with acks=all"}
    assert sum(row["produces"] for row in found["explanations"]) == 13_934


def test_a_log_without_a_produce_is_refused(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_bytes(line("HEARTBEAT", {}, {}) + b"\n")
    assert main(["model", str(log), "--out", str(tmp_path / "out"), "--quiet"]) == 2
    why = f"nothing to predict: no produce with acks=all was appended in {log}"
    assert capsys.readouterr().err == f"abeyant: error: {why}\n"
    assert not (tmp_path / "out").exists()
    assert main(["model", "nowhere", "--out", str(tmp_path / "other"), "--quiet"]) == 2
    with pytest.raises(SystemExit):
        main(["model", str(log), "--out", str(tmp_path / "other"), "--min-insync-replicas", "0"])
    assert "'0' is not a whole number from 1" in capsys.readouterr().err
