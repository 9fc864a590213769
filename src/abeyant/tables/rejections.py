"""Warn where all or nearly all rows of a table are rejected: the cause is a wrong column or unit rather than bad rows.

Warn if all rows are rejected, or at least 95 % of 20 or more. The percentage leaves out rows that lack a value, because
users often exclude rows by a null, for instance where one log serves as both tables. Also warn if at least 5 % of 20 or
more rows have a number with a fraction: some prices in a column are whole, and the sum of these alone looks right.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import RejectedRowsWarning
from abeyant.tables.columns import Mask, missing
from abeyant.tables.defaults import REJECT_REASON, SHOWN_CHARS
from abeyant.tables.reasons import DUPLICATE, constant_error, mend

__all__ = ["Rejections", "with_value"]

_NEARLY_ALL: Final = 0.95
_LEAST: Final = 20
_FRACTIONS: Final = 0.05
_FRACTION: Final = "is not a whole number"
_NULLS: Final = ("no ", "a watch has no ")


class _Chunk(NamedTuple):
    rows: int
    rejected: int
    nulls: int  # of the rejected: those that lack a value
    example: str  # reason of a rejected row, with its value; '' if few rows are rejected
    constant: str  # reason of all rows, if all have the same unreadable duration; else ''
    fractions: int = 0  # of the rejected: those with a number that is not whole
    fraction: str = ""  # reason of the first of these


class Rejections:
    """Counts of the rejected rows of one table, taken chunk by chunk. Several threads may add chunks."""

    def __init__(self, name: str, part: str = "") -> None:
        """`name` is `operations` or `events`; `part` is appended to the name if only a part of the table is counted."""
        self._name, self._part = name, part
        self._chunks: deque[_Chunk] = deque()

    def add(self, table: pa.Table, reason: npt.NDArray[np.int8], reasons: Sequence[str]) -> None:
        """Count a chunk; `reason` has for each row its index in `reasons`, or -1 if the row is valid. O(rows)."""
        wrong = reason >= 0
        rejected, rows = int(np.count_nonzero(wrong)), len(reason)
        if not rejected:
            self._chunks.append(_Chunk(rows, 0, 0, "", ""))
            return
        texts = table[REJECT_REASON] if REJECT_REASON in table.column_names else None
        unread = np.zeros(rows, np.bool_) if texts is None else wrong & ~missing(texts)
        lack = np.array([one.startswith(_NULLS) for one in reasons])[np.maximum(reason, 0)] & wrong & ~unread
        nulls, example, constant = int(np.count_nonzero(lack)), "", ""
        if _is_nearly_all(rows, rejected, nulls):  # if the table is, then at least one chunk is
            chosen = wrong & ~lack if nulls < rejected else lack
            if texts is not None and (unread & chosen).any():
                example = texts[int(np.argmax(unread))].as_py()
                if unread.all() and len(pc.unique(texts)) == 1 and "is not a duration" in example:
                    constant = example
            else:
                commonest = int(np.bincount(reason[chosen]).argmax())
                example = with_value(table, int(np.argmax(chosen & (reason == commonest))), reasons[commonest])
        fractions, fraction = 0, ""
        if texts is not None:
            places = np.flatnonzero(np.asarray(pc.match_substring(texts, _FRACTION).fill_null(False)) & unread)
            fractions, fraction = len(places), texts[int(places[0])].as_py() if len(places) else ""
        self._chunks.append(_Chunk(rows, rejected, nulls, example, constant, fractions, fraction))

    def add_duplicates(self, table: pa.Table, duplicates: Mask) -> None:
        """Count the valid rows that are rejected as duplicates, from chunks that were added before."""
        if count := int(np.count_nonzero(duplicates)):
            example = f"{DUPLICATE}: {_shown(table, 'op_id', int(np.argmax(duplicates)))}"
            self._chunks.append(_Chunk(0, count, 0, example, ""))

    def warn(self, stacklevel: int) -> None:
        """Warn if nearly all rows were rejected. `stacklevel` means what it would if the caller called `warnings.warn`.

        Raises `SchemaError` if there are several rows and all have the same unreadable text as a duration: then the
        text is a wrong argument rather than bad data.
        """
        chunks = [chunk for chunk in self._chunks if chunk.rows or chunk.rejected]
        rows, rejected = sum(chunk.rows for chunk in chunks), sum(chunk.rejected for chunk in chunks)
        nulls = sum(chunk.nulls for chunk in chunks)
        if not rejected:
            return
        if not _is_nearly_all(rows, rejected, nulls):
            fractions = sum(chunk.fractions for chunk in chunks)
            if rows - nulls >= _LEAST and fractions >= _FRACTIONS * (rows - nulls):
                example = next(chunk.fraction for chunk in chunks if chunk.fractions)
                self._warn(f"{fractions:,} of {rows:,} rows were", example, stacklevel + 1)
            return
        if rows > 1 and len({chunk.constant for chunk in chunks}) == 1 and chunks[0].constant:
            raise constant_error(self._name, chunks[0].constant)
        if rejected < rows and rows - nulls < _LEAST:
            return
        found = max((chunk for chunk in chunks if chunk.example), key=lambda chunk: chunk.rejected - chunk.nulls)
        many = f"all {rows:,} rows were" if rejected == rows > 1 else f"{rejected:,} of {rows:,} rows were"
        many = "its only row was" if rows == 1 else many
        self._warn(many, found.example, stacklevel + 1)

    def _warn(self, many: str, example: str, stacklevel: int) -> None:
        warnings.warn(
            f"{self._name}{self._part}: {many} rejected: {example}{mend(example)}. "
            f"rejected_{self._name}({self._name}) lists the rows",
            RejectedRowsWarning,
            stacklevel=stacklevel + 1,
        )


def _is_nearly_all(rows: int, rejected: int, nulls: int) -> bool:
    return rejected - nulls >= _NEARLY_ALL * (rows - nulls)


def with_value(table: pa.Table | pa.RecordBatch, row: int, reason: str) -> str:
    """Return the reason, followed by the row's value in the column that the reason names, or else by the row's id."""
    column = reason.split()[0]
    if "beyond" in reason:
        column = next(name for name in ("timeout_ms", "timeout", "deadline") if name in table.schema.names)
    if column in table.schema.names:
        return f"{reason}: {_shown(table, column, row)}"
    named = "op_id" if "op_id" in table.schema.names else "key"
    return reason if table[named][row].as_py() is None else f"{reason}, as for {named} {_shown(table, named, row)}"


def _shown(table: pa.Table | pa.RecordBatch, name: str, row: int) -> str:
    if name == "timeout":  # microseconds
        return f"{table[name][row].as_py() / 1e6:g} s"
    return str(table[name].slice(row, 1).cast(pa.string())[0].as_py())[:SHOWN_CHARS]
