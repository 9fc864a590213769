"""What docs/object-stores.md shows, as pasted, but for the store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from abeyant import pipeline
from object_store.buckets import Bucket
from pipeline.resolver.streams.cuts import Batch
from pipeline.resolver.streams.test_stream import OP, Stream
from test_docs import PAGES, blocks


def test_the_python_of_the_page(opened: Callable[[str], Bucket], spark: SparkSession, tmp_path: Path) -> None:
    [(_, code)] = blocks(PAGES["docs/object-stores.md"], "py")
    assert "s3a://lake" in code
    write, look, read = code.replace("s3a://lake", f"{opened('hdfs').uri}/page").partition("pipeline.read_result")
    stream = Stream(spark, tmp_path)
    stream.put(Batch([("i", OP)]))
    names: dict[str, Any] = {"spark": spark, "answers": stream.answers()}
    exec(write, names)
    try:
        pipeline.end_of_input(tmp_path / "end")
        names["query"].processAllAvailable()
    finally:
        names["query"].stop()
    assert [row.op_id for row in eval(look + read, names).collect()] == ["op"]
