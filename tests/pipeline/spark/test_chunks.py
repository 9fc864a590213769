"""What is imported once is not looked at again after each task of a worker."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator

import pyarrow as pa
from pyspark.sql import SparkSession

from abeyant.pipeline.spark.chunks import freeze_imports


def test_a_worker_s_imports_are_frozen_once_and_the_driver_s_never(spark: SparkSession) -> None:
    before = gc.get_freeze_count()
    freeze_imports()
    assert gc.get_freeze_count() <= before  # what was frozen may go, and is counted no more

    def counted(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        freeze_imports()
        first = gc.get_freeze_count()
        held = [[] for _ in range(1000)]  # type: ignore[var-annotated]
        freeze_imports()
        for batch in batches:
            yield pa.record_batch(
                {"id": batch["id"], "first": [first], "then": [gc.get_freeze_count()], "on": [gc.isenabled()]}
            )
        del held

    rows = spark.range(0, 4, 1, 4).mapInArrow(counted, "id long, first long, then long, on boolean").collect()
    assert all(10_000 < row.then <= row.first and row.on for row in rows)
