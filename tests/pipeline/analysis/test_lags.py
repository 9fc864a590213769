"""The lag of followers, beside a look at every microsecond that counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest

from abeyant.pipeline.analysis.by_time import Slices
from abeyant.pipeline.analysis.followers import SILENT_MS
from abeyant.pipeline.analysis.lags import fetch_runs, joined, lag_rows

Fetch = tuple[str, str, int, int]
"""The leader's log, the client id, the start and the wait in microseconds."""


def operations(fetches: Sequence[Fetch]) -> pa.Table:
    instances, clients, starts, waits = zip(*fetches, strict=True)
    return pa.table(
        {
            "instance": instances,
            "kind": ["FETCH_FOLLOWER"] * len(fetches),
            "client_id": clients,
            "start_us": pa.array(starts, pa.int64()),
            "wait_us": pa.array(waits, pa.int64()),
        }
    )


def some(seed: int) -> list[Fetch]:
    """Return fetches of two followers at two leaders, with pauses of all lengths; one has two fetchers."""
    random, found = np.random.default_rng(seed), list[Fetch]()
    for instance, client in (("b1", "broker-2-fetcher-0"), ("b1", "broker-3-fetcher-0"), ("b2", "broker-3-fetcher-0"),
                             ("b2", "broker-3-fetcher-1")):  # fmt: skip
        at = int(random.integers(0, 5_000))
        while at < 60_000_000:
            wait = int(random.integers(0, 500_000))
            found.append((instance, client, at, wait))
            at += wait + int(10 ** random.uniform(2, 7))
    return sorted(found, key=lambda fetch: fetch[2])


def longest(fetches: Sequence[Fetch], begin: int, end: int, last: int) -> int:
    """Return the longest lag of one follower in a part of the time."""
    lags, reached = [0], None
    for _, _, start, wait in sorted(fetches, key=lambda fetch: fetch[2]):
        if reached is not None and reached < end and start >= begin:
            lags.append(min(start, end) - reached)
        reached = start + wait if reached is None else max(reached, start + wait)
    if reached is not None and last - reached > SILENT_MS * 1000 and last >= begin and reached < end:
        lags.append(min(last, end) - reached)
    return max(lags)


@pytest.mark.parametrize("seed", range(5))
def test_lag_is_the_longest_time_without_a_fetch(seed: int) -> None:
    fetches = some(seed)
    end = max(start + wait for _, _, start, wait in fetches) + seed * 1_000_000
    slices = Slices(fetches[0][2], fetches[-1][2], 40)
    table = operations(fetches)
    parts = [fetch_runs(table.slice(at, 17), slices) for at in range(0, len(table), 17)]
    rows = lag_rows(joined(pa.concat_tables(parts)), slices, end).to_pylist()
    assert lag_rows(fetch_runs(table, slices), slices, end).to_pylist() == rows
    assert {(row["instance"], row["replica"]) for row in rows} == {("b1", 2), ("b1", 3), ("b2", 3)}
    for row in rows:
        mine = [one for one in fetches if (one[0], one[1][7]) == (row["instance"], str(row["replica"]))]
        begin = int(row["at"].timestamp() * 1_000_000 + 0.5)
        is_last = (begin - fetches[0][2]) // slices.width_us == 39  # which has all that is later
        expected = longest(mine, begin, end if is_last else begin + slices.width_us, end)
        assert row["lag_ms"] * 1000 == pytest.approx(expected, abs=1), row


def test_requests_of_others_are_no_fetches_of_a_broker() -> None:
    odd = f"broker-{10**20}-fetcher-0"  # no number of a broker, which has 32 bits
    table = operations([("b1", "consumer-1", 0, 5), ("b1", "broker-9-to-controller", 9, 5), ("b1", odd, 9, 5)])
    slices = Slices(0, 9, 4)
    assert lag_rows(fetch_runs(table, slices), slices, 14).num_rows == 0
    assert lag_rows(fetch_runs(table.slice(0, 0), slices), slices, 14).num_rows == 0
