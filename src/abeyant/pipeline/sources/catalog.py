"""Tables of the session's catalogs, by name: `table:shop.orders`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.sources.source import Facts, Input

__all__ = ["CatalogTable"]

_PREFIX: Final = "table:"


@dataclass(frozen=True)
class CatalogTable:
    """A table or view; as a stream, a table whose format Spark streams, such as Delta Lake's or Parquet."""

    given: Input

    @staticmethod
    def takes(name: str, given: Input) -> bool:
        """Return whether a name is that of a table."""
        return name.startswith(_PREFIX)

    def describe(self) -> Facts:
        """Return nothing: only the session knows the table."""
        return Facts()

    def table(self, spark: SparkSession) -> DataFrame:
        """Return what is there now."""
        return spark.table(self.given.name.removeprefix(_PREFIX))

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return what is there and what arrives, as operations or events."""
        return self.given.of_columns(spark.readStream.table(self.given.name.removeprefix(_PREFIX)))

    def again(self, spark: SparkSession) -> DataFrame:
        """Return what is there now, as `stream` reads it."""
        return self.given.of_columns(self.table(spark))
