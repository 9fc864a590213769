"""Count by slices of time. From these counts the report recomputes its tables and figures for a section of the log.

A slice is one of `SLICES` equal intervals from the first start of an operation to the last. So these tables are small
however long the log is. A section of the log is counted to the precision of a slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.columns import Integers, codes, count_equal, run_starts
from abeyant.pipeline.analysis.keys import KEY, with_keys
from abeyant.pipeline.analysis.summary import STEPS_PER_DECADE, steps
from abeyant.pipeline.schemas import KEYS_BY_TIME, REQUESTS_BY_TIME, WAITS_BY_TIME

__all__ = [
    "KEYS_A_KIND",
    "SLICES",
    "Slices",
    "added_up",
    "first_keys",
    "keys_by_time",
    "requests_by_time",
    "waits_by_time",
]

SLICES: Final = 48
KEYS_A_KIND: Final = 8
"""Number of keys of each instance and kind that are counted over time, by each of `_MEASURES`."""

_SERIES: Final = ("instance", "kind")
_MEASURES: Final = ("p95_ms", "total_waited_ms", "expired")
_STEPS_BELOW_MS: Final = 3 * STEPS_PER_DECADE


@dataclass(frozen=True)
class Slices:
    """The slices of a log; all operations start from `first_us` to `last_us`. Both are None if no start is known."""

    first_us: int | None
    last_us: int | None
    slices: int = SLICES

    @property
    def width_us(self) -> int:
        """Return the length of a slice, in µs."""
        return -(-((self.last_us or 0) - (self.first_us or 0) + 1) // self.slices)

    def number(self, at_us: Integers) -> Integers:
        """Return the number, from 0, of the slice of each time. A time outside counts to the first or last slice."""
        return np.clip((at_us - (self.first_us or 0)) // self.width_us, 0, self.slices - 1)

    def begin(self, at_us: Integers) -> pa.Array:
        """Return the time at which the slice of each time begins."""
        if self.first_us is None or self.last_us is None:
            return pa.nulls(len(at_us), pa.timestamp("us", "UTC"))
        return pa.array(self.first_us + self.number(at_us) * self.width_us).cast(pa.timestamp("us", "UTC"))


def waits_by_time(operations: pa.Table, slices: Slices) -> pa.Table:
    """Count operations by kind, outcome, length of wait, and the slice of time they started in (`WAITS_BY_TIME`)."""
    return _counted(operations, slices, ("instance", "kind"), WAITS_BY_TIME.fieldNames())


def keys_by_time(operations: pa.Table, slices: Slices, first: pa.Table) -> pa.Table:
    """Count operations as `waits_by_time` does, but by key, and only for the keys in `first` (`KEYS_BY_TIME`)."""
    rows = with_keys(operations.select([*_SERIES, "keys", "start_us", "wait_us", "outcome"]))
    return _counted(rows.filter(_among(rows, first)), slices, KEY, KEYS_BY_TIME.fieldNames())


def _among(rows: pa.Table, first: pa.Table) -> pa.Array:
    """Return for each row whether its key is in `first`. Compares numbers, where a join would compare texts."""
    row, key = np.zeros(rows.num_rows, np.int64), np.zeros(first.num_rows, np.int64)
    for name in KEY:
        number, values = codes(rows[name])
        indices = pc.index_in(first[name], values).fill_null(len(values)).to_numpy()  # a number that no row has
        row, key = row * (len(values) + 1) + number, key * (len(values) + 1) + indices
    return pa.array(np.isin(row, key))


def first_keys(by_key: pa.Table) -> pa.Table:
    """Return the `KEYS_A_KIND` highest keys of each instance and kind by any of `_MEASURES`: (instance, kind, key)."""
    parts = []
    for measure in _MEASURES:
        ranked = by_key.sort_by(
            [(name, "ascending") for name in _SERIES] + [(measure, "descending"), ("key", "ascending")]
        )
        starts = run_starts([codes(ranked[name])[0] for name in _SERIES]) if ranked.num_rows else np.empty(0, np.int64)
        position = np.arange(ranked.num_rows) - np.repeat(starts, np.diff(np.append(starts, ranked.num_rows)))
        parts.append(ranked.filter(pa.array(position < KEYS_A_KIND)).select(list(KEY)))
    return pa.concat_tables(parts).group_by(list(KEY), use_threads=False).aggregate([])


def requests_by_time(requests: pa.Table, slices: Slices) -> pa.Table:
    """Sum counted requests (instance, api, at_us, requests, waited) by slice (`REQUESTS_BY_TIME`)."""
    table = requests.drop_columns(["at_us"]).append_column("at", slices.begin(requests["at_us"].to_numpy()))
    return added_up(table, REQUESTS_BY_TIME.fieldNames(), ("requests", "waited"))


def added_up(rows: pa.Table, columns: Sequence[str], counts: Sequence[str]) -> pa.Table:
    """Sum the columns `counts` over rows that are equal in the other columns. Return `columns`, in this order."""
    group = [name for name in columns if name not in counts]
    sums = rows.group_by(group, use_threads=False).aggregate([(name, "sum") for name in counts])
    return sums.rename_columns([*group, *counts]).select(list(columns))


def _counted(operations: pa.Table, slices: Slices, group: Sequence[str], columns: Sequence[str]) -> pa.Table:
    started = operations.filter(operations["start_us"].is_valid())
    numbers = slices.number(started["start_us"].to_numpy()), steps(started["wait_us"].to_numpy())
    texts, (place, step), counts = count_equal(started, [*group, "outcome"], numbers)
    texts["outcome"] = texts["outcome"].fill_null("unknown")
    rows = {
        **texts,
        "at": slices.begin((slices.first_us or 0) + place * slices.width_us),
        "step": pa.array(step - _STEPS_BELOW_MS, mask=step < 0),
        "operations": counts,
    }
    return pa.table(rows).select(list(columns))
