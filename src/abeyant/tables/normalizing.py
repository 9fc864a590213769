"""Bring batches of operations or events into one form: fill in defaults, make watches of a key, convert values."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from abeyant.tables.defaults import DEFAULTS, REJECT_REASON, only_role, unreadable_reason
from abeyant.tables.durations import parse_duration
from abeyant.tables.schemas import expected_columns, is_whole

__all__ = ["columns_read", "normalize"]

_KEY: Final = ("key", "required")
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


def columns_read(names: list[str], expected: Mapping[str, str]) -> list[str]:
    """Return the columns in `names` that have to be read to produce the `expected` columns."""
    columns = [column for column in expected_columns(expected, names) if column in names]
    if "watches" in expected and "watches" not in names:
        columns += [column for column in _KEY if column in names]
    return columns + [column for column in (REJECT_REASON,) if column in names]


def normalize(batch: pa.RecordBatch, expected: Mapping[str, str]) -> pa.RecordBatch:
    """Return the batch with every expected column, converted; add `REJECT_REASON` if a column had to be converted.

    Decimals and floats become 64-bit integers, or null if they are not whole; integers, and decimals of scale 0,
    become text where text is expected (ids, keys). O(rows) if a column changes.
    """
    rows = batch.num_rows
    expected = expected_columns(expected, batch.schema.names)
    arrays = batch.columns
    columns = dict(zip(batch.schema.names, arrays, strict=True))
    reasons: list[pa.Array] = []
    for name in ("timeout_ms", "extend_ms", "progress", "required"):
        if name in columns and (name in expected or (name == "required" and "watches" in expected)):
            array = columns[name]
            if not kinds.is_integer(array.type) and not kinds.is_null(array.type):
                columns[name], reason = _whole(array, name)
                reasons.append(reason)
    for name in ("timeout", "extend"):
        if name in expected and name in columns:
            columns[name], reason = _durations(columns[name], name)
            reasons.append(reason)
    for name, column in columns.items():
        if (name == "key" or expected.get(name) == "text") and is_whole(column.type):
            columns[name] = column.cast(pa.string())
    if "watches" in expected and "watches" in columns and (kind := _as_watches(columns["watches"].type)) is not None:
        columns["watches"], reason = _convert_watches(columns["watches"], kind)
        reasons.append(reason)
    if "watches" in expected and (role := only_role(columns)) is not None:
        key = f"{role}_key"
        roles = pa.array([role]).take(pa.array(np.zeros(rows, np.int32)))
        columns["watches"] = _lists([columns.pop(key), _default("required", rows), roles], (*_KEY, "role"))
        del expected[key]
    if "watches" in expected and "watches" not in columns:
        pair = [columns["key"], columns.get("required", _default("required", rows))]
        columns["watches"] = _lists(pair, _KEY)
    for name in expected:
        if name not in columns:
            columns[name] = _default(name, rows)
    if REJECT_REASON in columns and reasons:
        reasons.append(columns[REJECT_REASON])  # found when the table was read
    if reasons:
        columns[REJECT_REASON] = reasons[0] if len(reasons) == 1 else pc.coalesce(*reasons)
    if len(columns) == len(arrays) and all(new is old for new, old in zip(columns.values(), arrays, strict=True)):
        return batch
    return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _lists(fields: list[pa.Array], names: tuple[str, ...]) -> pa.Array:
    """Return a column of lists, each with one struct of these fields."""
    offsets = pa.array(np.arange(len(fields[0]) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays(fields, names))


def _default(column: str, rows: int) -> pa.Array:
    value = DEFAULTS[column]
    if value is None:
        return pa.nulls(rows, pa.string())
    if isinstance(value, int):
        return pa.array(np.full(rows, value, np.int64))
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int8)), pa.array([value]))


def _whole(column: pa.Array, name: str) -> tuple[pa.Array, pa.Array]:
    """Return the numbers as 64-bit integers, and for each row the reason if it cannot be converted, else null."""
    try:
        return column.cast(pa.int64()), pa.nulls(len(column), pa.string())
    except pa.ArrowInvalid:
        values = column.to_pylist()
    numbers = [_integer(value) for value in values]
    return pa.array(numbers, pa.int64()), pa.array(
        [
            unreadable_reason(name, "bigint", _text(value)) if number is None and value is not None else None
            for number, value in zip(numbers, values, strict=True)
        ],
        pa.string(),
    )


def _as_watches(kind: pa.DataType) -> pa.DataType | None:
    """Return the type to convert lists of watches to, with text keys and integer `required`; None if `kind` is it."""
    if kinds.is_null(kind) or kinds.is_null(kind.value_type):
        return None
    fields = {field.name: field for field in kind.value_type}
    if is_whole(fields["key"].type):
        fields["key"] = pa.field("key", pa.string())
    if not kinds.is_integer(fields["required"].type) and not kinds.is_null(fields["required"].type):
        fields["required"] = pa.field("required", pa.int64())
    if list(fields.values()) == list(kind.value_type):
        return None
    return (pa.large_list if kinds.is_large_list(kind) else pa.list_)(pa.struct(list(fields.values())))


def _convert_watches(column: pa.Array, kind: pa.DataType) -> tuple[pa.Array, pa.Array]:
    """Return the watches as lists of the type `kind`, and for each row the reason if it cannot be converted."""
    try:
        return column.cast(kind), pa.nulls(len(column), pa.string())
    except pa.ArrowInvalid:
        rows = column.to_pylist()
    reasons: list[str | None] = [None] * len(rows)
    for index, watches in enumerate(rows):
        for watch in filter(None, watches or ()):
            if watch["key"] is not None:
                watch["key"] = str(watch["key"])
            value, watch["required"] = watch["required"], _integer(watch["required"])
            if watch["required"] is None and value is not None and reasons[index] is None:
                reasons[index] = unreadable_reason("required", "bigint", _text(value))
    return pa.array(rows, kind), pa.array(reasons, pa.string())


def _integer(value: Decimal | float | None) -> int | None:
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    number = int(value)
    return number if number == value and _LEAST <= number <= _MOST else None


def _text(value: Any) -> str:
    return f"{value:f}" if isinstance(value, Decimal) else str(value)


def _intervals(column: pa.Array, name: str) -> tuple[pa.Array, pa.Array]:
    """Return intervals in microseconds, and the reason to reject each row with months. A day is 24 hours."""
    fields = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanoseconds", "<i8")])
    parts = np.frombuffer(column.buffers()[1] or b"", fields)[column.offset : column.offset + len(column)]
    nulls = np.asarray(column.is_null())
    has_months = (parts["months"] != 0) & ~nulls
    micros = parts["days"].astype(np.int64) * 86_400_000_000 + parts["nanoseconds"] // 1000
    reason = pa.scalar(f"{name} has months, whose length varies: give days, or a column deadline")
    reasons = pc.if_else(pa.array(has_months), reason, pa.scalar(None, pa.string()))
    return pa.array(micros, mask=nulls | has_months), reasons


def _durations(column: pa.Array, name: str) -> tuple[pa.Array, pa.Array]:
    """Return durations, intervals or texts in microseconds, and for each row the reason if it cannot be converted.

    O(distinct texts).
    """
    if kinds.is_null(column.type):
        return pa.nulls(len(column), pa.int64()), pa.nulls(len(column), pa.string())
    if kinds.is_interval(column.type):
        return _intervals(column, name)
    if kinds.is_duration(column.type):
        unit = column.type.unit
        if unit == "ns":
            return pc.divide(column.cast(pa.int64()), 1000), pa.nulls(len(column), pa.string())
        try:
            return column.cast(pa.duration("us")).cast(pa.int64()), pa.nulls(len(column), pa.string())
        except pa.ArrowInvalid:
            values = [
                None if count is None else count * {"ms": 1000, "s": 10**6}[unit]
                for count in column.cast(pa.int64()).to_pylist()
            ]
            fits = [value is None or abs(value) <= _MOST for value in values]
            numbers = [value if ok else None for value, ok in zip(values, fits, strict=True)]
            return pa.array(numbers, pa.int64()), pa.array(
                [None if ok else f"{name} is beyond 64-bit microseconds" for ok in fits], pa.string()
            )
    encoded = column if kinds.is_dictionary(column.type) else column.dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    micros = [parse_duration(text) for text in texts]
    reasons = [
        None if text is None or duration is not None else unreadable_reason(name, "duration", text)
        for text, duration in zip(texts, micros, strict=True)
    ]
    return pa.array(micros, pa.int64()).take(encoded.indices), pa.array(reasons, pa.string()).take(encoded.indices)
