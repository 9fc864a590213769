"""The columns of operations, events and outcomes in Arrow, with the types that are accepted for them.

The columns are the same as in `abeyant.pipeline`; integers may have any width, texts any type of Arrow's, timestamps
any unit. Defaults are in `defaults`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.types as kinds

from abeyant.errors import SchemaError, listed
from abeyant.tables.defaults import DEFAULTS, only_role

__all__ = ["DETAILS", "EVENTS", "OPERATIONS", "OUTCOMES", "check", "columns_of", "expected_columns", "is_whole"]

OPERATIONS: Final[Mapping[str, str]] = {
    "instance": "text",
    "op_id": "text",
    "kind": "text",
    "start": "a timestamp",
    "timeout_ms": "an integer",
    "watches": "a list of structs of key (text) and required (an integer)",
    "condition": "text",
}
_DEADLINES: Final = {"timeout_ms": "an integer", "timeout": "a duration or text", "deadline": "a timestamp"}
_FURTHER: Final = {
    "extend_ms": "an integer",
    "extend": "a duration or text",
    "cancel_key": "text",
    "extend_key": "text",
    "pause_key": "text",
}
EVENTS: Final[Mapping[str, str]] = {
    "instance": "text",
    "key": "text",
    "at": "a timestamp",
    "progress": "an integer",
}
OUTCOMES: Final = pa.schema(
    {
        "instance": pa.string(),
        "op_id": pa.string(),
        "kind": pa.string(),
        "outcome": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "waited_ms": pa.float64(),
    }
)
_BY: Final = pa.struct({"key": pa.string(), "at": pa.timestamp("us", "UTC")})
DETAILS: Final = pa.schema([*OUTCOMES, ("completed_by", _BY), ("cancelled_by", _BY), ("counted", pa.int64())])
"""The schema of outcomes with `details=True`."""


def columns_of(schema: Mapping[str, str]) -> set[str]:
    """Return the names of all columns of operations or events that are read if a table has them."""
    return {*schema, *_DEADLINES, *_FURTHER, "key", "required"} if "watches" in schema else {*schema}


def expected_columns(expected: Mapping[str, str], names: Collection[str]) -> dict[str, str]:
    """Return the columns to read from a table whose columns are `names`, and their types.

    For operations, optional columns are added, and one time limit is chosen: `timeout_ms` takes precedence over
    `timeout`, and `timeout` over `deadline`.
    """
    if "timeout_ms" not in expected:
        return dict(expected)
    columns = {**expected, **{name: kind for name, kind in _FURTHER.items() if name in names}}
    del columns["timeout_ms"]
    time_limit = next((name for name in _DEADLINES if name in names), "timeout_ms")
    return columns | {time_limit: _DEADLINES[time_limit]}


def check(schema: pa.Schema, expected: Mapping[str, str], name: str) -> None:
    """Raise `SchemaError` unless the table `name` has every expected column without a default, of an accepted type.

    Instead of `watches` there may be `key` and `required`, or a column such as `extend_key` alone. Other columns are
    ignored, but a column whose name differs only in case from a column with a default is refused.
    """
    expected = expected_columns(expected, schema.names)
    if "watches" in expected and "watches" not in schema.names:
        del expected["watches"]
        if only_role(schema.names) is None:
            expected |= {"key": "text", "required": "an integer"}
    for column, kind in expected.items():
        indices = schema.get_all_field_indices(column)
        if not indices and column in DEFAULTS:
            spelling = next((field for field in schema.names if field.lower() == column), None)
            if spelling is not None:  # Spark would read it, and here it would have no effect
                raise SchemaError(f"{name}: column {spelling!r} must be spelled {column!r}: rename it")
            continue
        if len(indices) != 1:
            columns = listed(schema.names)
            problem = "no column" if not indices else f"{len(indices)} columns"
            hint = "" if indices else _in_other_case(schema.names, column, expected)
            raise SchemaError(f"{name}: {problem} {column!r}, expected {kind} (columns: {columns}){hint}")
        if not _fits(schema.field(indices[0]).type, kind):
            data_type = schema.field(indices[0]).type
            hint = _mend(column, data_type, kind)
            raise SchemaError(f"{name}: column {column!r} is {data_type}, expected {kind}{hint}")


def _in_other_case(names: Collection[str], column: str, expected: Collection[str]) -> str:
    """Return a hint to rename columns, if the missing `column` exists in another case; else ''."""
    renames = {name: name.lower() for name in names if name not in expected and name.lower() in expected}
    if column not in renames.values():
        return ""
    pairs = ", ".join(f"{name} to {lower}" for name, lower in renames.items())
    return f"; rename {pairs} (in pandas: .rename(columns=str.lower))"


def _mend(column: str, data_type: pa.DataType, kind: str) -> str:
    """Return a hint on how to convert a column of the wrong type; '' where none is obvious."""
    if kind == "a timestamp":
        if kinds.is_date(data_type):
            day = "the end of that day, which is the next day's" if column == "deadline" else "its"
            return f": a date has no time of day; cast it to a timestamp, such as {day} midnight"
        if _is_text(data_type):
            return ": parse the texts first, for instance with pandas.to_datetime(..., utc=True)"
        if kinds.is_integer(data_type) or kinds.is_floating(data_type):
            return ": a number has no unit; cast it to a timestamp"
    if kind == "text" and kinds.is_floating(data_type):  # pandas has floats for integers with missing values
        return ": pandas turns integers with missing values into floats; convert them back with .astype('Int64')"
    if kind == "text" and (
        kinds.is_binary(data_type) or kinds.is_large_binary(data_type) or kinds.is_fixed_size_binary(data_type)
    ):
        return f": write bytes as text, such as lower(hex({column})) in SQL, .map(bytes.hex, 'ignore') in pandas"
    if kind == "text" and not kinds.is_nested(data_type):
        return f": cast it to text: CAST({column} AS VARCHAR) in SQL, .astype('string') in pandas"
    if kind == "an integer" and not column.endswith("_ms") and (_is_text(data_type) or kinds.is_boolean(data_type)):
        return (
            ": convert it, for instance with pandas.to_numeric(...)" if _is_text(data_type) else ": cast it to integers"
        )
    if kind == "a duration or text" and (kinds.is_integer(data_type) or kinds.is_floating(data_type)):
        return f": a number has no unit; name the column {column}_ms if it is milliseconds"
    if column.endswith("_ms") and (kinds.is_duration(data_type) or _is_text(data_type)):
        return f": name the column {column.removesuffix('_ms')} if it has durations, or texts such as '15 min'"
    return ""


def _fits(data_type: pa.DataType, kind: str) -> bool:
    if kinds.is_run_end_encoded(data_type):
        data_type = data_type.value_type
    if kinds.is_null(data_type):
        return True  # all values are null: each row is rejected with its reason
    if kind == "text":  # ids and keys may be numbers: 7 is "7"
        return _is_text(data_type) or is_whole(data_type)
    if kind == "an integer":  # decimals and floats if whole: sums of DuckDB, pandas columns with missing values
        return bool(kinds.is_integer(data_type) or kinds.is_decimal(data_type) or kinds.is_floating(data_type))
    if kind == "a number":
        return bool(kinds.is_floating(data_type) or kinds.is_integer(data_type))
    if kind == "a duration or text":
        return bool(kinds.is_duration(data_type) or data_type == pa.month_day_nano_interval()) or _is_text(data_type)
    if kind == "a timestamp":
        return bool(kinds.is_timestamp(data_type))
    return _is_list_of_watches(data_type)


def is_whole(kind: pa.DataType) -> bool:
    """Return whether a type has whole numbers only: integers, or decimals of scale 0, such as DuckDB's sums."""
    return bool(kinds.is_integer(kind) or (kinds.is_decimal(kind) and kind.scale == 0))


def _is_text(data_type: pa.DataType) -> bool:
    if kinds.is_dictionary(data_type):
        data_type = data_type.value_type
    return bool(kinds.is_string(data_type) or kinds.is_large_string(data_type) or kinds.is_string_view(data_type))


def _is_list_of_watches(data_type: pa.DataType) -> bool:
    if not (kinds.is_list(data_type) or kinds.is_large_list(data_type) or kinds.is_fixed_size_list(data_type)):
        return False
    value = data_type.value_type
    if kinds.is_null(value):
        return True  # none of the lists has an element
    if not kinds.is_struct(value):
        return False
    fields = {value.field(n).name: value.field(n).type for n in range(value.num_fields)}
    return (
        {"key", "required"} <= fields.keys()
        and _fits(fields["key"], "text")
        and _fits(fields["required"], "an integer")
        and ("role" not in fields or _fits(fields["role"], "text"))
    )
