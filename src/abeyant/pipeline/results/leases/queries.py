"""Hold the lease on a stream's output while its query runs: a locked file locally, a renewed file on a store.

Several holders in one process may share a lease: a command, and the query that it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from abeyant.errors import AbeyantError
from abeyant.pipeline.results.leases.local import acquire, release
from abeyant.pipeline.results.leases.store import StoreLease
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.store import Store

__all__ = ["acquire_store", "lease_store_while_query_runs", "lease_while_query_runs", "release_store"]


class _Held:
    def __init__(self, lease: StoreLease) -> None:
        self.lease: Final = lease
        self.holders: Final[set[str]] = set()


_ours: Final[dict[str, _Held]] = {}
"""The leases that this process holds, by store; each has one or more holders within the process."""

_guard: Final = threading.Lock()


def lease_store_while_query_runs(store: Store, answers: DataFrame, query: str) -> StoreLease:
    """Lease a store from a query's first batch until the query ends; return the lease.

    If the query is not of the process's first Spark session, the lease is held until the process ends. Raises
    `AbeyantError` if another process holds the lease or has taken it over.
    """
    run = _run_of(answers) or query
    lease, fresh = acquire_store(store, run)
    if fresh:
        _when_it_ends(query, partial(release_store, store, run))
    return lease


def release_store(store: Store, holder: str) -> None:
    """Remove a holder of the lease. Release the lease if this was its last holder."""
    with _guard:
        holding = _ours.get(store.root)
        if holding is None:
            return
        holding.holders.discard(holder)
        if not holding.holders:
            _ours.pop(store.root).lease.close()


def acquire_store(store: Store, holder: str) -> tuple[StoreLease, bool]:
    """Lease a store until `release_store`; return the lease, and whether this holder is new.

    Raises `AbeyantError` if another process holds the lease or has taken it over.
    """
    with _guard:
        holding = _ours.get(store.root)
        if holding is not None:
            try:
                holding.lease.check()
            except AbeyantError:
                _ours.pop(store.root).lease.close()
                raise
        else:
            lease = StoreLease(store, "stream")
            for name in lease.expired:
                lease.remove_expired(name)
            holding = _ours[store.root] = _Held(lease)
        fresh = holder not in holding.holders
        holding.holders.add(holder)
        return holding.lease, fresh


def lease_while_query_runs(batch: DataFrame, query: str, lease: Path, out: Path) -> None:
    """Hold the lease on `out` from a query's first batch until the query ends.

    On Spark Connect, and for a query that is not of the process's first session, hold it until the process ends.
    Raises `AbeyantError` if another process holds the lease, and names that process.
    """
    run = _run_of(batch)
    if acquire(lease, out, run or query) and run is not None:
        _when_it_ends(query, partial(release, lease, run))


def _run_of(batch: DataFrame) -> str | None:
    """Return the id of the query's current run, which changes at each start of the query; None on Spark Connect."""
    spark = batch.sparkSession
    return None if is_connect(spark) else spark.sparkContext.getLocalProperty("spark.jobGroup.id")


def _when_it_ends(query: str, callback: Callable[[], object]) -> None:
    """Call `callback` in a thread when the query ends. Never call it if the query is not of the first session."""
    # Not the batch's session: that is a clone without queries.
    running = SparkSession.builder.getOrCreate().streams.get(query)
    if running is not None:
        threading.Thread(target=_do_after, args=(running, callback), name=_THREAD, daemon=True).start()


_THREAD: Final = "abeyant-lease"


def _do_after(running: StreamingQuery, callback: Callable[[], object]) -> None:
    with suppress(Exception):  # however it ends
        running.awaitTermination()
    callback()
