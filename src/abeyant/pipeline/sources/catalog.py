"""Read tables of the session's catalogs, given by name: `table:shop.orders`."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.sources.source import Input, Source

__all__ = ["CatalogTable"]

_PREFIX: Final = "table:"


class CatalogTable(Source):
    """A table or view of a catalog. As a stream, its format must be one that Spark can stream: Delta Lake, Parquet."""

    @classmethod
    def takes(cls, name: str, value: Input) -> bool:
        """Return whether a name begins with `table:`."""
        return name.startswith(_PREFIX)

    def table(self, spark: SparkSession) -> DataFrame:
        """Return the current rows."""
        return spark.table(self.given.name.removeprefix(_PREFIX))

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the existing rows, and the rows that arrive later, as a stream of operations or events."""
        return self.given.of_columns(spark.readStream.table(self.given.name.removeprefix(_PREFIX)))
