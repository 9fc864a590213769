"""Compute counts, shares and percentiles by instance and kind, and the histogram of waits."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from abeyant.pipeline.analysis.columns import Integers, observed, run_starts
from abeyant.pipeline.analysis.ranked import Ranked, percentile_columns, rank_by_group
from abeyant.pipeline.schemas import SUMMARY, WAITS

__all__ = ["expired_share", "steps", "summary", "summary_rows", "waits", "waits_rows"]

STEPS_PER_DECADE: Final = 10

_GROUP: Final = ("instance", "kind")
# A power of ten is exact in its own edge, and no other edge is a whole number of microseconds.
_EDGES_US: Final = 10.0 ** (np.arange(19 * STEPS_PER_DECADE) / STEPS_PER_DECADE)


def summary(operations: DataFrame) -> DataFrame:
    """Count the operations of each instance (`*` for all together) and kind (`schemas.SUMMARY`)."""
    return rank_by_group(observed(operations), _GROUP, summary_rows, SUMMARY, all_instances=True)


def summary_rows(ranked: Ranked) -> pa.Table:
    """Return a row of `SUMMARY` for each group."""
    counts = {name: ranked.sums(getattr(ranked, name)) for name in ("completed", "expired", "unknown")}
    columns = {
        **{name: ranked.groups[name] for name in _GROUP},
        "operations": ranked.total,
        "waited": ranked.sums(ranked.operations * (ranked.wait_us > 0)),
        **counts,
        "expired_share": expired_share(counts["completed"], counts["expired"]),
        **percentile_columns(ranked),
    }
    return pa.table(columns).select(SUMMARY.fieldNames())


def expired_share(completed: Integers, expired: Integers) -> pa.Array:
    """Return the expired share of the operations with a known outcome; null if no outcome is known."""
    total = completed + expired
    return pa.array(expired / np.maximum(total, 1), mask=total == 0)


def waits(operations: DataFrame) -> DataFrame:
    """Count the operations by length of wait, ten bins a decade, for each kind and outcome (`schemas.WAITS`)."""
    return rank_by_group(observed(operations), _GROUP, waits_rows, WAITS, all_instances=True)


def waits_rows(ranked: Ranked) -> pa.Table:
    """Return the rows of `WAITS` for whole groups."""
    step = steps(ranked.wait_us)
    starts = run_starts([ranked.group, step])
    group, step = ranked.group[starts], step[starts]
    has_waited = step > _NO_STEP
    parts = []
    for outcome in ("completed", "expired", "unknown"):
        number = np.add.reduceat(getattr(ranked, outcome), starts)
        mask = number > 0
        columns = {
            **{name: ranked.groups[name].take(pa.array(group[mask])) for name in _GROUP},
            "outcome": pa.array([outcome] * int(mask.sum()), pa.string()),
            "low_ms": np.where(has_waited, _edge_ms(step), 0.0)[mask],
            "high_ms": np.where(has_waited, _edge_ms(step + 1), 0.0)[mask],
            "operations": number[mask],
        }
        parts.append(pa.table(columns))
    return pa.concat_tables(parts).select(WAITS.fieldNames())


_NO_STEP: Final = -1


def steps(wait_us: Integers) -> Integers:
    """Return the bin of each wait: bin `step` begins at 10 ** (step / 10) µs; -1 for no wait."""
    return np.searchsorted(_EDGES_US, wait_us, side="right") - 1


def _edge_ms(step: Integers) -> npt.NDArray[np.float64]:
    # Microseconds to milliseconds inside the exponent: 1 ms is then exactly 1.
    edges: npt.NDArray[np.float64] = 10.0 ** ((step - 3 * STEPS_PER_DECADE) / STEPS_PER_DECADE)
    return edges
