"""Read a table of a result with Spark: complete results and batches only."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import IntegerType, StructField, StructType

from abeyant.errors import AbeyantError
from abeyant.former import former, written_before
from abeyant.pipeline.resolver.rejected import REJECTED_ROWS
from abeyant.pipeline.results.directory import MARKER, STREAM
from abeyant.pipeline.results.manifests import BATCHES, files_of, read_manifest
from abeyant.pipeline.schemas import OUTCOMES
from abeyant.pipeline.spark.location import literal, plain
from abeyant.pipeline.spark.store import places_of

__all__ = ["read_result"]

_OF_STREAMS: Final = {"outcomes": OUTCOMES, "aside": REJECTED_ROWS}


def read_result(spark: SparkSession, out: str | Path, table: str = "outcomes") -> DataFrame:
    """Return a table of the result at `out`, a path or URI: the `--out` of a command, or the `out` of a `ParquetSink`.

    Where directories cannot be renamed, only files that manifests name are read. One job lists all manifests at the
    time of the call: batches that a stream writes later are not in the table. A stream's table has a column `batch`.
    Raises `AbeyantError` if there is no result, or no such table in it.
    """
    root = literal(str(out)).rstrip("/")
    marker = next((texts for place in places_of(f"{root}/{MARKER}") if (texts := _texts(spark, place))), [])
    manifest = read_manifest("".join(marker), out)
    if manifest is not None:
        files = files_of(manifest, table)
        if not files:
            raise AbeyantError(f"{out} has no table {table!r}; there are {', '.join(sorted(manifest['files']))}")
        return spark.read.parquet(*(f"{root}/{file}" for file in files))
    batches = [batch for text in _texts(spark, f"{root}/{BATCHES}") if (batch := read_manifest(text, out))]
    if batches:
        path = plain(str(out)).rstrip("/")
        return _of_batches(spark, path, table, [file for batch in batches for file in files_of(batch, table)])
    if any(_texts(spark, f"{root}/{former(mark)}") for mark in (MARKER, STREAM)):
        raise written_before(out, "make it anew")
    try:
        return spark.read.parquet(f"{root}/{table}")
    except AnalysisException as error:
        raise AbeyantError(f"{out} is not a finished result with a table {table!r}: name another directory") from error


def _of_batches(spark: SparkSession, root: str, table: str, files: list[str]) -> DataFrame:
    if table not in _OF_STREAMS:
        raise AbeyantError(f"a stream has no table {table!r}; there are {', '.join(_OF_STREAMS)}")
    schema = StructType([*_OF_STREAMS[table].fields, StructField("batch", IntegerType())])
    if not files:
        return spark.createDataFrame([], schema)
    if table == "outcomes":  # which may have columns of details
        first = spark.read.parquet(literal(f"{root}/{files[0]}")).schema
        schema = StructType([*(field for field in first.fields if field.name != "batch"), schema["batch"]])
    reader = spark.read.schema(schema).option("basePath", f"{root}/{table}")
    return reader.parquet(*(literal(f"{root}/{file}") for file in files))


def _texts(spark: SparkSession, path: str) -> list[str]:
    """Return the text of each file at `path`, which may be a directory; nothing if it does not exist."""
    try:
        return [row[0] for row in spark.read.text(path, wholetext=True).collect()]
    except AnalysisException as error:
        if error.getCondition() == "PATH_NOT_FOUND":
            return []
        raise
