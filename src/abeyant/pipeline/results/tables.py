"""Write tables and their page, which appear together or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.results.directory import REPORT, write_marker
from abeyant.pipeline.results.registry import sink_of
from abeyant.pipeline.results.sink import Out, ResultWriter
from abeyant.pipeline.spark.jobs import name_jobs
from abeyant.pipeline.spark.progress import Steps
from abeyant.pipeline.spark.versions import versions_of

__all__ = ["write_result"]


def write_result(
    spark: SparkSession,
    out: Out,
    tables: Mapping[str, DataFrame],
    write_report: Callable[[Path, Path], None],
    *,
    overwrite: bool,
    quiet: bool,
    about: Mapping[str, Any],
    drawn: Iterable[str],
) -> ResultWriter:
    """Write each table as Parquet below `out`, and the report that `write_report(folder, file)` makes of some.

    `drawn` names the tables that the report shows. `about` are further entries of the marker. Returns the writer of the
    result. Raises `AbeyantError` if `out` cannot be written.
    """
    steps, group = Steps(quiet=quiet), "abeyant-result"
    with sink_of(out).table(spark, overwrite=overwrite) as result:
        for name, table in tables.items():
            name_jobs(spark, group, name)
            with steps.step(f"writing {name}", spark, group):
                result.write(name, table)
        made = {"made": datetime.now(UTC).isoformat(timespec="seconds"), **about, "versions": versions_of(spark)}
        write_marker(result.folder, made | {"tables": list(tables)})
        with steps.step("writing the report"):
            result.fetch(*drawn)
            write_report(result.folder, result.folder / REPORT)
    return result
