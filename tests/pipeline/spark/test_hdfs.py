"""Where a session's HDFS is reached over HTTP, by the settings that Hadoop's own `webhdfs://` reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.spark.hdfs import hdfs_settings

HTTP, HTTPS = "dfs.namenode.http-address", "dfs.namenode.https-address"
TWO = {"dfs.ha.namenodes.lake": "nn1, nn2", f"{HTTP}.lake.nn1": "one:50070", f"{HTTP}.lake.nn2": "two:50070"}


@contextmanager
def told(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            spark.conf.unset(name)


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.delenv("ARROW_LIBHDFS_DIR", raising=False)


@pytest.mark.parametrize(
    ("uri", "settings", "addresses"),
    [
        ("hdfs://name:8020/logs", {}, ["http://name:9870"]),
        ("hdfs://name/logs", {HTTP: "0.0.0.0:50070"}, ["http://name:50070"]),
        ("hdfs://name/logs", {HTTP: "other:50070"}, ["http://other:50070"]),
        ("hdfs:///logs", {"fs.defaultFS": "hdfs://name:8020"}, ["http://name:9870"]),
        ("hdfs://name/logs", {"dfs.http.policy": "HTTPS_ONLY"}, ["https://name:9871"]),
        ("hdfs://name/logs", {"dfs.http.policy": "HTTPS_ONLY", HTTPS: "name:50470"}, ["https://name:50470"]),
        ("hdfs://lake/logs", TWO, ["http://one:50070", "http://two:50070"]),
    ],
)
def test_name_nodes_are_those_of_the_session(
    spark: SparkSession, uri: str, settings: dict[str, str], addresses: list[str]
) -> None:
    with told(spark, settings):
        found = dict(hdfs_settings(spark, uri))
    assert list(found["addresses"]) == addresses
    assert found["user"]


def test_kerberos_takes_the_library_which_arrow_then_uses(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        told(spark, {"hadoop.security.authentication": "kerberos"}),
        pytest.raises(AbeyantError, match=r"hdfs://name/logs: Kerberos requires Hadoop's libhdfs"),
    ):
        hdfs_settings(spark, "hdfs://name/logs")
    (tmp_path / "lib" / "native").mkdir(parents=True)
    (tmp_path / "lib" / "native" / "libhdfs.so").touch()
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path))
    assert hdfs_settings(spark, "hdfs://name/logs") == ()
