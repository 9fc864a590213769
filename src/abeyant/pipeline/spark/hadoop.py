"""A session's settings of Hadoop, for readers that are no part of Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession

from abeyant.pipeline.spark.connect import is_connect

__all__ = ["hadoop_settings"]


def hadoop_settings(spark: SparkSession) -> Callable[[str], str]:
    """Return what gives a setting by its name; empty where there is none.

    On Spark Connect only settings of Spark's are known, not those of the server's `core-site.xml`.
    """
    if is_connect(spark):
        return lambda name: str(spark.conf.get(f"spark.hadoop.{name}", None) or "").strip()
    session: Any = spark._jsparkSession
    hadoop = session.sessionState().newHadoopConf()
    return lambda name: str(hadoop.get(name) or "").strip()
