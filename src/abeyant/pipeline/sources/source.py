"""The interface of sources, which read operations or events as a table or a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.expressions import rows_of_query
from abeyant.pipeline.sources.records import read_events, read_operations
from abeyant.pipeline.sources.tables import Name, events_from, operations_from
from abeyant.pipeline.spark.errors import in_one_line

__all__ = ["Facts", "Input", "Kafka", "Source"]


@dataclass(frozen=True)
class Kafka:
    """The Kafka brokers to connect to, and the options for reading their topics."""

    servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    start: str = "earliest"
    """The starting offsets of a stream without a checkpoint, as Spark's option `startingOffsets`."""
    records_a_batch: int | None = None
    """The maximum number of records per batch of a stream; None for no limit."""


@dataclass(frozen=True)
class Input:
    """The user's arguments for a table, operations or events: its name, the mapping of its columns, options."""

    table: Name
    name: str
    """A path, glob or URI, a topic, or `table:NAME`."""
    columns: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    """The fields and their types in Spark's DDL; None to infer them."""
    query: str | None = None
    """A SQL query over the rows, which it names `operations` or `events`; its result replaces the rows."""
    format: str | None = None
    files_a_batch: int = 100
    """The maximum number of files per batch of a stream."""
    kafka: Kafka | None = None

    def fields(self) -> StructType | None:
        """Return the fields that `schema` declares; None without. Raise `AbeyantError` if it cannot be parsed."""
        if self.schema is None:
            return None
        option = f"--{self.table[:-1]}-schema {self.schema!r}"
        try:
            schema = StructType.fromDDL(self.schema)
        except ParseException as error:
            raise AbeyantError(f"{option}: {str(error).strip().splitlines()[0]}") from error
        if not isinstance(schema, StructType):
            raise AbeyantError(f"{option} is not a list of columns such as 'a STRING, b INT'")
        return schema

    def of_columns(self, rows: DataFrame) -> DataFrame:
        """Return rows as operations or events; a row on which an expression fails gets nulls, and is rejected."""
        convert = operations_from if self.table == "operations" else events_from
        return convert(self.queried(rows), self.columns, survive=True)

    def queried(self, rows: DataFrame) -> DataFrame:
        """Return the result of `query` over the rows. Raise `AbeyantError` if Spark cannot analyze it."""
        if self.query is None:
            return rows
        try:
            return rows_of_query(rows, self.query, self.table)
        except AnalysisException as error:  # a ParseException is one
            message = in_one_line(error)
            raise AbeyantError(f"--{self.table[:-1]}-query: {message}") from error

    def of_records(self, records: DataFrame, fields: StructType | None) -> DataFrame:
        """Return records of one JSON object each as operations or events (see `records.read_operations`)."""
        if self.query is not None:
            raise AbeyantError(
                f"--{self.table[:-1]}-query is for tables, but {self.name} is read record by record: use Parquet or "
                f"CSV files, or --{self.table[:-1]} COLUMN=SQL"
            )
        return (read_operations if self.table == "operations" else read_events)(records, self.columns, fields)


class Facts(NamedTuple):
    """Facts about a source that are known before Spark starts."""

    topics: tuple[str, ...] = ()
    """The Kafka topics that must exist."""
    one_batch: bool = False
    """Whether a stream's first batch has all rows, as with a single file. A folder may get more files at any time."""
    empty: bool = False
    """Whether there is nothing to read yet."""


class Source(Protocol):
    """A source of operations or events. Each kind implements `takes` and `table`, and overrides the rest as needed."""

    given: Input

    def __init__(self, given: Input) -> None:
        self.given = given

    @classmethod
    def takes(cls, name: str, value: Input) -> bool:
        """Return whether this kind of source reads `name`: the user's name, or the name of a file in that directory."""

    def describe(self) -> Facts:
        """Return the facts known without Spark. Raise `AbeyantError` if there is nothing to read."""
        return Facts()

    def size(self, most: int) -> int | None:
        """Return the size in bytes; stop counting beyond `most`. Return None if only Spark knows the size."""

    def table(self, spark: SparkSession) -> DataFrame:
        """Return the current rows, with their own columns."""

    def queried(self, spark: SparkSession) -> DataFrame:
        """Return the current rows, or the result of the user's query over them."""
        return self.given.queried(self.table(spark))

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the existing rows, and the rows that arrive later, as operations or events; mark rows to reject.

        Raises `AbeyantError` for columns that are missing, of a wrong type, or not yet known.
        """

    def again(self, spark: SparkSession) -> DataFrame:
        """Return the current rows as operations or events, read as `stream` reads them, but not as a stream."""
        return self.given.of_columns(self.table(spark))
