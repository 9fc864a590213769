"""The facts of a whole log as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from abeyance.pipeline.kafka_line import ApiRequest
from abeyance.pipeline.kafka_log import KafkaRequestLog
from abeyance.pipeline.kafka_replication import facts
from abeyance.pipeline.log_files import Paths
from abeyance.pipeline.schemas import REPLICATION

__all__ = ["read_kafka_replication"]


def read_kafka_replication(
    spark: SparkSession,
    paths: Paths,
    *,
    timezone: str = "UTC",
    instance: str | Callable[[str], str] | None = None,
) -> DataFrame:
    """Return what the request logs of a cluster tell about its replication (`schemas.REPLICATION`).

    Takes and raises what `read_kafka_request_log` does. The logs should be those of all brokers of one cluster, and of
    its controllers: only these know when the replicas in sync changed.
    """
    return KafkaRequestLog(spark, paths, timezone=timezone, instance=instance).telling(_rows, REPLICATION)


def _rows(request: ApiRequest, topics: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    return iter(facts(request, topics))
