"""Estimate the share of operations that would have expired with a time-out of T: Kaplan and Meier's estimator.

An operation that expired would have completed later, at an unknown time: its wait is censored, a lower bound of the
time to completion. The wait of an operation whose outcome is unknown is censored as well.
"""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from abeyant.pipeline.analysis.columns import observed, run_starts
from abeyant.pipeline.analysis.ranked import Ranked, rank_by_group
from abeyant.pipeline.schemas import TIMEOUT_CURVE
from abeyant.renamed import former_keywords

__all__ = ["CURVE_POINTS", "timeout_curve", "timeout_curve_rows"]

CURVE_POINTS: Final = 2000

_GROUP: Final = ("instance", "kind")
_Z: Final = 1.959963984540054  # 97.5 % of the normal distribution lie below
# Buckets of about 2 % of length, of which a thinned series keeps the last row.
_BUCKETS_PER_E: Final = 46

Floats = npt.NDArray[np.float64]


@former_keywords(most_points="points")
def timeout_curve(operations: DataFrame, *, points: int | None = None) -> DataFrame:
    """Return the time-out curve of each instance (`*` for all) and kind (`schemas.TIMEOUT_CURVE`).

    There is a row for each wait at which an operation completed, and a last row for the longest wait: the log shows
    nothing about longer time-outs. `share_expiring` holds from its row to the next row. At the same wait, completions
    come before expiries (a deadline is inclusive). `low` and `high` are Greenwood's 95 % band on the log-log scale,
    which stays within 0 and 1. Series of more than `points` distinct waits are thinned.
    """
    rows = partial(timeout_curve_rows, most_points=points)
    return rank_by_group(observed(operations), _GROUP, rows, TIMEOUT_CURVE, all_instances=True)


def timeout_curve_rows(ranked: Ranked, most_points: int | None = None) -> pa.Table:
    """Return the rows of `TIMEOUT_CURVE` for whole groups."""
    at_risk = ranked.total[ranked.group] - ranked.before
    remaining = at_risk - ranked.completed
    # A product of (1 - completed/at_risk) as a sum of logarithms. Only the last factor may be 0: it is left out of
    # the sums and put in at its row.
    positive = remaining > 0
    factor = np.log1p(np.where(positive, -ranked.completed / at_risk, 0.0))
    variance = np.where(positive, ranked.completed / np.where(positive, at_risk * remaining, 1), 0.0)
    share = np.where(positive, np.exp(_running(factor, ranked)), 0.0)
    greenwood = _running(variance, ranked)
    inside = (share > 0) & (share < 1)
    safe = np.where(inside, share, 0.5)
    with np.errstate(over="ignore"):  # an infinite width is a band from 0 to 1
        width = np.exp(_Z * np.sqrt(greenwood) / np.abs(np.log(safe)))
        low, high = (np.where(inside, safe**power, share) for power in (width, 1 / width))
    last = np.zeros(len(share), bool)
    last[ranked.ends - 1] = True
    rows = np.flatnonzero((ranked.completed > 0) | last)
    if most_points is not None:
        rows = rows[_thinned(ranked, rows, most_points)]
    columns = {
        **{name: ranked.groups[name].take(pa.array(ranked.group[rows])) for name in _GROUP},
        "timeout_ms": ranked.wait_us[rows] / 1000,
        "at_risk": at_risk[rows],
        "completed": ranked.completed[rows],
        "share_expiring": share[rows],
        "low": low[rows],
        "high": high[rows],
    }
    return pa.table(columns).select(TIMEOUT_CURVE.fieldNames())


def _running(values: Floats, ranked: Ranked) -> Floats:
    """Return the running sum within each group, summed separately so that no group loses digits to another."""
    return np.concatenate([np.cumsum(part) for part in np.split(values, ranked.starts[1:])])


def _thinned(ranked: Ranked, rows: npt.NDArray[np.int64], most_points: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the `rows` to keep: in series of more than `most_points` waits, the last row of each bucket."""
    points = (ranked.ends - ranked.starts)[ranked.group[rows]]
    bucket = np.floor(np.log1p(ranked.wait_us[rows].astype(np.float64)) * _BUCKETS_PER_E)
    last = np.zeros(len(rows), bool)
    last[np.append(run_starts([ranked.group[rows], bucket])[1:], len(rows)) - 1] = True
    stays: npt.NDArray[np.bool_] = (points <= most_points) | last
    return stays
