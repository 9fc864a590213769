"""Read CSV with a header. All columns are text; a value that cannot be converted to its column's type rejects its row.

`csv_separator` finds the separator of columns. A row with more fields than the header is rejected with its text.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming.readwriter import DataStreamReader
from pyspark.sql.types import StringType, StructField, StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.schemas import REJECT_REASON
from abeyant.pipeline.sources.csv_quotes import quoted_breaks
from abeyant.pipeline.sources.csv_separator import check_utf_8, separator_in, separator_of
from abeyant.pipeline.sources.files import FileSource, is_shown
from abeyant.pipeline.spark.location import is_uri
from abeyant.tables.defaults import SHOWN_CHARS

__all__ = ["Csv"]

_UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"
# The column for the text of a row whose number of fields differs from the header's: Spark drops fields beyond it.
_RAW: Final = "_abeyant_raw"
_MOST_BEYOND: Final = 16
"""The number of fields beyond the header's that are checked for a value."""
# A quote within quotes is doubled, as in RFC 4180. (Spark's default is a backslash.)
_QUOTES: Final = {"escape": '"'}
_OPTIONS: Final = {"header": "true", **_QUOTES, "columnNameOfCorruptRecord": _RAW}


class Csv(FileSource):
    """CSV files."""

    format, called, endings = "csv", "CSV", ("csv", "tsv")
    # Refuse a file whose header differs from the first one's; by default Spark maps columns by position.
    # Files that arrive later may have line breaks within quotes.
    stream_options: ClassVar = {**_OPTIONS, "enforceSchema": "false", "multiLine": "true"}
    _sep = ","
    _first = ""
    """The path of the first file. Its folders `column=value` are partition columns of the table."""

    def read_as(self, schema: StructType) -> StructType:
        """Return the schema with one more column: the text of rows that have more or fewer fields than the header."""
        return StructType([*schema.fields, StructField(_RAW, StringType())])

    def columns_of(self, rows: DataFrame) -> DataFrame:
        """Reject rows with more fields than the header, and null their columns. Also null texts that are not UTF-8.

        (Spark replaces all letters that are not UTF-8 by one and the same letter. So a table in Latin-1 would have one
        key for Müller and Möller.)
        """
        fields = {field.name: field.dataType for field in rows.schema.fields if field.name != _RAW}
        columns = {name: F.col(f"`{name.replace('`', '``')}`") for name in fields}
        conditions = {
            name: ~columns[name].contains(_UNREADABLE) for name, kind in fields.items() if isinstance(kind, StringType)
        }
        file_columns = _without_folders(list(fields), self._first)
        rows = rows.withColumn(REJECT_REASON, _surplus(len(file_columns), self._sep)).drop(_RAW)
        fits_header = F.col(REJECT_REASON).isNull()
        conditions |= {
            name: conditions[name] & fits_header if name in conditions else fits_header for name in file_columns
        }
        values = {name: F.when(condition, columns[name]) for name, condition in conditions.items()}
        return rows.withColumns(values) if values else rows

    def schema(self, spark: SparkSession) -> StructType | None:
        """Return the columns of the current files; None if there are no files."""
        schema = super().schema(spark)
        return None if schema is None else StructType([field for field in schema if field.name != REJECT_REASON])

    def arriving(self, spark: SparkSession, reader: DataStreamReader) -> DataFrame:
        """Load files as `FileSource` does, with the separator of the files that exist now."""
        return super().arriving(spark, reader.option("sep", self._separator(spark)))

    def _load(self, spark: SparkSession, schema: StructType | None) -> DataFrame:
        separator = self._separator(spark)
        reader = spark.read.format("csv").options(**_OPTIONS, sep=separator, **self._quoting(spark, separator))
        table = (reader if schema is None else reader.schema(schema)).load(self.locations())
        if not Path(self.given.name).is_file() and not _renamed(table.columns):
            reader = reader.options(enforceSchema="false")
        return reader.schema(self.read_as(table.schema)).load(self.locations())

    def _separator(self, spark: SparkSession) -> str:
        """Return the column separator (a comma while there are no files), and keep it for `columns_of`."""
        files = self._local_files()
        if files is not None:
            self._sep, self._first = separator_in(files), str(files[0]) if files else ""
            return self._sep
        try:
            first = (
                spark.read.text(self.locations())
                .where("trim(value) != ''")
                .select(F.col("value").cast("binary"), "_metadata.file_path")
                .first()
            )
        except AnalysisException:
            first = None
        self._sep, self._first = ",", ""
        if first is not None:
            header, self._first = bytes(first[0]), first[1]
            check_utf_8(header, self._first)
            self._sep = separator_of(header.decode(errors="replace"), self._first)
        return self._sep

    def _local_files(self) -> list[Path] | None:
        """Return the files, sorted; None if only Spark can read them, on a store or compressed with Zstandard."""
        files = sorted(file for file in self.files() if is_shown(file.name))
        return None if is_uri(self.given.name) or any(file.suffix == ".zst" for file in files) else files

    def _quoting(self, spark: SparkSession, separator: str) -> dict[str, str]:
        """Return Spark's options for line breaks within quotes; {} if no file has such line breaks.

        A Spark job checks files on a store or in Zstandard: it refuses a file in which a line has an odd number of
        quotes.
        """
        files = self._local_files()
        if files is not None:
            ending = quoted_breaks(files, separator)
            return {} if ending is None else {"multiLine": "true", "lineSep": ending}
        odd = "length(regexp_replace(value, '[^\"]', '')) % 2 = 1"
        row = spark.read.text(self.locations()).where(odd).select("_metadata.file_path").first()
        if row is not None:
            place = "on a store" if is_uri(self.given.name) else "in a .zst file"
            raise AbeyantError(
                f"{row[0]}: a line ends within quotes, which is not supported {place}: "
                "copy the file to this machine, uncompressed, or write it as Parquet"
            )
        return {}


def _surplus(width: int, separator: str) -> Column:
    """Return why a row with more than `width` fields is rejected; null for other rows, and if further fields are empty.

    Spark also keeps the text of rows with fewer fields; these rows are not rejected, and their missing fields are null.
    """
    most = width + _MOST_BEYOND
    fields = F.from_csv(_RAW, ", ".join(f"`{n}` STRING" for n in range(most)), {**_QUOTES, "sep": separator})
    surplus = F.coalesce(*(fields[str(n)] for n in range(width, most)))
    message = F.concat(F.lit(f"more fields than the {width} of the header: "), F.left(_RAW, F.lit(SHOWN_CHARS)))
    return F.when(F.col(_RAW).isNotNull() & surplus.isNotNull(), message)


def _without_folders(names: list[str], file: str) -> list[str]:
    """Return the columns that are in a file itself: drop the partition columns, named by its folders, at the end."""
    folders = {unquote(part.partition("=")[0]) for part in file.split("/")[:-1] if "=" in part}
    while names and names[-1] in folders:
        names = names[:-1]
    return names


def _renamed(names: list[str]) -> bool:
    """Return whether Spark may have renamed columns: it appends a number to empty and repeated names."""
    return any(name.endswith(str(place)) for place, name in enumerate(names))
