"""Shards go evenly over the partitions, by the hash that Spark really takes."""

from __future__ import annotations

from collections import Counter

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.spark.spreading import _hash, _numbers, spread

SHARDS = 100


@pytest.mark.parametrize("partitions", [1, 7, 40])
def test_no_partition_gets_a_shard_more_than_another(spark: SparkSession, partitions: int) -> None:
    shards = spark.range(3 * SHARDS).selectExpr(f"id % {SHARDS} AS shard")
    placed = shards.repartition(partitions, F.expr(spread("shard", SHARDS, partitions)))
    rows = placed.select("shard", F.spark_partition_id()).distinct().toArrow()
    assert rows.num_rows == SHARDS, "all rows of a shard are together"
    held = Counter(rows.column(1).to_pylist())
    assert len(held) == partitions
    assert max(held.values()) - min(held.values()) <= 1


def test_with_more_partitions_than_shards_each_shard_has_its_own() -> None:
    found = _hash(_numbers(3_000)[:1_024]) % 3_000
    assert found.tolist() == list(range(1_024))
    numbers = spread("shard", 4, 3_000).split("'")[1]
    assert len(numbers.split(",")) == 4, "and no more of them in the plan"
