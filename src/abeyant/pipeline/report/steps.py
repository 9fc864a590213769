"""Step functions of time: the number of pending operations, constant from one change to the next."""

from __future__ import annotations

import numpy as np
import pandas as pd


def total(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the exact sum of the step functions (`at`, `pending`) of a kind's instances."""
    parts = [part for _, part in rows.groupby("instance")]
    if len(parts) < 2:
        return rows.sort_values("at", kind="stable")[["at", "pending"]]
    changes = [
        part.sort_values("at", kind="stable")
        .drop_duplicates("at", keep="last")
        .set_index("at")["pending"]
        .pipe(lambda level: level.diff().fillna(level))
        for part in parts
    ]
    summed = pd.concat(changes).groupby(level=0).sum().sort_index().cumsum()
    return pd.DataFrame({"at": summed.index, "pending": summed.to_numpy()})


def thinned(steps: pd.DataFrame, most: int) -> pd.DataFrame:
    """Keep at most `most` rows, and every peak: the least, the greatest and the last row of each of equal time bins."""
    if len(steps) <= most:
        return steps
    at = pd.to_datetime(steps["at"], utc=True).astype("int64").to_numpy()
    elapsed = (at - at[0]) / max(at[-1] - at[0], 1)
    bins = np.minimum((elapsed * (most // 3)).astype(int), most // 3 - 1)
    groups = steps.reset_index(drop=True).groupby(bins)["pending"]
    last = np.flatnonzero(np.diff(bins, append=bins[-1] + 1))
    return steps.iloc[np.unique(np.concatenate([groups.idxmin(), groups.idxmax(), last]))]
