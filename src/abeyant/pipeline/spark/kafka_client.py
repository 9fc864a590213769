"""Kafka's admin client in the driver's JVM: the client that Spark's connector brings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

__all__ = ["KafkaClientError", "describe_topics"]


class KafkaClientError(Exception):
    """The client failed: `kind` is the innermost exception's class in Java, the message its own."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


def describe_topics(spark: SparkSession, topics: Iterable[str], settings: Mapping[str, str]) -> None:
    """Ask the brokers about topics; raise `KafkaClientError` where they do not know one, or do not answer."""
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
