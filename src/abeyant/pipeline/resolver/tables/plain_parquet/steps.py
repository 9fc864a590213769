"""Find out without a job whether any condition may be `then`: from the plan and the statistics of Parquet files.

This also works for files that are filtered, joined or united, because their conditions still come from the files.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from abeyant.pipeline.resolver.tables.plain_parquet.footers import (
    PlainTable,
    has_encrypted_columns,
    may_be_then,
    of_each_file,
    reads_as_is,
)
from abeyant.pipeline.resolver.tables.plain_parquet.stored import Stored, opened
from abeyant.pipeline.spark.plans import column_origins

__all__ = ["may_have_steps"]


def may_have_steps(operations: DataFrame, plain: PlainTable | None) -> bool:
    """Return whether a `condition` may be `then`. Pass `plain` if the operations are plain files. Runs no job.

    The driver reads the footer of each file; the footers of plain files have been read already. O(files).
    """
    if plain is not None:
        return any(group.may_have_steps for group in plain.groups)
    spark = operations.sparkSession
    origins = column_origins(operations, "condition") if reads_as_is(spark) else None
    if origins is None or "then" in origins:
        return True
    for origin in origins:
        if isinstance(origin, str):
            continue
        found = of_each_file(spark, origin.files, partial(_may_have_steps, name=origin.name))
        if found is None or any(found):
            return True
    return False


def _may_have_steps(file: Stored, name: str) -> bool:
    import pyarrow.parquet as pq

    try:
        with opened(file) as source:
            about: Any = pq.read_metadata(source)
            if has_encrypted_columns(about, source):
                return True
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        (leaf,) = (n for n in range(about.num_columns) if about.schema.column(n).path == name)
        return any(may_be_then(("column", name), [group.column(leaf)]) for group in groups if group.num_rows)
    except (OSError, TypeError, ValueError, pa.ArrowException):  # a job will find out
        return True
