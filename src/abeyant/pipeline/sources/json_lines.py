"""Read JSON lines: as a table with the columns that Spark infers; as a stream of records, field by field."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import ArrayType, MapType, StructType

from abeyant.errors import AbeyantError
from abeyant.pipeline.schemas import REJECT_REASON
from abeyant.pipeline.sources.files import FileSource
from abeyant.tables.defaults import SHOWN_CHARS

__all__ = ["JsonLines"]


class JsonLines(FileSource):
    """Files with one JSON object per line."""

    format, called, endings = "json", "JSON", ("json", "jsonl", "ndjson")
    first_file_counts = False

    def stream(self, spark: SparkSession) -> DataFrame:
        """Return the lines as a stream of operations or events; lines with unreadable values are marked as rejected."""
        return self._of_lines(spark, self.lines(spark))

    def again(self, spark: SparkSession) -> DataFrame:
        """Return the current lines as operations or events, read as `stream` reads them, but not as a stream."""
        return self._of_lines(spark, _as_records(spark.read.format("text").load(self.locations())))

    def lines(self, spark: SparkSession) -> DataFrame:
        """Return a stream of lines as records: `value` is the line, and `record` has the path of its file."""
        return _as_records(self.arriving(spark, spark.readStream.format("text")))

    def columns_of(self, rows: DataFrame) -> DataFrame:
        """Reject lines that are no JSON object, in which all columns are null; the reason quotes their text."""
        corrupt = str(rows.sparkSession.conf.get("spark.sql.columnNameOfCorruptRecord"))
        if corrupt not in rows.columns:
            return rows
        message = F.concat(F.lit("not a JSON object: "), F.left(corrupt, F.lit(SHOWN_CHARS)))
        return rows.withColumn(REJECT_REASON, message).drop(corrupt)

    def _load(self, spark: SparkSession, schema: StructType | None) -> DataFrame:
        table = super()._load(spark, schema)
        if table.columns == [str(spark.conf.get("spark.sql.columnNameOfCorruptRecord"))]:
            raise AbeyantError(f"{self.given.name}: no line is a JSON object: write one object per line")
        return table

    def _of_lines(self, spark: SparkSession, lines: DataFrame) -> DataFrame:
        fields = self.given.fields()
        return self.given.of_records(lines, _composed(self.schema(spark)) if fields is None else fields)


def _as_records(lines: DataFrame) -> DataFrame:
    return lines.select("value", F.struct(F.col("_metadata.file_path").alias("file")).alias("record"))


def _composed(schema: StructType | None) -> StructType | None:
    """Return only the nested fields. All other fields are read as text, so that a reason can quote a wrong value."""
    if schema is None:
        return None
    parts = (StructType, ArrayType, MapType)
    composed = [part for part in schema.fields if isinstance(part.dataType, parts) and part.name != "watches"]
    return StructType(composed)
