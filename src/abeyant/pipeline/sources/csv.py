"""CSV with a header. All columns are text: a value that is not of its column's type rejects its row.

Columns are separated as `csv_separator` says.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.csv_quotes import quoted_breaks
from abeyant.pipeline.sources.csv_separator import separator_in, separator_of
from abeyant.pipeline.sources.files import FileSource, is_shown
from abeyant.pipeline.spark.location import is_uri

__all__ = ["Csv"]

_UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"
# A quote within quotes is doubled, as in RFC 4180. (Spark's default is a backslash.)
_OPTIONS: Final = {"header": "true", "escape": '"'}


class Csv(FileSource):
    """CSV files."""

    format, called, endings = "csv", "CSV", ("csv", "tsv")
    # Refuse a file whose header differs from the first one's; by default Spark maps columns by position.
    # Files that arrive later may have line breaks within quotes.
    stream_options: ClassVar = {**_OPTIONS, "enforceSchema": "false", "multiLine": "true"}

    def columns_of(self, rows: DataFrame) -> DataFrame:
        """Make texts that are not UTF-8 null: Spark replaces each such letter by the same one, so keys would collide.

        (A table in Latin-1 would have one key for Müller and Möller.)
        """
        texts = [field.name for field in rows.schema.fields if isinstance(field.dataType, StringType)]
        columns = {name: F.col(f"`{name.replace('`', '``')}`") for name in texts}
        read = {name: F.when(~column.contains(_UNREADABLE), column) for name, column in columns.items()}
        return rows.withColumns(read) if read else rows

    def arriving(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        """Load files as `FileSource` does, with the separator of those that are there now."""
        return super().arriving(spark, reader.option("sep", self._separator(spark)))

    def _load(self, spark: SparkSession, schema: StructType | None) -> DataFrame:
        separator = self._separator(spark)
        reader = spark.read.format("csv").options(**_OPTIONS, sep=separator, **self._quoting(spark, separator))
        table = (reader if schema is None else reader.schema(schema)).load(self.locations())
        if not Path(self.given.name).is_file() and not _renamed(table.columns):
            return reader.options(enforceSchema="false").schema(table.schema).load(self.locations())
        return table

    def _separator(self, spark: SparkSession) -> str:
        """Return what separates the columns; a comma while there are no files."""
        here = self._here()
        if here is not None:
            return separator_in(here)
        try:
            first = (
                spark.read.text(self.locations())
                .where("trim(value) != ''")
                .select("value", "_metadata.file_path")
                .first()
            )
        except AnalysisException:
            return ","
        return "," if first is None else separator_of(*first)

    def _here(self) -> list[Path] | None:
        """Return the files, sorted; None if only Spark can read them: on a store, or in Zstandard."""
        here = sorted(file for file in self.files() if is_shown(file.name))
        return None if is_uri(self.given.name) or any(file.suffix == ".zst" for file in here) else here

    def _quoting(self, spark: SparkSession, separator: str) -> dict[str, str]:
        """Return Spark's options for line breaks within quotes; none if there are none.

        Files on a store or in Zstandard are checked by a Spark job instead, which finds a line with an odd number of
        quotes; such a file is refused.
        """
        here = self._here()
        if here is not None:
            ending = quoted_breaks(here, separator)
            return {} if ending is None else {"multiLine": "true", "lineSep": ending}
        odd = "length(regexp_replace(value, '[^\"]', '')) % 2 = 1"
        torn = spark.read.text(self.locations()).where(odd).select("_metadata.file_path").first()
        if torn is not None:
            where = "on a store" if is_uri(self.given.name) else "in a .zst file"
            raise AbeyantError(
                f"{torn[0]}: a line ends within quotes, not supported {where}: "
                "copy the file to this machine, uncompressed, or write it as Parquet"
            )
        return {}


def _renamed(names: list[str]) -> bool:
    """Return whether Spark may have renamed columns: it appends a number to empty and repeated names."""
    return any(name.endswith(str(place)) for place, name in enumerate(names))
