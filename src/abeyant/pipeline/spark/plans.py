"""Read from a query plan: a table's estimated size, the files and filter of a plain scan, and a column's origins.

No job is run. The size is parsed from the plan's text, which every kind of session has. The rest is read from the
plan's objects in the driver's JVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from abeyant.pipeline.spark.connect import is_connect

__all__ = [
    "Expression",
    "FileColumn",
    "Scan",
    "Size",
    "column_origins",
    "constant_text",
    "estimated_size",
    "names_of",
    "plain_scan",
]

_SIZE: Final = re.compile(r"Statistics\(sizeInBytes=([\d.E+]+) (B|[KMGTPE]iB)")
_RELATIONS: Final = re.compile(r"^[\s:+-]*(Relation|RelationV2) ?\[?", re.MULTILINE)
_ROWS: Final = re.compile(r"== Optimized Logical Plan ==\s*LocalRelation ")
# The plan of a stream has a `~` before its node.
_CONSTANT: Final = re.compile(r"== Optimized Logical Plan ==\s*~?Project \[([^#(]*) AS [^#]*#\d+\]")
_UNPACKED: Final = 6
_UNITS: Final = {unit: 1 << (10 * n) for n, unit in enumerate(("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"))}

_CATALYST: Final = "org.apache.spark.sql.catalyst"
_SOURCES: Final = "org.apache.spark.sql.execution.datasources"
_PROJECT: Final = f"{_CATALYST}.plans.logical.Project"
_FILTER: Final = f"{_CATALYST}.plans.logical.Filter"
_UNION: Final = f"{_CATALYST}.plans.logical.Union"
_AGGREGATE: Final = f"{_CATALYST}.plans.logical.Aggregate"
_PASSING: Final = {
    f"{_CATALYST}.plans.logical.{name}"
    for name in (
        *("Filter", "Join", "Sort", "Sample", "Window", "LocalLimit", "GlobalLimit", "Generate"),
        *("Repartition", "RepartitionByExpression", "RebalancePartitions"),
    )
}
"""Plan nodes that only pass their children's columns on: each value is a value of the child's column, or null."""
_EXPRESSIONS: Final = f"{_CATALYST}.expressions."
_RELATION: Final = f"{_SOURCES}.LogicalRelation"
_FILES: Final = f"{_SOURCES}.HadoopFsRelation"
# Another project's format has classes of its own, such as Delta Lake's, though its files are Parquet.
_FORMAT: Final = f"{_SOURCES}.parquet.ParquetFileFormat"
_INDEX: Final = f"{_SOURCES}.InMemoryFileIndex"

_OPTIONS: Final = {
    *("path", "paths", "__paths__", "basepath", "mergeschema", "recursivefilelookup"),
    *("pathglobfilter", "modifiedbefore", "modifiedafter"),
}
"""Reader options that choose files and schema only. Any other option might change the values that are read."""


# Types whose values compare the same in Spark and in Arrow: not floats (NaN), nor text with a collation.
_COMPARED: Final = ("string", "bigint", "int", "smallint", "tinyint", "timestamp", "date", "boolean")
_INTEGERS: Final = ("bigint", "int", "smallint", "tinyint")
_OPERATORS: Final = {
    "And": "and", "Or": "or", "Not": "not", "IsNull": "is null", "IsNotNull": "is not null",
    "EqualTo": "=", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
}  # fmt: skip

Expression = tuple[Any, ...]
"""An expression that a scan computes: an operator and its operands, which are expressions too.

`("column", name, type)` and `("literal", value, type)` have no operands; types are in Spark's notation. `("cast",
operand, type)` converts, `("list", operand)` makes a list of one value, `("struct", name, operand, ...)` a struct. The
other operators are comparisons (`=` and so on), `and`, `or`, `not`, `is null` and `is not null`, which mean the same as
in SQL.
"""


class Scan(NamedTuple):
    """A table that is a scan of Parquet files, with at most a filter and columns that are renamed or constant."""

    files: Sequence[str]
    """The URIs of the files."""
    columns: Mapping[str, Expression]
    condition: Expression | None
    """The filter: the scan keeps the rows for which this is true; None keeps all."""


class FileColumn(NamedTuple):
    """A column of Parquet files."""

    files: Sequence[str]
    """The URIs of the files."""
    name: str


class Size(NamedTuple):
    """A table's estimated size."""

    bytes: float
    in_plan: bool
    """Whether the plan itself holds all the rows, which came from this process."""


def estimated_size(table: DataFrame) -> Size | None:
    """Return the size that Spark's optimizer estimates for a table; None if there is no estimate. Runs no job.

    The size is exact for rows that came from this process, and 8 EiB if nothing is known, as for an RDD. Spark
    estimates files by their size on disk; here they count sixfold, since they may be compressed.

    (`EXPLAIN` in SQL gives the size too, but needs a view of the table, which takes 1.5 s more in a fresh JVM.)
    """
    try:
        plan = _explained(table)
    except PySparkException:  # running the query reports what is wrong with the table better
        return None
    match = _SIZE.search(plan)
    if match is None:
        return None
    size = float(match[1]) * _UNITS[match[2]] * (_UNPACKED if _RELATIONS.search(plan) else 1)
    return Size(size, _ROWS.match(plan) is not None)


def constant_text(table: DataFrame, column: str) -> str | None:
    """Return the text that a column has in every row according to the plan, such as a literal; None if it is not shown.

    A text with `#` or `(` is not found, because a plan prints texts in the same way as expressions. Runs no job.
    """
    try:
        match = _CONSTANT.match(_explained(table.select(f"`{column}`")))
    except PySparkException:
        return None
    return None if match is None else match[1]


def _explained(table: DataFrame) -> str:
    """Return what `table.explain(mode="cost")` prints."""
    frame: Any = table
    if is_connect(table.sparkSession):
        return str(frame._explain_string(mode="cost"))
    return str(frame.sparkSession._jvm.PythonSQLUtils.explainString(frame._jdf.queryExecution(), "cost"))


def plain_scan(table: DataFrame, required: Iterable[str]) -> Scan | None:
    """Return a table's scan of Parquet files, with the columns `required`; None if the table is anything else.

    The text of a plan lacks the reader's options and the partitions' columns, so this reads the plan's objects.
    """
    classic: Any = table
    plan = classic._jdf.queryExecution().optimizedPlan()
    columns: dict[str, Expression] | None = None
    condition: Expression | None = None
    try:
        if _class_of(plan) == _PROJECT:
            columns = {item.name(): _expression(item) for item in _all_of(plan.projectList())}
            plan = plan.child()
        if _class_of(plan) == _FILTER:
            condition = _expression(plan.condition())
            plan = plan.child()
        relation = _parquet_relation(plan)
        if relation is None:
            return None
        if columns is None:
            columns = {attribute.name(): _expression(attribute) for attribute in _all_of(plan.output())}
    except _UnknownError:
        return None
    options = relation.options().keySet().mkString("\n").lower().split()
    lower = {name.lower(): expression for name, expression in columns.items()}
    if not _OPTIONS.issuperset(options) or any(name.lower() not in lower for name in required):
        return None
    selected = {name: lower[name.lower()] for name in required}
    column_types = names_of([*selected.values(), *([] if condition is None else [condition])])
    if {name.lower() for name in column_types}.intersection(map(str.lower, relation.partitionSchema().fieldNames())):
        return None
    return Scan(_uris(table, relation), selected, condition)


def column_origins(table: DataFrame, name: str) -> list[FileColumn | str] | None:
    """Return the origins of a text column: constants, and columns of Parquet files. Runs no job.

    Every value of the column is null, such a constant, or a value of such a column; filters, joins and so on may drop
    values. Return None if anything else contributes values, such as a function, another format, or rows that are in no
    file. O(nodes of the plan and files).
    """
    if is_connect(table.sparkSession):
        return None
    classic: Any = table
    plan = classic._jdf.queryExecution().optimizedPlan()
    outputs = [attribute for attribute in _all_of(plan.output()) if attribute.name() == name]
    if len(outputs) != 1 or outputs[0].dataType().simpleString() != "string":
        return None
    try:
        return _origins(table, plan, outputs[0])
    except _UnknownError:
        return None


def _origins(table: DataFrame, plan: Any, column: Any) -> list[FileColumn | str]:
    """Return the origins of a column of a plan's output. Raises `_UnknownError` if the plan does not show them all."""
    kind = _class_of(plan)
    if kind in (_PROJECT, _AGGREGATE):
        expressions = plan.projectList() if kind == _PROJECT else plan.aggregateExpressions()
        (expression,) = (attribute for attribute in _all_of(expressions) if _is_same_column(attribute, column))
        return _origins_of_value(table, plan.child(), expression)
    if kind == _UNION:
        number = next(
            number for number, attribute in enumerate(_all_of(plan.output())) if _is_same_column(attribute, column)
        )
        sources = [(child, child.output().apply(number)) for child in _all_of(plan.children())]
    elif kind in _PASSING:
        sources = [(child, column) for child in _all_of(plan.children()) if child.outputSet().contains(column)]
    else:
        relation = _parquet_relation(plan)
        if relation is None:
            raise _UnknownError
        name = next(str(attribute.name()) for attribute in _all_of(plan.output()) if _is_same_column(attribute, column))
        if name in relation.partitionSchema().fieldNames():
            raise _UnknownError
        return [FileColumn(_uris(table, relation), name)]
    if not sources:
        raise _UnknownError
    return [origin for child, attribute in sources for origin in _origins(table, child, attribute)]


def _origins_of_value(table: DataFrame, plan: Any, expression: Any) -> list[FileColumn | str]:
    """Return the origins of an expression over a plan's output. Raises `_UnknownError` as `_origins` does."""
    name = _class_of(expression).removeprefix(_EXPRESSIONS)
    if name == "Alias":
        return _origins_of_value(table, plan, expression.child())
    if name == "AttributeReference":
        return _origins(table, plan, expression)
    if name == "Literal":
        return [] if expression.value() is None else [str(expression.value())]
    if name == "Coalesce":
        return [
            origin for operand in _all_of(expression.children()) for origin in _origins_of_value(table, plan, operand)
        ]
    raise _UnknownError


def _is_same_column(attribute: Any, column: Any) -> bool:
    """Return whether two columns of a plan are the same."""
    return bool(attribute.exprId().equals(column.exprId()))


def names_of(expressions: Iterable[Expression]) -> dict[str, str]:
    """Return the types of the columns that expressions read, by column name."""
    types: dict[str, str] = {}
    for operator, *operands in expressions:
        if operator == "column":
            types[operands[0]] = operands[1]
        elif operator != "literal":
            types |= names_of(operand for operand in operands if isinstance(operand, tuple))
    return types


class _UnknownError(Exception):
    """Raised for a plan node or expression that is not supported here."""


def _expression(expression: Any) -> Expression:
    """Translate an expression of Spark's plan. Raises `_UnknownError` if `Expression` cannot represent it."""
    name, kind = _class_of(expression).removeprefix(_EXPRESSIONS), expression.dataType().simpleString()
    if name == "Alias":
        return _expression(expression.child())
    if name == "AttributeReference":
        return "column", str(expression.name()), kind
    if name == "Literal":
        value = expression.value()
        if kind not in _COMPARED:
            raise _UnknownError
        return "literal", str(value) if kind == "string" and value is not None else value, kind
    operands = [_expression(operand) for operand in _all_of(expression.children())]
    if name in _OPERATORS:
        if any(data_type not in _COMPARED for data_type in names_of(operands).values()):
            raise _UnknownError
        return _OPERATORS[name], *operands
    if name == "In":
        value, *items = operands
        equal: list[Expression] = [("=", value, item) for item in items]
        return equal[0] if len(equal) == 1 else ("or", *equal)
    if name == "Cast" and expression.child().dataType().simpleString() in _INTEGERS and kind in ("bigint", "string"):
        return "cast", *operands, kind
    if name == "CreateArray" and len(operands) == 1:
        return "list", *operands
    if name == "CreateNamedStruct":
        return "struct", *(operand if number % 2 else operand[1] for number, operand in enumerate(operands))
    raise _UnknownError


def _parquet_relation(plan: Any) -> Any:
    """Return the file relation of a plan that scans Parquet files outside the catalog; None for another plan."""
    if _class_of(plan) != _RELATION or plan.catalogTable().isDefined():
        return None
    relation = plan.relation()
    if _class_of(relation) != _FILES or _class_of(relation.fileFormat()) != _FORMAT:
        return None
    return relation if _class_of(relation.location()) == _INDEX else None


def _uris(table: DataFrame, relation: Any) -> list[str]:
    """Return the URIs of a relation's files. One call for all, since a call into the JVM takes 0.1 ms."""
    jvm: Any = table.sparkSession._jvm
    return str(jvm.scala.collection.mutable.ArraySeq.make(relation.location().inputFiles()).mkString("\n")).split()


def _all_of(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _class_of(instance: Any) -> str:
    return str(instance.getClass().getName())
