"""What a stream reads: a topic, lines of JSON, or tables, by the name that the user gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from pyspark.errors import ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, MapType, StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.files import (
    file_format,
    read_files,
    read_lines,
    schema_of_files,
    stream_lines,
    stream_table,
)
from abeyant.pipeline.sources.kafka import read_topic, stream_topic
from abeyant.pipeline.sources.records import read_events, read_operations
from abeyant.pipeline.sources.tables import events_from, operations_from

__all__ = ["Input", "Kafka", "open_input", "read_again"]

_Reader = Callable[..., DataFrame]
_RECORDS: Final[Mapping[str, _Reader]] = {"operations": read_operations, "events": read_events}
_TABLES: Final[Mapping[str, _Reader]] = {"operations": operations_from, "events": events_from}


@dataclass(frozen=True)
class Kafka:
    """Where topics are, and how they are read."""

    servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    start: str = "earliest"
    records_a_batch: int | None = None


@dataclass(frozen=True)
class Input:
    """One of the two tables: where it is, and what its columns are made of."""

    table: Literal["operations", "events"]
    name: str
    columns: Mapping[str, str]
    schema: str | None = None
    """The fields and their types, as Spark writes them (DDL); None to look at what is there."""
    format: str | None = None
    files_a_batch: int = 100

    def is_topic(self, kafka: Kafka | None) -> bool:
        """Whether the name is that of a topic: with Kafka's servers given, and no slash in it."""
        return kafka is not None and "/" not in self.name


def open_input(spark: SparkSession, given: Input, kafka: Kafka | None) -> DataFrame:
    """Return an input as a stream of operations or events; what cannot be read in it is marked, and rejected.

    Raises `AbeyantError` for columns that are not there, of another type, or not to be known yet.
    """
    fields = _declared(given)
    if kafka is not None and given.is_topic(kafka):
        topic = stream_topic(
            spark,
            kafka.servers,
            given.name,
            start=kafka.start,
            records_a_batch=kafka.records_a_batch,
            properties=kafka.properties,
        )
        return _RECORDS[given.table](topic, given.columns, fields)
    form = file_format(given.name, given.format)
    if form == "json":
        fields = fields or _composed(schema_of_files(spark, given.name, form))
        lines = stream_lines(spark, given.name, given.files_a_batch)
        return _RECORDS[given.table](lines, given.columns, fields)
    schema = fields or schema_of_files(spark, given.name, form)
    if schema is None:
        option = f"--{given.table[:-1]}-schema"
        raise AbeyantError(
            f"{given.table}: nothing is in {given.name} yet: name the columns with {option} 'a STRING, ...'"
        )
    files = stream_table(spark, given.name, form, schema, given.files_a_batch)
    return _TABLES[given.table](files, given.columns, survive=True)


def read_again(spark: SparkSession, given: Input, kafka: Kafka | None) -> DataFrame:
    """Return the operations or events that are in an input's files or topic now, as a table that is no stream."""
    fields = _declared(given)
    if kafka is not None and given.is_topic(kafka):
        topic = read_topic(spark, kafka.servers, given.name, properties=kafka.properties)
        return _RECORDS[given.table](topic, given.columns, fields)
    form = file_format(given.name, given.format)
    if form == "json":
        fields = fields or _composed(schema_of_files(spark, given.name, form))
        return _RECORDS[given.table](read_lines(spark, given.name), given.columns, fields)
    return _TABLES[given.table](read_files(spark, given.name, form, fields), given.columns, survive=True)


def _declared(given: Input) -> StructType | None:
    if given.schema is None:
        return None
    try:
        schema = StructType.fromDDL(given.schema)
    except ParseException as error:
        first = str(error).strip().split("\n")[0]
        raise AbeyantError(f"--{given.table[:-1]}-schema {given.schema!r}: {first}") from error
    if not isinstance(schema, StructType):
        raise AbeyantError(f"--{given.table[:-1]}-schema {given.schema!r} is not a list of columns")
    return schema


def _composed(schema: StructType | None) -> StructType | None:
    """Return the fields that have parts. The others are read as text: what is wrong with one can then be said."""
    if schema is None:
        return None
    parts = (StructType, ArrayType, MapType)
    composed = [part for part in schema.fields if isinstance(part.dataType, parts) and part.name != "watches"]
    return StructType(composed)
