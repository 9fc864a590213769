"""The recipe for process logs, as docs/resolve.md gives it: the command on a CSV, the lines of Python on XES."""

from __future__ import annotations

import re
import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
from pyspark.sql import SparkSession

from abeyant import cli

DOCUMENT = Path(__file__).parents[3] / "docs" / "resolve.md"
NOTIFIED = datetime(2006, 8, 5, tzinfo=UTC)


class Step(NamedTuple):
    case: str
    activity: str
    time: datetime


LOG = [
    Step("early", "Create Fine", NOTIFIED - timedelta(days=20)),
    *(Step(case, "Insert Fine Notification", NOTIFIED) for case in ("early", "on the day", "late", "never")),
    Step("early", "Payment", NOTIFIED + timedelta(days=3)),
    Step("on the day", "Payment", NOTIFIED + timedelta(days=60)),
    Step("late", "Payment", NOTIFIED + timedelta(days=61)),
    Step("never", "Add penalty", NOTIFIED + timedelta(days=60)),
]


def recipe(language: str) -> str:
    section = DOCUMENT.read_text(encoding="utf-8").partition("## Any event log")[2].partition("\n## ")[0]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]


def outcomes(spark: SparkSession, log: str, *options: str) -> dict[str, str]:
    """Run the documented command on this log."""
    rules = shlex.split(recipe("sh").replace("\\\n", " "))
    assert rules[:6] == ["abeyant", "resolve", "log.csv", "log.csv", "--out", "result"]
    assert cli.main(["resolve", log, log, "--out", "result", "--overwrite", "--quiet", *rules[6:], *options]) == 0
    found = spark.read.parquet(f"file://{Path('result').resolve()}/outcomes")
    return {row["op_id"]: row["outcome"] for row in found.collect()}


PAID = {"early": "completed", "on the day": "completed", "late": "expired", "never": "expired"}


@pytest.mark.slow
def test_a_csv_log_is_resolved_by_the_documented_command(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    lines = ["case,activity,time", *(f"{step.case},{step.activity},{step.time.isoformat()}" for step in LOG)]
    Path("log.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert outcomes(spark, "log.csv") == PAID
    assert outcomes(spark, "log.csv", "--deadline", "exclusive") == PAID | {"on the day": "expired"}


@pytest.mark.slow
def test_a_xes_log_becomes_the_same_table_by_the_documented_lines(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    traces = []
    for case in dict.fromkeys(step.case for step in LOG):
        events = "".join(
            f'<event><string key="org:resource" value="x"/><string key="concept:name" value="{step.activity}"/>'
            f'<date key="time:timestamp" value="{step.time.isoformat()}"/></event>'
            for step in LOG
            if step.case == case
        )
        traces.append(f'<trace><string key="concept:name" value="{case}"/>{events}</trace>')
    Path("log.xes").write_text(
        f'<?xml version="1.0" encoding="UTF-8"?><log xes.version="1.0"><string key="concept:name" value="fines"/>'
        f"{''.join(traces)}</log>",
        encoding="utf-8",
    )
    # The tests' JVM began in another folder, so relative paths would be looked up there.
    lines = re.sub(r'"(log\.\w+)"', rf'"file://{tmp_path}/\1"', recipe("python"))
    exec(compile(lines, str(DOCUMENT), "exec"), {"spark": spark})
    assert spark.read.parquet(f"file://{tmp_path}/log.parquet").count() == len(LOG)
    assert outcomes(spark, "log.parquet") == PAID
