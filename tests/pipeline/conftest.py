"""The traces that several tests ask about, and the shipped log's lines."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from pipeline.both_sessions import connect_url, either
from pipeline.long_known import Known, known_tables

__all__ = ["connect_url", "either"]  # fixtures

SHIPPED = Path(__file__).parents[2] / "examples" / "data" / "kafka-request-log"


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
