"""Read Kafka topics as streams of records, with Spark's connector; check brokers and topics first."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.properties import parse_properties
from abeyant.pipeline.sources.source import Facts, Input, Kafka, Source
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.kafka_client import KafkaClientError, describe_topics

__all__ = ["KafkaError", "Topic", "check_brokers", "check_topics", "client_options", "read_properties"]

_CONNECT_SECONDS: Final = 5.0
_ANSWER_MS: Final = 15_000


class KafkaError(AbeyantError):
    """Raised if no broker responds, a topic does not exist, or the client's settings cannot be read."""


def check_brokers(servers: str) -> None:
    """Raise `KafkaError` unless one of the brokers (`host:port,...`) accepts a connection; waits 5 seconds for each."""
    errors = []
    for server in servers.split(","):
        host, colon, port = server.strip().rpartition(":")
        if not (colon and host and port.isdecimal()):
            raise KafkaError(f"--kafka: {server!r} is not HOST:PORT")
        try:
            socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
        except OSError as error:
            errors.append(f"{server}: {error.strerror or error}")
        else:
            return
    raise KafkaError(f"no Kafka broker can be reached: {'; '.join(errors)}")


def check_topics(spark: SparkSession, kafka: Kafka, topics: Iterable[str]) -> None:
    """Raise `KafkaError` unless a broker knows all topics; waits 15 seconds. Uses the Java client of Spark's connector.

    Does nothing on Spark Connect, which cannot reach that client; a missing topic then fails the stream.
    """
    if is_connect(spark):
        return
    limits = {"request.timeout.ms": str(_ANSWER_MS), "default.api.timeout.ms": str(_ANSWER_MS)}
    try:
        describe_topics(spark, topics, {**kafka.properties, **limits, "bootstrap.servers": kafka.servers})
    except KafkaClientError as error:
        if error.kind == "UnknownTopicOrPartitionException":
            raise KafkaError(f"Kafka at {kafka.servers} does not have all of the topics {', '.join(topics)}") from error
        raise KafkaError(f"Kafka at {kafka.servers} does not answer: {error.kind}: {error}") from error


def read_properties(file: str) -> dict[str, str]:
    """Read client settings from a Java properties file, the format of Kafka's tools. Raise `KafkaError` if it fails."""
    try:
        return parse_properties(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        raise KafkaError(f"cannot read {file}: {error.strerror or error}") from error
    except ValueError as error:
        raise KafkaError(f"cannot read {file}: it is not UTF-8") from error


class Topic(Source):
    """A topic, read as records: `value` (bytes), and `record` with topic, partition, offset, key and timestamp.

    A stream fails if Kafka deleted records before the stream read them, so no record is lost silently.
    """

    @classmethod
    def takes(cls, name: str, value: Input) -> bool:
        """Return whether a name is a topic: brokers are given (`value.kafka`), and the name has no slash."""
        return value.kafka is not None and "/" not in name

    def describe(self) -> Facts:
        """Return the topic's name; nothing more is known without a broker."""
        return Facts(topics=(self.given.name,))

    def table(self, spark: SparkSession) -> DataFrame:
        """Return the current records."""
        return _records(spark.read.format("kafka").options(**self._options()).load())

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the existing records, and the records that arrive later, as a stream of operations or events."""
        kafka, options = self.given.kafka, self._options()
        assert kafka is not None, "the name is that of a topic"
        options["startingOffsets"] = kafka.start  # of a query without a checkpoint
        if kafka.records_a_batch is not None:
            options["maxOffsetsPerTrigger"] = str(kafka.records_a_batch)
        records = _records(spark.readStream.format("kafka").options(**options).load())
        return self.given.of_records(records, self.given.fields())

    def again(self, spark: SparkSession) -> DataFrame:
        """Return the current records as operations or events, read as `stream` reads them, but not as a stream."""
        return self.given.of_records(self.table(spark), self.given.fields())

    def _options(self) -> dict[str, str]:
        assert self.given.kafka is not None, "the name is that of a topic"
        return client_options(self.given.kafka) | {"subscribe": self.given.name}


def client_options(kafka: Kafka) -> dict[str, str]:
    """Return the options of Spark's connector: the brokers and the client's settings."""
    properties = {**kafka.properties, "bootstrap.servers": kafka.servers}
    return {f"kafka.{name}": value for name, value in properties.items()}


def _records(rows: DataFrame) -> DataFrame:
    # A key that is not UTF-8 would pass through Spark, and fail in Python.
    key = F.try_validate_utf8(F.col("key").cast("string")).alias("key")
    origin = F.struct("topic", "partition", "offset", key, "timestamp")
    return rows.select("value", origin.alias("record"))
