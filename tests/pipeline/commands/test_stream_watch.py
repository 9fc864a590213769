"""A query that is watched: its failure in one line, and what is told of its batches."""

from __future__ import annotations

import argparse
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.durations import duration, duration_or
from abeyant.pipeline.commands.stream_run.lines import Lateness, Lines
from abeyant.pipeline.commands.stream_run.watch import follow
from abeyant.pipeline.resolver.streams import BatchCounts, StateError

REFUSED = "the checkpoint's state has layout version 7, expected 1"
COUNTS = BatchCounts(
    batch=0,
    rows=2500,
    rows_per_second=1000.4,
    completed=12,
    expired=3,
    late=0,
    duplicates=0,
    invalid=1,
    pending=7,
    watermark=datetime(2026, 1, 1, 10, tzinfo=UTC),
    state_bytes=100,
)


def in_a_worker(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise StateError(REFUSED)
    yield from ()


def in_the_driver(table: DataFrame, batch: int) -> None:
    raise AbeyantError(f"batch {batch} is too much")


def by_itself(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        raise ZeroDivisionError("a mistake")
    yield from ()


@pytest.mark.slow  # starts a JVM
@pytest.mark.parametrize(
    "where", [pytest.param(where, marks=pytest.mark.slow) for where in ("worker", "driver")] + ["elsewhere"]
)
def test_a_failure_is_one_line(spark: SparkSession, tmp_path: Path, where: str) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "one.txt").write_text("one\n")
    table = spark.readStream.text(f"file://{tmp_path / 'lines'}")
    if where != "driver":
        table = table.mapInArrow(in_a_worker if where == "worker" else by_itself, "value string")
    write = in_the_driver if where == "driver" else partial(_collect)
    query = table.writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    with pytest.raises(AbeyantError) as error:
        follow(query, Lines(quiet=True), threading.Event())
    said = {
        "worker": f"the stream failed: {REFUSED}",
        "driver": "the stream failed: batch 0 is too much",
        "elsewhere": "ZeroDivisionError: a mistake",
    }
    assert said[where] in str(error.value)
    assert "\n" not in str(error.value)


def _collect(table: DataFrame, batch: int) -> None:
    table.collect()


def test_idle_batches_are_told_of_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = 0.0
    lines = Lines(clock=lambda: now)
    lines.add(COUNTS)
    assert capsys.readouterr().err == (
        "batch 0: 2,500 rows (1,000/s), 12 completed, 3 expired, 1 invalid, 7 pending, watermark 2026-01-01 10:00:00\n"
    )
    idle = replace(COUNTS, batch=1, completed=0, expired=0, invalid=0, watermark=None)
    lines.add(idle)
    assert capsys.readouterr().err == ""
    now = 61.0
    lines.add(idle)
    assert capsys.readouterr().err.endswith(", 0 completed, 0 expired, 7 pending, watermark -\n")
    lines.add(idle)
    assert capsys.readouterr().err == ""
    lines.add(replace(idle, late=2))
    assert ", 2 late, 7 pending" in capsys.readouterr().err
    totals = {"completed": 12, "expired": 3, "cancelled": 0, "late": 2, "duplicates": 0, "invalid": 1}
    assert lines.totals == totals


def test_a_batch_with_many_late_rows_says_why_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines(lateness=Lateness(60.0))
    lines.add(replace(COUNTS, late=25, late_by=0.5))
    assert capsys.readouterr().err.count("\n") == 1, "one percent is not more than that"
    lines.add(replace(COUNTS, batch=1, late=26, late_by=7000.1))
    told = capsys.readouterr().err.splitlines()[1]
    assert told.startswith(
        "batch 1: 26 of 2,500 rows read (1.0 %) came too late and were rejected. They are up to 117m"
    )
    assert "Probably files were read in another order than that of the times in them" in told
    assert "start again with another --out and --lateness 118m, or read files that belong together in one batch" in told
    lines.add(replace(COUNTS, batch=2))
    assert str(lines.late_summary()).startswith("this run: 51 of 7,500 rows read (0.7 %)"), "one batch had many"
    few = Lines(quiet=True)
    few.add(replace(COUNTS, late=25, late_by=0.5))
    assert few.late_summary() is None
    capsys.readouterr()
    quiet = Lines(quiet=True, lateness=Lateness(0.0, topics=True))
    quiet.add(replace(COUNTS, rows=1, late=3, late_by=200_000.0))
    assert capsys.readouterr().err == ""
    told = str(quiet.late_summary())
    assert "3 of 1 rows read (100.0 %)" in told
    assert "one partition is read ahead of others" in told
    assert told.endswith("--lateness 3d")
    ended = Lines(lateness=Lateness(0.0))
    ended.add(replace(COUNTS, late=2500))
    assert str(ended.late_summary()).endswith("(100.0 %) came too late and were rejected: the input had ended")


def test_durations() -> None:
    assert [duration(text) for text in ("500ms", "1.5s", "10m", "2 h", "1d")] == [0.5, 1.5, 600, 7200, 86_400]
    assert [duration(text) for text in ("1 week", "1h 30min", "2 Days")] == [604_800, 5_400, 172_800]
    assert duration_or("off")("off") is None
    assert duration_or("off")("2s") == 2
    for text in ("", " ", "10", "-1s", "s", "1y", "1h 2"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a duration"):
            duration(text)
