"""Group Spark jobs, to follow or cancel them: by job group, or by tag on Spark Connect."""

from __future__ import annotations

from pyspark.sql import SparkSession

from abeyant.pipeline.spark.connect import is_connect

__all__ = ["cancel_jobs", "name_jobs"]


def name_jobs(spark: SparkSession, group: str, what: str) -> None:
    """Put the jobs that this thread starts from now on into a group; Spark's own pages show them as `what`."""
    if is_connect(spark):
        spark.addTag(group)
    else:
        spark.sparkContext.setJobGroup(group, what, interruptOnCancel=True)


def cancel_jobs(spark: SparkSession, group: str) -> None:
    """Cancel the running jobs of a group, of all threads."""
    if is_connect(spark):
        spark.interruptTag(group)
    else:
        spark.sparkContext.cancelJobGroup(group)
