"""Step functions of time: what is pending is a count that changes at instants and stays between them."""

from __future__ import annotations

import pandas as pd


def total(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the step functions (`at`, `pending`) of a kind's instances into one, exactly."""
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
