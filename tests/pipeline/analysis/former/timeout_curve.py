"""What share of operations would expire had the time-out been T: Kaplan and Meier's estimate.

An operation that expired would have completed later, nobody knows when: its wait is censored, a lower bound, and
not a known time to completion. So is the wait of an operation whose outcome is unknown.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.schemas import TIMEOUT_CURVE
from pipeline.analysis.former.ranked import Ranked, ranked_waits
from pipeline.analysis.former.running import with_running_totals

__all__ = ["CURVE_POINTS", "thinned", "timeout_curve"]

CURVE_POINTS: Final = 2000

_Z: Final = 1.959963984540054  # 97.5 % of the normal distribution lie below


def timeout_curve(operations: DataFrame | Ranked, *, most_points: int | None = None) -> DataFrame:
    """Return the time-out curve of each instance (`*` for all) and kind (`schemas.TIMEOUT_CURVE`).

    One row for each wait at which an operation completed, and one for the longest wait, where knowledge ends:
    nothing is said of longer time-outs. `share_expiring` holds from its row to the next. At the same wait,
    completions come before expiries (a deadline is inclusive). `low` and `high` are Greenwood's 95 % band on the
    log-log scale, which stays within 0 and 1. With `most_points`, series with more rows are thinned.
    """
    ranked = operations if isinstance(operations, Ranked) else ranked_waits(operations)
    at_risk = (F.col("total") - F.col("before")).alias("at_risk")
    steps = ranked.rows.select(*ranked.group, "bucket", "wait_us", at_risk, "completed", "total", "points")
    completed, left = F.col("completed"), F.col("at_risk") - F.col("completed")
    # A product of (1 - completed/at_risk) as a sum of logarithms. The last factor may be 0, and nothing comes
    # after it: it is left out of the sums and put in at its row.
    factor = F.when(left > 0, F.log1p(-completed / F.col("at_risk"))).otherwise(0.0)
    variance = F.when(left > 0, completed / (F.col("at_risk") * left)).otherwise(0.0)
    summed = with_running_totals(
        steps, ranked.group, "bucket", "wait_us", sums={"log_share": factor, "spread": variance}
    )
    share = F.when(left > 0, F.exp(F.col("log_share") + factor)).otherwise(0.0)
    curve = summed.withColumns({"share_expiring": share, "greenwood": F.col("spread") + variance})
    inside = (F.col("share_expiring") > 0) & (F.col("share_expiring") < 1)
    width = F.exp(_Z * F.sqrt("greenwood") / F.abs(F.log("share_expiring")))
    ends = {"low": width, "high": 1 / width}
    curve = (
        curve.withColumns(
            {
                name: F.when(inside, F.pow("share_expiring", power)).otherwise(F.col("share_expiring"))
                for name, power in ends.items()
            }
        )
        .withColumn("timeout_ms", F.col("wait_us") / 1000)
        .withColumn("longest", F.max("wait_us").over(Window.partitionBy(*ranked.group)))
        .where((F.col("completed") > 0) | (F.col("wait_us") == F.col("longest")))
    )
    if most_points is not None:
        curve = thinned(curve, most_points)
    return curve.select(*TIMEOUT_CURVE.fieldNames())


def thinned(curve: DataFrame, most_points: int) -> DataFrame:
    """Keep, of series with more than `most_points` waits, the last row of each bucket of about 2 % of length."""
    last = Window.partitionBy("instance", "kind", "bucket").orderBy(F.col("wait_us").desc())
    return curve.withColumn("from_last", F.row_number().over(last)).where(
        (F.col("points") <= most_points) | (F.col("from_last") == 1)
    )
