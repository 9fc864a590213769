"""Read the replication facts of a whole log as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.request_log.brokers import broker_named
from abeyant.pipeline.request_log.files import Chunk, Paths
from abeyant.pipeline.request_log.line import ApiRequest, BadLineError, LineParser
from abeyant.pipeline.request_log.replication import facts
from abeyant.pipeline.request_log.requests import read_requests, typed_parser
from abeyant.pipeline.request_log.tables import KafkaRequestLog, Survey
from abeyant.pipeline.schemas import REPLICATION
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = ["read_kafka_replication"]

_BATCH_ROWS: Final = 8192


def read_kafka_replication(
    spark: SparkSession,
    paths: Paths,
    *,
    timezone: str = "UTC",
    instance: str | Callable[[str], str] | None = None,
) -> DataFrame:
    """Return the facts about replication in the request logs of a cluster (`schemas.REPLICATION`).

    Takes and raises what `read_kafka_request_log` does. The logs should be those of all brokers of one cluster, and of
    its controllers: only the controllers' logs show when the replicas in sync changed.
    """
    return KafkaRequestLog(spark, paths, timezone=timezone, instance=instance).mapped(_Facts, REPLICATION)


@dataclass(frozen=True)
class _Facts:
    """Function for `mapInArrow`: turns chunks of a log into rows; skips unreadable lines and lines without facts."""

    survey: Survey
    zone: ZoneInfo

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows: list[tuple[Any, ...]] = []
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for row in self._of(self.survey.chunks[number]):
                    rows.append(row)
                    if len(rows) >= _BATCH_ROWS:
                        yield _batch(rows)
                        rows = []
        if rows:
            yield _batch(rows)

    def _of(self, chunk: Chunk) -> Iterator[tuple[Any, ...]]:
        typed = typed_parser(self.zone, self.survey.topics)
        fast = typed.request if typed is not None else None
        file_instance = chunk.file.instance
        for number, place, line, request in read_requests(chunk, fast, LineParser(self.zone).parse):
            if isinstance(request, ApiRequest):
                with suppress(BadLineError):
                    rows = list(facts(request, self.survey.topics))
                    op_id = f"{chunk.file.label}:{number}{f'.{place}' if place else ''}"
                    instance = (broker_named(line) or file_instance) if chunk.file.by_line else file_instance
                    yield from ((instance, op_id, *fact) for fact in rows)


def _batch(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    schema = arrow_schema(REPLICATION)
    columns = zip(zip(*rows, strict=True), schema, strict=True)
    return pa.record_batch([pa.array(column, field.type) for column, field in columns], schema=schema)
