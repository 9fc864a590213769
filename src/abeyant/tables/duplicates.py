"""Find operations that share an (instance, op_id): the first one counts, all others are rejected as duplicates.

Operations with the same id are sorted by start, time-out, condition, kind, the columns of `FURTHER`, and watches, as
Spark sorts: nulls first, texts by their bytes. Usually no id occurs twice, and hashes of the ids are enough to see it.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.tables.columns import Mask, Watches, integers, missing
from abeyant.tables.keys import Integers, PairHash

__all__ = ["FURTHER", "codes", "id_hashes", "repeated"]

FURTHER: Final = ("cancel_key", "extend_key", "pause_key", "extend_ms", "extend")
"""Optional columns by which operations with the same id are sorted, in this order."""


def id_hashes(table: pa.Table, valid: Mask, pairs: PairHash) -> Integers:
    """Return a hash of the (instance, op_id) of each valid row. O(bytes)."""
    ids = table.select(["instance", "op_id"])
    ids = ids if valid.all() else ids.filter(pa.array(valid))
    hashes, _ = pairs(ids["instance"], ids["op_id"])
    return hashes.copy()


def repeated(
    table: pa.Table, start: Integers, timeout: Integers, watches: Watches, valid: Mask, hashes: Integers
) -> Mask:
    """Return a mask of the valid rows that are duplicates; `hashes` comes from `id_hashes`. O(n log n)."""
    duplicates = np.zeros(table.num_rows, np.bool_)
    in_order = np.sort(hashes)
    repeats = in_order[1:][in_order[1:] == in_order[:-1]]
    if not len(repeats):
        return duplicates
    suspect = np.isin(hashes, repeats)
    rows = np.flatnonzero(valid)[suspect]
    ids = table.select(["instance", "op_id"]).take(pa.array(rows))
    group = codes(ids["instance"]) << 32 | codes(ids["op_id"])  # exact: equal hashes may be a collision
    texts = table.select(["condition", "kind"]).take(pa.array(rows))
    further = [
        column
        for name in FURTHER
        if name in table.column_names
        for column in _in_order(table[name].take(pa.array(rows)), name)
    ]
    first = np.concatenate(([0], np.cumsum(watches.counts)))[rows]
    key, required = watches.key.take(pa.array(first)), watches.required.take(pa.array(first))
    columns = [
        group,
        start[rows],
        timeout[rows],
        codes(texts["condition"]),
        codes(texts["kind"]),
        *further,
        codes(key),
        required.cast(pa.int64()).to_numpy(),
    ]
    if watches.role is not None:
        columns.append(codes(watches.role.take(pa.array(first))))
    order = np.lexsort(columns[::-1])
    if (watches.counts[rows] > 1).any():
        order = _by_all_watches(order, columns, rows, watches)
    duplicates[rows[order][1:][group[order][1:] == group[order][:-1]]] = True
    return duplicates


def _in_order(column: pa.ChunkedArray, name: str) -> list[Integers]:
    """Return integer columns whose order is the order of the values of `column`, nulls first."""
    if name in ("extend_ms", "extend"):
        return [(~missing(column)).astype(np.int64), integers(column, f"operations: {name}")]
    return [codes(column)]


def codes(texts: pa.ChunkedArray) -> Integers:
    """Return the rank of each text by its bytes, from 1; 0 for null."""
    encoded = texts.cast(pa.large_string()).combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.chunk(0) if encoded.num_chunks else pa.array([], pa.large_string())
    distinct = encoded.drop_null().unique()
    distinct = distinct.take(pc.sort_indices(distinct))
    return np.asarray(pc.fill_null(pc.index_in(encoded, value_set=distinct), -1).to_numpy()).astype(np.int64) + 1


def _by_all_watches(order: Integers, columns: list[Integers], rows: Integers, watches: Watches) -> Integers:
    """Return `order` with ties resolved: rows that are equal in all `columns` are sorted by all of their watches."""
    same = np.logical_and.reduce([column[order][1:] == column[order][:-1] for column in columns])
    tie = np.concatenate(([0], np.cumsum(~same)))
    _, firsts, counts = np.unique(tie, return_index=True, return_counts=True)
    ends = np.cumsum(watches.counts)
    order = order.copy()

    def in_bytes(place: int) -> list[tuple[bytes, int, bytes]]:
        row = rows[place]
        begin, end = int(ends[row] - watches.counts[row]), int(ends[row])
        roles = [None] * (end - begin) if watches.role is None else watches.role[begin:end].to_pylist()
        triples: list[tuple[Any, Any, Any]] = list(
            zip(watches.key[begin:end].to_pylist(), watches.required[begin:end].to_pylist(), roles, strict=True)
        )
        return [(key.encode(), required, (role or "").encode()) for key, required, role in triples]

    for begin, count in zip(firsts[counts > 1].tolist(), counts[counts > 1].tolist(), strict=True):
        order[begin : begin + count] = sorted(order[begin : begin + count].tolist(), key=in_bytes)
    return order
