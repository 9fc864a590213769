"""Compute follower lag: the longest time for which each follower sent no fetch to a leader, by slices of time.

The *lag* of a follower at a moment is the time since its last fetch from a leader ended; while a fetch waits at the
leader, the lag is 0. Each slice of time has the longest lag in it. This is lag in time, not in records: request logs
have no log end offsets.
"""

from __future__ import annotations

from itertools import groupby, pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.by_time import Slices
from abeyant.pipeline.analysis.columns import codes, run_starts
from abeyant.pipeline.analysis.followers import SILENT_MS, replica_of
from abeyant.pipeline.schemas import LAGS
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = ["FETCH_RUNS", "LAG_SLICES", "fetch_runs", "joined", "lag_rows"]

LAG_SLICES: Final = 192
"""Number of slices for lags: more than `SLICES`, as there are few followers."""

FETCH_RUNS: Final = pa.schema(
    {
        "instance": pa.string(),
        **dict.fromkeys(("replica", "slice", "first_us", "last_us", "pause_us"), pa.int64()),
    }
)
"""Schema of fetches of one follower from one leader that started in one slice, merged: the first start, the last end,
and the longest time between the two in which no fetch waited."""

_GROUP: Final = ("instance", "replica", "slice")


def fetch_runs(operations: pa.Table, slices: Slices) -> pa.Table:
    """Merge the fetches of each follower, leader and slice into one row (`FETCH_RUNS`). O(n log n)."""
    fetches = operations.filter(
        pc.and_(pc.equal(operations["kind"], "FETCH_FOLLOWER"), operations["start_us"].is_valid())
    )
    number, clients = codes(fetches["client_id"])
    replicas = pa.array([replica_of(client) for client in clients.to_pylist()], pa.int64())
    start = fetches["start_us"].to_numpy()
    columns = {
        "instance": fetches["instance"],
        "replica": replicas.take(pa.array(number)),
        "slice": slices.number(start),
        "first_us": start,
        "last_us": start + fetches["wait_us"].to_numpy(),
        "pause_us": np.zeros(len(start), np.int64),
    }
    runs = pa.table(columns, schema=FETCH_RUNS)
    return joined(runs.filter(runs["replica"].is_valid()))


def joined(runs: pa.Table) -> pa.Table:
    """Join the rows of each follower, leader and slice to one row, with the longest pause within or between them."""
    runs = runs.sort_by([(name, "ascending") for name in (*_GROUP, "first_us")])
    if not runs.num_rows:
        return runs
    begins = run_starts([codes(runs["instance"])[0], runs["replica"].to_numpy(), runs["slice"].to_numpy()])
    first, last, pause = (runs[name].to_numpy() for name in ("first_us", "last_us", "pause_us"))
    max_end = np.concatenate([np.maximum.accumulate(last[start:end]) for start, end in pairwise([*begins, len(last)])])
    between = first - np.concatenate([first[:1], max_end[:-1]])
    between[begins] = 0  # `lag_rows` adds the pauses between slices
    columns = {
        **{name: runs[name].take(pa.array(begins)) for name in _GROUP},
        "first_us": first[begins],
        "last_us": np.maximum.reduceat(last, begins),
        "pause_us": np.maximum.reduceat(np.maximum(between, pause), begins),
    }
    return pa.table(columns, schema=FETCH_RUNS)


def lag_rows(runs: pa.Table, slices: Slices, end_us: int) -> pa.Table:
    """Return the rows of `LAGS`, given `joined` rows of fetches and the end of the log's last operation (`end_us`)."""
    points = []
    rows = zip(*(column.to_pylist() for column in runs.columns), strict=True)
    for (instance, replica), follower_runs in groupby(rows, key=lambda row: row[:2]):
        lag_us: dict[int, int] = {}
        last_end = None
        for _, _, number, first_us, last_us, pause_us in follower_runs:
            if last_end is not None:
                _lengthen(lag_us, slices, last_end, first_us)
            lag_us[number] = max(lag_us.get(number, 0), pause_us)
            last_end = last_us if last_end is None else max(last_end, last_us)
        # A fetch that waits when the log ends is not in the log, so a short silence at the end is no lag.
        if last_end is not None and end_us - last_end > SILENT_MS * 1000:
            _lengthen(lag_us, slices, last_end, end_us)
        points += [(instance, replica, slice_, lag / 1000) for slice_, lag in sorted(lag_us.items())]
    instances, replicas, numbers, lags = zip(*points, strict=True) if points else ((), (), (), ())
    begin = (slices.first_us or 0) + np.array(numbers, np.int64) * slices.width_us
    columns = {"instance": instances, "replica": replicas, "at": begin, "lag_ms": lags}
    return pa.table(columns).cast(arrow_schema(LAGS)) if points else arrow_schema(LAGS).empty_table()


def _lengthen(lag_us: dict[int, int], slices: Slices, start_us: int, until: int) -> None:
    """Raise the lag in each slice that a gap between fetches overlaps: to the gap's length up to the slice's end."""
    first, last = slices.number(np.array([start_us, max(until, start_us)])).tolist()
    for number in range(first, last + 1):
        end_us = until if number == last else (slices.first_us or 0) + (number + 1) * slices.width_us
        lag_us[number] = max(lag_us.get(number, 0), end_us - start_us)
