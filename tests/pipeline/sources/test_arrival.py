"""A stream takes files in the order of their times, and those of one time by name, however a folder lists them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.sources.arrival import pattern_of
from abeyant.pipeline.sources.csv import Csv
from abeyant.pipeline.sources.json_lines import JsonLines
from abeyant.pipeline.sources.source import Input

SHUFFLED = (7, 2, 5, 0, 3, 6, 1, 4)
"""No directory lists files by name that were made in this order: ext4 goes by a hash, others by age."""


def put(file: Path, *, at: int = 1_700_000_000) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"name\n{file.name}\n")
    os.utime(file, (at, at))


def taken(stream: DataFrame, tmp_path: Path, column: str = "name") -> list[list[str]]:
    """Which rows each batch had."""
    batches: list[list[str]] = []

    def take(rows: DataFrame, number: int) -> None:
        batches.append([row[column] for row in rows.collect()])

    writer = stream.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return batches


def test_files_of_one_time_go_by_name_and_what_spark_does_not_read_stays_unread(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "the [in] ü%20 {a}"
    for number in SHUFFLED:
        put(folder / f"{number:02}.csv")
    put(folder / "aa first.csv", at=1_600_000_000)
    put(folder / "00 last", at=1_800_000_000)
    for unread in ("done/x.csv", "_temporary/x.csv", ".hidden/x.csv", "_x.csv", ".x.csv"):
        put(folder / unread, at=1_500_000_000)
    batches = taken(Csv(Input("events", str(folder), schema="name STRING", files_a_batch=1)).rows(spark), tmp_path)
    wanted = [["aa first.csv"], *([f"{number:02}.csv"] for number in range(8)), ["00 last"]]
    assert [batch for batch in batches if batch] == wanted


@pytest.mark.slow  # more tables
def test_lines_and_the_folders_of_a_partitioned_table_go_by_name_too(spark: SparkSession, tmp_path: Path) -> None:
    for number in SHUFFLED:
        put(tmp_path / "in" / f"day={number % 2}" / f"{number:02}.csv")
    both = Csv(Input("events", str(tmp_path / "in"), schema="name STRING, day STRING", files_a_batch=3)).rows(spark)
    batches = taken(both.selectExpr("concat(day, ':', name) AS name"), tmp_path / "table")
    assert [name for batch in batches for name in sorted(batch)] == [
        f"{number % 2}:{number:02}.csv" for number in (0, 2, 4, 6, 1, 3, 5, 7)
    ]
    lines = (
        JsonLines(Input("events", str(tmp_path / "in" / "day=1"), files_a_batch=1))
        .lines(spark)
        .where("value <> 'name'")
    )
    assert taken(lines, tmp_path / "lines", "value") == [[f"{number:02}.csv"] for number in (1, 3, 5, 7)]


@pytest.mark.parametrize(
    "files",
    [
        pytest.param(["_spark_metadata/0", "part-0"], id="a table that Spark's own sink writes"),
        pytest.param(["day=1/a", "b"], id="a partitioned table with files beside"),
        pytest.param(["day=1/a", "day=2/hour=1/a"], id="folders of two depths"),
        pytest.param(["_day=1/a"], id="a column with an underscore"),
    ],
)
def test_where_a_pattern_would_read_other_files_spark_lists(tmp_path: Path, files: list[str]) -> None:
    for name in files:
        put(tmp_path / name)
    assert pattern_of(tmp_path) is None
