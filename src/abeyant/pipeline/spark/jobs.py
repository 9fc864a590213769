"""Groups of Spark jobs, to be watched and to be cancelled: by job group, or on Spark Connect by tag."""

from __future__ import annotations

from pyspark.sql import SparkSession

from abeyant.pipeline.spark.connect import is_connect

__all__ = ["cancel_jobs", "name_jobs"]


def name_jobs(spark: SparkSession, group: str, what: str) -> None:
    """Put the jobs that this thread starts from now on into a group; `what` is what Spark's own pages call them."""
    if is_connect(spark):
        spark.addTag(group)
    else:
        spark.sparkContext.setJobGroup(group, what, interruptOnCancel=True)


def cancel_jobs(spark: SparkSession, group: str) -> None:
    """Cancel the jobs of a group that run now, of all threads."""
    if is_connect(spark):
        spark.interruptTag(group)
    else:
        spark.sparkContext.cancelJobGroup(group)
