"""What a source is: one of the two tables, wherever it is, read at once or as rows arrive."""

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
    """Where topics are, and how they are read."""

    servers: str
    properties: Mapping[str, str] = field(default_factory=dict)
    start: str = "earliest"
    records_a_batch: int | None = None


@dataclass(frozen=True)
class Input:
    """What the user said of one of the two tables: where it is, and what its columns are made of."""

    table: Name
    name: str
    columns: Mapping[str, str] = field(default_factory=dict)
    schema: str | None = None
    """The fields and their types, as Spark writes them (DDL); None to look at what is there."""
    query: str | None = None
    """A query over the rows, which it knows by the name of the table; its columns take the place of theirs."""
    format: str | None = None
    files_a_batch: int = 100
    kafka: Kafka | None = None

    def fields(self) -> StructType | None:
        """Return the fields that `schema` declares; raise `AbeyantError` for a text that declares none."""
        if self.schema is None:
            return None
        option = f"--{self.table[:-1]}-schema {self.schema!r}"
        try:
            schema = StructType.fromDDL(self.schema)
        except ParseException as error:
            raise AbeyantError(f"{option}: {str(error).strip().splitlines()[0]}") from error
        if not isinstance(schema, StructType):
            raise AbeyantError(f"{option} is not a list of columns")
        return schema

    def of_columns(self, rows: DataFrame) -> DataFrame:
        """Return rows as operations or events; one on which an expression fails has nulls there, and is rejected."""
        read = operations_from if self.table == "operations" else events_from
        return read(self.queried(rows), self.columns, survive=True)

    def queried(self, rows: DataFrame) -> DataFrame:
        """Return what `query` makes of the rows; raise `AbeyantError` for one that Spark does not understand."""
        if self.query is None:
            return rows
        try:
            return rows_of_query(rows, self.query, self.table)
        except AnalysisException as error:  # a ParseException is one
            said = in_one_line(error)
            raise AbeyantError(f"--{self.table[:-1]}-query: {said}") from error

    def of_records(self, records: DataFrame, fields: StructType | None) -> DataFrame:
        """Do so for records of one JSON object each, as `records.read_operations` takes them."""
        if self.query is not None:
            raise AbeyantError(
                f"--{self.table[:-1]}-query is for tables: {self.name} is read record by record; give files of Parquet "
                f"or CSV, or --{self.table[:-1]} COLUMN=SQL"
            )
        return (read_operations if self.table == "operations" else read_events)(records, self.columns, fields)


class Facts(NamedTuple):
    """What is known of a source before Spark starts."""

    topics: tuple[str, ...] = ()
    one_batch: bool = False
    """Whether a stream's first batch has all of it, as of one file. To a folder, more may come at any moment."""
    empty: bool = False


class Source(Protocol):
    """One of the two tables. A kind of source says which names are its own, and overrides what it does otherwise."""

    given: Input

    def __init__(self, given: Input) -> None:
        self.given = given

    @classmethod
    def takes(cls, name: str, given: Input) -> bool:
        """Return whether a name (the given one, or that of a file in it) says that the source is of this kind."""

    def describe(self) -> Facts:
        """Return what is known without Spark. Raise `AbeyantError` where there is nothing to be read."""
        return Facts()

    def size(self, most: int) -> int | None:
        """Return its bytes, counted no further than beyond `most`; None where only Spark knows."""

    def table(self, spark: SparkSession) -> DataFrame:
        """Return what is there now, with its own columns."""

    def queried(self, spark: SparkSession) -> DataFrame:
        """Return what is there now, as the user's query makes it, with its own columns."""
        return self.given.queried(self.table(spark))

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return what is there and what arrives, as operations or events; bad rows are marked, and rejected.

        Raises `AbeyantError` for columns that are not there, of another type, or not to be known yet.
        """

    def again(self, spark: SparkSession) -> DataFrame:
        """Return what is there now as `stream` reads it: a table that is no stream."""
        return self.given.of_columns(self.table(spark))
