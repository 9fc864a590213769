"""The sinks for lake tables where a session has no such format; what needs the formats is in `tests/lakes`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant import pipeline
from abeyant.errors import AbeyantError

ROOT = Path(__file__).parents[4]
SINKS = [pipeline.DeltaSink, pipeline.IcebergSink]


@pytest.mark.parametrize("sink", SINKS)
def test_a_session_without_the_format_is_told_the_package(
    sink: type[pipeline.DeltaSink | pipeline.IcebergSink], spark: SparkSession
) -> None:
    minor = ".".join(spark.version.split(".")[:2])
    package = re.escape(sink._artifact.format(minor))
    with pytest.raises(AbeyantError, match=f"^this Spark session has no tables of .*: start it with .*{package}:"):
        sink("outcomes", "aside")


def test_a_version_is_named_where_one_was_tried() -> None:
    assert pipeline.DeltaSink._lacking("4.1") == (
        "this Spark session has no tables of Delta Lake: start it with --packages io.delta:delta-spark_4.1_2.13:4.4.0"
    )
    assert pipeline.IcebergSink._lacking("4.3").endswith(
        "iceberg-spark-runtime-4.3_2.13:VERSION, if there is one (tried: 1.12.0 with Spark 4.1)"
    )


@pytest.mark.parametrize("sink", SINKS)
def test_what_is_named_is_what_is_tried_and_documented(
    sink: type[pipeline.DeltaSink | pipeline.IcebergSink],
) -> None:
    page = (ROOT / "docs" / "lake-tables.md").read_text()
    pom = (ROOT / "tests" / "lakes" / "pom.xml").read_text()
    for minor, version in sink._tried.items():
        assert f"{sink._artifact.format(minor)}:{version}" in page
    assert sink._artifact.format("4.1").partition(":")[2] in pom
    assert f">{sink._tried['4.1']}<" in pom


def test_one_table_cannot_take_both() -> None:
    with pytest.raises(ValueError, match=r"two tables, not shop\.outcomes twice"):
        pipeline.DeltaSink("shop.outcomes", "shop.outcomes")
