"""Tables and a page that appear together, or not at all."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from abeyance.pipeline.results.directory import check_written, new_result, write_marker
from abeyance.pipeline.spark.jobs import name_jobs
from abeyance.pipeline.spark.progress import Steps

__all__ = ["REPORT", "write_result"]

REPORT: Final = "report.html"


def write_result(
    spark: SparkSession,
    out: Path,
    tables: Mapping[str, DataFrame],
    write_report: Callable[[Path, Path], None],
    *,
    overwrite: bool,
    quiet: bool,
    about: Mapping[str, Any],
) -> Path:
    """Write each table as Parquet below `out`, and the report that `write_report(out, file)` makes of them.

    `about` says how it was made. Raises `AbeyanceError` where `out` may not be written. Returns the report's path.
    """
    from abeyance import __version__

    steps, group = Steps(quiet=quiet), "abeyance-result"
    with new_result(out, overwrite=overwrite) as aside:
        for name, table in tables.items():
            name_jobs(spark, group, name)
            with steps.step(f"writing {name}", spark, group):
                table.write.parquet(f"file://{aside / name}")
            check_written(aside / name)
        versions = {"abeyance": __version__, "spark": spark.version, "python": platform.python_version()}
        made = {"made": datetime.now(UTC).isoformat(timespec="seconds"), **about, "versions": versions}
        write_marker(aside, made | {"tables": list(tables)})
        with steps.step("writing the report"):
            write_report(aside, aside / REPORT)
    return out / REPORT
