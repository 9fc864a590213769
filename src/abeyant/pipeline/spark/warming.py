"""Start a Python worker before the first task that needs one: it takes a second, in which Spark itself only plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from abeyant.pipeline.spark.meanwhile import meanwhile

__all__ = ["warming"]


def warming(spark: SparkSession, prepare: Callable[[], object]) -> AbstractContextManager[None]:
    """Have a worker call `prepare`, to import what tasks will need, say, while the block runs; wait for it at the end.

    A worker stays for the tasks that come (`spark.python.worker.reuse`). What goes wrong is told where it is needed.
    """
    return meanwhile(partial(_warm, spark, prepare))


def _warm(spark: SparkSession, prepare: Callable[[], object]) -> None:
    with suppress(Exception):
        row = spark.range(0, 1, 1, 1).mapInArrow(partial(_prepared, prepare=prepare), "id bigint")
        row.write.format("noop").mode("overwrite").save()


def _prepared(batches: Iterable[pa.RecordBatch], prepare: Callable[[], object]) -> Iterator[pa.RecordBatch]:
    prepare()
    yield from batches
