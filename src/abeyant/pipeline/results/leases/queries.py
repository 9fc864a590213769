"""Leases on a stream's output, kept while its query runs: on this machine a locked file, on a store a renewed one.

Of one process several may hold the lease on a store at once: a command, and the query that it runs.
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
"""The places of this process, each with those in it who want it held."""

_guard: Final = threading.Lock()


def lease_store_while_query_runs(store: Store, answers: DataFrame, query: str) -> StoreLease:
    """Lease a store from the first batch of a query until the query ends; return the lease.

    Until the process ends for a query that is not of its first session. Raises `AbeyantError` where another process
    has the place, or has taken it over.
    """
    run = _run_of(answers) or query
    lease, fresh = acquire_store(store, run)
    if fresh:
        _when_it_ends(query, partial(release_store, store, run))
    return lease


def release_store(store: Store, holder: str) -> None:
    """End what `acquire_store` began: with the last holder the lease goes."""
    with _guard:
        held = _ours.get(store.root)
        if held is None:
            return
        held.holders.discard(holder)
        if not held.holders:
            _ours.pop(store.root).lease.close()


def acquire_store(store: Store, holder: str) -> tuple[StoreLease, bool]:
    """Lease a store until `release_store`; return the lease, and whether this holder is new.

    Raises `AbeyantError` where another process has it, or has taken it over.
    """
    with _guard:
        held = _ours.get(store.root)
        if held is not None:
            try:
                held.lease.check()
            except AbeyantError:
                _ours.pop(store.root).lease.close()
                raise
        else:
            lease = StoreLease(store, "stream")
            for name in lease.expired:
                lease.remove_expired(name)
            held = _ours[store.root] = _Held(lease)
        fresh = holder not in held.holders
        held.holders.add(holder)
        return held.lease, fresh


def lease_while_query_runs(batch: DataFrame, query: str, lease: Path, out: Path) -> None:
    """Hold the lease to `out` from the first batch of a query until the query ends.

    Until the process ends on Spark Connect, where that is one of the query, and for a query that is not of the
    process's first session. Raises `AbeyantError` that names another process that holds it.
    """
    run = _run_of(batch)
    if acquire(lease, out, run or query) and run is not None:
        _when_it_ends(query, partial(release, lease, run))


def _run_of(batch: DataFrame) -> str | None:
    """Return what tells this run of a query from its later ones; None on Spark Connect."""
    spark = batch.sparkSession
    return None if is_connect(spark) else spark.sparkContext.getLocalProperty("spark.jobGroup.id")


def _when_it_ends(query: str, do: Callable[[], object]) -> None:
    """Do something when a query ends, in a thread of its own; never for one that is not of the first session."""
    # Not the batch's session: that is a copy, which knows of no queries.
    running = SparkSession.builder.getOrCreate().streams.get(query)
    if running is not None:
        threading.Thread(target=_do_after, args=(running, do), name=_THREAD, daemon=True).start()


_THREAD: Final = "abeyant-lease"


def _do_after(running: StreamingQuery, do: Callable[[], object]) -> None:
    with suppress(Exception):  # however it ends
        running.awaitTermination()
    do()
