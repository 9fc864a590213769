"""Kafka topics as streams of records, read by Spark's own connector; and whether the brokers and topics are there."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.properties import parse_properties
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.kafka_client import KafkaClientError, describe_topics

__all__ = ["KafkaError", "check_brokers", "check_topics", "read_properties", "read_topic", "stream_topic"]

_CONNECT_SECONDS: Final = 5.0
_ANSWER_MS: Final = 15_000


class KafkaError(AbeyantError):
    """No broker answers, or a topic is not there."""


def check_brokers(servers: str) -> None:
    """Raise `KafkaError` unless one of the brokers (`host:port,...`) takes a connection within 5 seconds each."""
    refused = []
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not (colon and host and port.isdecimal()):
            raise KafkaError(f"{server!r} is not HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            refused.append(f"{server}: {error.strerror or error}")
        else:
            return
    raise KafkaError(f"no Kafka broker can be reached: {'; '.join(refused)}")


def check_topics(spark: SparkSession, servers: str, topics: Iterable[str], properties: Mapping[str, str]) -> None:
    """Raise `KafkaError` unless a broker knows all topics; within 15 seconds. The client is the one Spark uses.

    On Spark Connect that client is out of reach: there a missing topic ends the stream itself.
    """
    if is_connect(spark):
        return
    limits = {"request.timeout.ms": str(_ANSWER_MS), "default.api.timeout.ms": str(_ANSWER_MS)}
    try:
        describe_topics(spark, topics, {**properties, **limits, "bootstrap.servers": servers})
    except KafkaClientError as error:
        if error.kind == "UnknownTopicOrPartitionException":
            raise KafkaError(f"Kafka at {servers} does not have all of the topics {', '.join(topics)}") from error
        raise KafkaError(f"Kafka at {servers} does not answer: {error.kind}: {error}") from error


def read_properties(file: str) -> dict[str, str]:
    """Read a client's settings as Kafka's own tools take them, as a file of Java's properties."""
    try:
        return parse_properties(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise KafkaError(f"cannot read {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise KafkaError(f"cannot read {file}: it is not UTF-8") from error


def stream_topic(
    spark: SparkSession,
    servers: str,
    topic: str,
    *,
    start: str = "earliest",
    records_a_batch: int | None = None,
    properties: Mapping[str, str] | None = None,
) -> DataFrame:
    """Read a topic as records: `value` (bytes), and in `record` topic, partition, offset, key and timestamp.

    `start` (`earliest` or `latest`) is where a query without a checkpoint begins. `properties` are the client's, as
    Kafka names them. Offsets that Kafka has deleted before they were read end the query: nothing is lost silently.
    """
    options = _options(servers, topic, properties) | {"startingOffsets": start}
    if records_a_batch is not None:
        options["maxOffsetsPerTrigger"] = str(records_a_batch)
    return _records(spark.readStream.format("kafka").options(**options).load())


def read_topic(
    spark: SparkSession, servers: str, topic: str, *, properties: Mapping[str, str] | None = None
) -> DataFrame:
    """Return the records that are in a topic now, as `stream_topic` reads them: a table that is no stream."""
    return _records(spark.read.format("kafka").options(**_options(servers, topic, properties)).load())


def _options(servers: str, topic: str, properties: Mapping[str, str] | None) -> dict[str, str]:
    options = {f"kafka.{name}": value for name, value in (properties or {}).items()}
    return options | {"kafka.bootstrap.servers": servers, "subscribe": topic}


def _records(read: DataFrame) -> DataFrame:
    # A key that is no UTF-8 would pass through Spark, and stop Python.
    key = F.try_validate_utf8(F.col("key").cast("string")).alias("key")
    where = F.struct("topic", "partition", "offset", key, "timestamp")
    return read.select("value", where.alias("record"))
