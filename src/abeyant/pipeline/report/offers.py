"""Suggest time-outs from a replay: per kind the shortest under which few operations expire, and clients to change."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from abeyant.pages.formatting import percent
from abeyant.pipeline.report.analysis import ALL
from abeyant.pipeline.report.kinds import is_poll
from abeyant.pipeline.report.parts import read_table

__all__ = ["FEW", "Offer", "clients_to_change", "offers", "read_clients", "share", "shortest_enough"]

FEW: Final = 0.01
_MOST_KINDS: Final = 3


class Offer(NamedTuple):
    """A suggested time-out for one kind of operation."""

    kind: str
    few: float
    """The largest acceptable share of expired operations: 1 in 100, or today's share if that is lower."""
    row: pd.Series[Any]
    """Row of the table `what_if` with the shortest time-out that is long enough, or else the longest tried."""
    is_enough: bool


def offers(what_if: pd.DataFrame, own: pd.DataFrame) -> list[Offer]:
    """Return an offer for each of the three kinds with most expiries; none for long polls, whose expiry is no harm."""
    rows = what_if[(what_if["instance"] == ALL) & (what_if["timeout_ms"] > 0)]
    rows = rows[~rows["kind"].map(is_poll).astype(bool)]
    suggestions = []
    for kind in rows.groupby("kind")["expired"].sum().sort_values(ascending=False).index[:_MOST_KINDS]:
        kind_rows = rows[rows["kind"] == kind].sort_values("timeout_ms")
        limit = _few(kind_rows, own)
        enough = kind_rows[kind_rows["expired_share_most"] <= limit]
        suggestions.append(
            Offer(str(kind), limit, (enough if len(enough) else kind_rows.tail(1)).iloc[0], len(enough) > 0)
        )
    return suggestions


def shortest_enough(what_if: pd.DataFrame, own: pd.DataFrame) -> tuple[str, float, str] | None:
    """Return the kind with most expiries, the shortest time-out (ms) under which few expire, and the share of these.

    Few means at most 1 in 100, and no more than today (`Offer.few`). Returns None if no time-out tried is long enough.
    """
    first = next(iter(offers(what_if, own)), None)
    return (first.kind, float(first.row["timeout_ms"]), share(first.row)) if first and first.is_enough else None


def share(row: pd.Series[Any]) -> str:
    """Return the share that expires, in words: a range if some outcomes are unknown."""
    least, most = percent(row["expired_share"]), percent(row["expired_share_most"])
    return least if least == most else f"{least} to {most}"


def _few(rows: pd.DataFrame, own_timeouts: pd.DataFrame) -> float:
    """Return the largest acceptable share of expired operations of a kind: 1 in 100, or today's share if lower.

    Today's share is the share under the shortest time-out tried that is at least today's median. So no offer shortens a
    time-out and makes more requests fail.
    """
    today = own_timeouts.loc[
        (own_timeouts["instance"] == ALL) & (own_timeouts["kind"] == rows["kind"].iloc[0]), "median_ms"
    ]
    as_long = rows[rows["timeout_ms"] >= today.iloc[0]] if len(today) else rows.head(0)
    return min([FEW, *map(float, as_long["expired_share_most"].head(1))])


def read_clients(folder: Path) -> pd.DataFrame | None:
    """Return a result's table of clients' time-outs; None if its operations had no client ids."""
    return read_table(folder, "client_timeouts") if (folder / "client_timeouts").exists() else None


def clients_to_change(offer: Offer, clients: pd.DataFrame | None) -> pd.DataFrame:
    """Return the clients whose time-out differs from the suggested one; clients with most expired operations first.

    Columns: `client_id`; `operations`, how many had another time-out; `expired`, how many of these operations expired;
    `least_ms` and `most_ms`, the range of these time-outs. Empty if no time-out is long enough, or without `clients`
    (`CLIENT_TIMEOUTS`).
    """
    if clients is None or not offer.is_enough:
        return pd.DataFrame()
    rows = clients[(clients["kind"] == offer.kind) & (clients["timeout_ms"] != offer.row["timeout_ms"])]
    by_client: pd.DataFrame = rows.groupby("client_id", as_index=False).agg(
        operations=("operations", "sum"),
        expired=("expired", "sum"),
        least_ms=("timeout_ms", "min"),
        most_ms=("timeout_ms", "max"),
    )
    return by_client.sort_values(["expired", "operations", "client_id"], ascending=[False, False, True])
