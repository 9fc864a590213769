"""One Spark session for all tests of the lab."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from abeyance.pipeline import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # As that of the tests of the pipeline, which take this one over where both run in one process.
    session = spark_session("local[2]", "abeyance tests", brief=True, config={"spark.sql.shuffle.partitions": "3"})
    yield session
    session.stop()
