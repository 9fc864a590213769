"""How large Spark takes a table for, before any job: the statistics of its plan."""

from __future__ import annotations

import re
from functools import partial
from typing import Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from abeyant.pipeline.spark.printed import printed

__all__ = ["Size", "estimated_size"]

_SIZE: Final = re.compile(r"Statistics\(sizeInBytes=([\d.E+]+) (B|[KMGTPE]iB)")
_FILES: Final = re.compile(r"^[\s:+-]*(Relation|RelationV2) ?\[?", re.MULTILINE)
_ROWS: Final = re.compile(r"== Optimized Logical Plan ==\s*LocalRelation ")
_UNPACKED: Final = 6
_UNITS: Final = {unit: 1 << (10 * n) for n, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}


class Size(NamedTuple):
    """How large a table is taken for."""

    bytes: float
    in_plan: bool
    """Whether it is nothing but rows that came from this process and stand in the plan itself."""


def estimated_size(table: DataFrame) -> Size | None:
    """Return the size that Spark's optimizer takes a table for; None where it does not say. No job is run.

    Of rows that came from this process it is what they take; 8 EiB where nothing is known, as of an RDD. Spark takes
    files for as large as they are on disk; here they count sixfold, since they may be compressed.

    Every kind of session can only print it. (An `EXPLAIN` in SQL tells it, but needs a view of the table. In a fresh
    JVM that takes 1.5 s more.)
    """
    try:
        plan = printed(partial(table.explain, mode="cost"))
    except PySparkException:  # whatever is wrong with the table, its own query will say so better
        return None
    found = _SIZE.search(plan)
    if found is None:
        return None
    size = float(found[1]) * _UNITS[found[2]] * (_UNPACKED if _FILES.search(plan) else 1)
    return Size(size, _ROWS.match(plan) is not None)
