"""One Spark session for all tests of the pipeline, and the shipped log's lines."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyance.pipeline import spark_session
from pipeline.long_known import Known, known_tables

SHIPPED = Path(__file__).parents[2] / "examples" / "data" / "kafka-request-log"


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Three partitions, so that what is meant to be distributed crosses from one to another.
    session = spark_session("local[2]", "abeyance tests", brief=True, config={"spark.sql.shuffle.partitions": "3"})
    yield session
    session.stop()


@pytest.fixture(scope="session")
def known(spark: SparkSession) -> Known:
    return known_tables(spark)


@cache
def shipped_lines() -> tuple[bytes, ...]:
    """All lines of the shipped log, file by file."""
    lines: list[bytes] = []
    for file in sorted(SHIPPED.glob("*/kafka-request.log*")):
        with gzip.open(file) as stream:
            lines += [line.rstrip(b"\n") for line in stream]
    return tuple(lines)


@pytest.fixture(scope="session")
def shipped() -> tuple[bytes, ...]:
    return shipped_lines()
