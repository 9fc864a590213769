"""Convert Arrow columns to NumPy arrays: integers of any width, timestamps of any unit, lists of watches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import AbeyantError
from abeyant.tables.keys import Integers

__all__ = ["Mask", "Watches", "flags", "integers", "microseconds", "missing", "watches_of"]

Mask = npt.NDArray[np.bool_]


def missing(column: pa.ChunkedArray) -> Mask:
    """Return a mask of the null rows, including those that refer to a null in a dictionary."""
    if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
        column = column.cast(column.type.value_type)
    if not column.null_count:
        return np.zeros(len(column), np.bool_)
    return np.asarray(column.is_null().to_numpy())


def flags(column: pa.ChunkedArray) -> Mask:
    """Return a Boolean column as a mask; null is false."""
    return np.asarray(pc.fill_null(column, False).to_numpy())


def integers(column: pa.ChunkedArray, name: str) -> Integers:
    """Return the values as signed 64-bit integers, 0 for null. Raises `AbeyantError` for a value that does not fit."""
    try:
        column = column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise AbeyantError(f"{name}: {error}; the maximum is {2**63 - 1:,}") from None
    return np.asarray(pc.fill_null(column, 0).to_numpy()) if column.null_count else np.asarray(column.to_numpy())


def microseconds(column: pa.ChunkedArray, name: str) -> Integers:
    """Return microseconds since 1970 UTC, 0 for null. Times without a zone are UTC; nanoseconds are floored."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), np.int64)
    unit = column.type.unit
    values = integers(column.cast(pa.timestamp(unit)).cast(pa.int64()), name)
    if unit == "ns":
        return values // 1000
    factor = {"us": 1, "ms": 1000, "s": 1_000_000}[unit]
    if factor == 1:
        return values
    limit = (2**63 - 1) // factor
    if len(values) and (values.max() > limit or values.min() < -limit):
        raise AbeyantError(f"{name}: a time does not fit 64-bit microseconds since 1970: drop or correct such rows")
    return values * factor


class Watches(NamedTuple):
    """The watches of a batch of operations, flattened to columns with one row per watch."""

    counts: Integers  # watches per operation
    key: pa.ChunkedArray
    required: pa.ChunkedArray
    role: pa.ChunkedArray | None = None  # None if no list has roles

    @property
    def single(self) -> bool:
        """Return whether each operation has exactly one watch."""
        return bool((self.counts == 1).all())

    def operation(self) -> Integers:
        """Return for each watch the row of its operation."""
        rows = np.arange(len(self.counts))
        return rows if self.single else np.repeat(rows, self.counts)

    def select(self, kept: Mask) -> Watches:
        """Return the watches of the operations in the mask `kept`."""
        of_them = pa.array(np.repeat(kept, self.counts))
        role = None if self.role is None else self.role.filter(of_them)
        return Watches(self.counts[kept], self.key.filter(of_them), self.required.filter(of_them), role)


def watches_of(column: pa.ChunkedArray) -> Watches:
    """Flatten a column of lists of watches."""
    counts: list[Integers] = [np.empty(0, np.int64)]
    keys, required, roles = [], [], []
    for chunk in column.chunks:
        if pa.types.is_null(chunk.type):
            counts.append(np.zeros(len(chunk), np.int64))
            continue
        counts.append(pc.fill_null(pc.list_value_length(chunk).cast(pa.int64()), 0).to_numpy(zero_copy_only=False))
        values = pc.list_flatten(chunk)
        if pa.types.is_null(values.type):
            keys.append(pa.nulls(len(values), pa.string()))
            required.append(pa.nulls(len(values), pa.int64()))
            roles.append(pa.nulls(len(values), pa.string()))
            continue
        names = [values.type.field(n).name for n in range(values.type.num_fields)]
        fields = dict(zip(names, values.flatten(), strict=True))
        keys.append(fields["key"])
        required.append(fields["required"])
        roles.append(fields["role"].cast(pa.string()) if "role" in fields else pa.nulls(len(values), pa.string()))
    return Watches(
        np.concatenate(counts),
        pa.chunked_array(keys, None if keys else pa.string()),
        pa.chunked_array(required, None if required else pa.int64()),
        None if all(chunk.null_count == len(chunk) for chunk in roles) else pa.chunked_array(roles),
    )
