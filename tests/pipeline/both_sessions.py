"""A session of each kind over one JVM: Spark's own, and one of a Spark Connect server that runs beside it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import SparkSession

_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"
_MODE = "SPARK_CONNECT_MODE_ENABLED"  # what PySpark itself goes by


@pytest.fixture(scope="session")
def connect_url(spark: SparkSession) -> str:
    """Where the server listens that shares the JVM, the executor and the Python workers of `spark`."""
    pytest.importorskip("grpc")
    jvm: Any = spark.sparkContext._jvm
    service = jvm.java.lang.Class.forName(f"{_SERVICE}$").getField("MODULE$").get(None)
    service.start(spark.sparkContext._jsc.sc())
    return f"sc://127.0.0.1:{service.localPort()}"


@contextmanager
def connected(url: str) -> Iterator[SparkSession]:
    """Make this process one of Spark Connect, for as long as the session lasts."""
    os.environ[_MODE] = "1"
    try:
        session = SparkSession.builder.remote(url).create()
        session.conf.set("spark.sql.session.timeZone", "UTC")
        session.conf.set("spark.sql.shuffle.partitions", "3")
        try:
            yield session
        finally:
            session.stop()
    finally:
        del os.environ[_MODE]


@pytest.fixture(params=["classic", pytest.param("connect", marks=pytest.mark.slow)])
def either(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    """The tests of what has to work in both; two of the quick ones in test_both_sessions.py try both."""
    yield from of_kind(request)


def of_kind(request: pytest.FixtureRequest) -> Iterator[SparkSession]:
    if request.param == "classic":
        yield request.getfixturevalue("spark")
        return
    with connected(request.getfixturevalue("connect_url")) as session:
        yield session
