"""Who wins where two write to one place of a real HDFS."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from abeyant import pipeline
from abeyant.pipeline.spark.file_system import file_system
from object_store.buckets import Bucket
from pipeline.resolver.streams.cuts import Batch
from pipeline.resolver.streams.test_stream import OP, Stream

OTHER = json.dumps({"host": "elsewhere", "process": 1, "since": "2026-01-01T00:00:00+00:00"}).encode()


def test_of_two_that_rename_to_one_name_the_first_wins(opened: Callable[[str], Bucket], spark: SparkSession) -> None:
    store = opened("hdfs")
    files = file_system(spark, f"{store.uri}/race")
    for name in "one", "two":
        store.write(f"race/{name}/part.parquet", name.encode())
    assert files.rename("one", "batch=0")
    # Hadoop's other rename would put it into batch=0, as batch=0/two: a reader would find both.
    assert not files.rename("two", "batch=0")
    assert store.files("race") == {"batch=0/part.parquet": 3, "two/part.parquet": 3}


def test_a_sink_refuses_what_another_writes_and_lets_go_when_its_query_ends(
    opened: Callable[[str], Bucket], spark: SparkSession, tmp_path: Path
) -> None:
    store = opened("hdfs")
    stream = Stream(spark, tmp_path)
    stream.put(Batch([("i", OP)]))
    store.write("held/claims/stream-other.json", OTHER)
    with pytest.raises(StreamingQueryException, match="/held is being written by process 1 on elsewhere, since 2026"):
        stream.start(pipeline.ParquetSink(f"{store.uri}/held")).awaitTermination()
    assert set(store.files("held")) == {"claims/stream-other.json"}
    stream.start(pipeline.ParquetSink(f"{store.uri}/free"), checkpoint="another").awaitTermination()
    end = time.monotonic() + 60
    while store.files("free/claims"):
        assert time.monotonic() < end
        time.sleep(0.05)
