"""Call Kafka's admin client in the driver's JVM. The client's library comes with Spark's Kafka connector."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

__all__ = ["KafkaClientError", "describe_topics"]


class KafkaClientError(Exception):
    """Raised if the client fails. `kind` and the message are class and message of the innermost Java exception."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def describe_topics(spark: SparkSession, topics: Iterable[str], settings: Mapping[str, str]) -> None:
    """Check that topics exist: raise `KafkaClientError` if a topic does not exist or the brokers do not respond."""
    jvm: Any = spark._jvm
    properties = jvm.java.util.Properties()
    for name, value in settings.items():
        properties.put(name, value)
    names = jvm.java.util.ArrayList(list(topics))
    try:
        admin = jvm.org.apache.kafka.clients.admin.Admin.create(properties)
        try:
            admin.describeTopics(names).allTopicNames().get()
        finally:
            admin.close()
    except Py4JJavaError as error:
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        raise KafkaClientError(cause.getClass().getSimpleName(), str(cause.getMessage())) from error
