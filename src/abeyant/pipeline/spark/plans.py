"""Read a table's estimated size, and the files of a plain scan, from Spark's plan. Runs no job.

The size is parsed from the plan's text, which every kind of session has; the files come from the plan itself, in the
driver's JVM.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from abeyant.pipeline.spark.connect import is_connect

__all__ = ["Size", "estimated_size", "scanned_files"]

_SIZE: Final = re.compile(r"Statistics\(sizeInBytes=([\d.E+]+) (B|[KMGTPE]iB)")
_RELATIONS: Final = re.compile(r"^[\s:+-]*(Relation|RelationV2) ?\[?", re.MULTILINE)
_ROWS: Final = re.compile(r"== Optimized Logical Plan ==\s*LocalRelation ")
_UNPACKED: Final = 6
_UNITS: Final = {unit: 1 << (10 * n) for n, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}

_CATALYST: Final = "org.apache.spark.sql.catalyst"
_SOURCES: Final = "org.apache.spark.sql.execution.datasources"
_PROJECT: Final = f"{_CATALYST}.plans.logical.Project"
_ATTRIBUTE: Final = f"{_CATALYST}.expressions.AttributeReference"
_RELATION: Final = f"{_SOURCES}.LogicalRelation"
_FILES: Final = f"{_SOURCES}.HadoopFsRelation"
# Another project's format has classes of its own, such as Delta Lake's, though its files are Parquet.
_FORMAT: Final = f"{_SOURCES}.parquet.ParquetFileFormat"
_INDEX: Final = f"{_SOURCES}.InMemoryFileIndex"

_OPTIONS: Final = {
    *("path", "paths", "__paths__", "basepath", "mergeschema", "recursivefilelookup"),
    *("pathglobfilter", "modifiedbefore", "modifiedafter"),
}
"""Of a reader: which files there are, and what schema. Any other might change what is read of them."""


class Size(NamedTuple):
    """A table's estimated size."""

    bytes: float
    in_plan: bool
    """Whether the plan itself holds all the rows, which came from this process."""


def estimated_size(table: DataFrame) -> Size | None:
    """Return the size that Spark's optimizer estimates for a table; None where it gives none. Runs no job.

    Exact for rows that came from this process; 8 EiB where nothing is known, as for an RDD. Spark estimates files by
    their size on disk; here they count sixfold, since they may be compressed.

    (`EXPLAIN` in SQL gives it too, but needs a view of the table, which takes 1.5 s more in a fresh JVM.)
    """
    try:
        plan = _explained(table)
    except PySparkException:  # running the query reports what is wrong with the table better
        return None
    found = _SIZE.search(plan)
    if found is None:
        return None
    size = float(found[1]) * _UNITS[found[2]] * (_UNPACKED if _RELATIONS.search(plan) else 1)
    return Size(size, _ROWS.match(plan) is not None)


def _explained(table: DataFrame) -> str:
    """Return what `table.explain(mode="cost")` prints."""
    either: Any = table
    if is_connect(table.sparkSession):
        return str(either._explain_string(mode="cost"))
    return str(either.sparkSession._jvm.PythonSQLUtils.explainString(either._jdf.queryExecution(), "cost"))


def scanned_files(table: DataFrame, wanted: StructType) -> list[str]:
    """Return the URIs of the files of which a table is a mere scan; none where it is something else.

    What Spark prints of a plan lacks the reader's options and the partitions' columns, so this asks the plan itself.
    """
    classic: Any = table
    plan = classic._jdf.queryExecution().optimizedPlan()
    if _class_of(plan) == _PROJECT:
        columns = plan.projectList()
        if any(_class_of(columns.apply(number)) != _ATTRIBUTE for number in range(columns.size())):
            return []
        plan = plan.child()
    if _class_of(plan) != _RELATION or plan.catalogTable().isDefined():
        return []
    relation = plan.relation()
    if _class_of(relation) != _FILES or _class_of(relation.fileFormat()) != _FORMAT:
        return []
    if _class_of(relation.location()) != _INDEX:
        return []
    options = relation.options().keySet().mkString("\n").lower().split()
    in_paths = {name.lower() for name in relation.partitionSchema().fieldNames()}
    if not _OPTIONS.issuperset(options) or in_paths.intersection(map(str.lower, wanted.fieldNames())):
        return []
    return list(relation.location().inputFiles())


def _class_of(what: Any) -> str:
    return str(what.getClass().getName())
