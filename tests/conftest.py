"""What all tests share: how hard the property tests look, and one Spark session.

HYPOTHESIS_PROFILE=thorough looks some ten times as long as the default does.
"""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The same examples at every run of CI, so that a change is judged and not its luck; others at every run by hand.
# No deadline for an example: the machine is shared, and interpreted the engine is some thirty times as slow.
settings.register_profile(
    "default",
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    derandomize=bool(os.environ.get("CI")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "thorough",
    settings.get_profile("default"),
    max_examples=1000,
    stateful_step_count=80,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


# A file's tests stay with one worker, so that a long file which begins last keeps the others waiting. Those of commands
# start a JVM for almost every test; the first of them also makes Spark's classes ready for the sessions that follow.
LONGEST_FIRST = ("pipeline/commands", "pipeline/spark", "pipeline", "test_docs.py")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where workers share the tests, put the longest files first, then those of many tests."""
    if not hasattr(config, "workerinput"):
        return
    here = Path(__file__).parent
    tests = Counter(item.path for item in items)

    def place(item: pytest.Item) -> tuple[int, int, Path]:
        found = (n for n, name in enumerate(LONGEST_FIRST) if item.path.is_relative_to(here / name))
        return next(found, len(LONGEST_FIRST)), -tests[item.path], item.path

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Leave what all the test modules have imported out of every later collection: some tests make thousands."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from abeyance.pipeline import spark_session
    from abeyance.pipeline.spark.jvm import how_it_ended

    # Three partitions, so that what is meant to be distributed crosses from one to another.
    # The address is for a server of Spark Connect, should a test start one.
    settings = {
        "spark.sql.shuffle.partitions": "3",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": "0",
    }
    session = spark_session("local[2]", "abeyance tests", brief=True, config=settings)
    gateway = session.sparkContext._gateway
    assert gateway is not None
    java = gateway.proc
    yield session
    if java.poll() is None:
        session.stop()
        return
    # Every later test that uses the session fails on a refused connection, which tells nothing of the cause.
    pytest.fail(f"Spark failed: {how_it_ended()}", pytrace=False)
