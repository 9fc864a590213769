"""The interface of sources: one of the two tables, read at once or as rows arrive."""

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
    """The brokers of topics, and how to read these."""

    servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    start: str = "earliest"
    records_a_batch: int | None = None


@dataclass(frozen=True)
class Input:
    """The user's arguments for one of the two tables: its name, and the mapping of its columns."""

    table: Name
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    """The fields and their types in Spark's DDL; None to infer them."""
    query: str | None = None
    """A SQL query over the rows as the table `operations` or `events`; its result replaces them."""
    format: str | None = None
    files_a_batch: int = 100
    kafka: Kafka | None = None

    def fields(self) -> StructType | None:
        """Return the fields that `schema` declares. Raise `AbeyantError` if it cannot be parsed."""
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
        read = operations_from if self.table == "operations" else events_from
        return read(self.queried(rows), self.columns, survive=True)

    def queried(self, rows: DataFrame) -> DataFrame:
        """Return the result of `query` over the rows. Raise `AbeyantError` if Spark cannot analyze it."""
        if self.query is None:
            return rows
        try:
            return rows_of_query(rows, self.query, self.table)
        except AnalysisException as error:  # a ParseException is one
            said = in_one_line(error)
            raise AbeyantError(f"--{self.table[:-1]}-query: {said}") from error

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
    one_batch: bool = False
    """Whether a stream's first batch has all rows, as of a single file. A folder may get more at any moment."""
    empty: bool = False


class Source(Protocol):
    """One of the two tables. A kind of source implements `takes` and `table`, and overrides the rest as needed."""

    given: Input

    def __init__(self, given: Input) -> None:
        self.given = given

    @classmethod
    def takes(cls, name: str, given: Input) -> bool:
        """Return whether a name (the given one, or that of a file in the directory) is of this kind of source."""

    def describe(self) -> Facts:
        """Return what is known without Spark. Raise `AbeyantError` if there is nothing to read."""
        return Facts()

    def size(self, most: int) -> int | None:
        """Return its bytes; stop counting beyond `most`. None if only Spark knows."""

    def table(self, spark: SparkSession) -> DataFrame:
        """Return the rows that are there now, with their own columns."""

    def queried(self, spark: SparkSession) -> DataFrame:
        """Return the result of the user's query over the rows that are there now, or these rows."""
        return self.given.queried(self.table(spark))

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the rows that are there and those that arrive, as operations or events; bad rows are marked.

        Raises `AbeyantError` for columns that are missing, of a wrong type, or not yet known.
        """

    def again(self, spark: SparkSession) -> DataFrame:
        """Return the rows that are there now, read as `stream` does but as a batch."""
        return self.given.of_columns(self.table(spark))
