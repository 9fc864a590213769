"""Write a stream's batches where directories cannot be renamed: a batch is committed by its manifest.

The manifest `out/batches/N.json` names the files of batch N, below `out/outcomes/batch=N` and `out/aside/batch=N`. It
is written last and once. Files that no manifest names were left by a run that was killed: readers ignore such files,
and the repeated batch removes them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.rejected import rejected_rows_of
from abeyant.pipeline.resolver.streams.plan import outcomes_of
from abeyant.pipeline.results.leases.queries import lease_store_while_query_runs
from abeyant.pipeline.results.manifests import batch_manifest, manifest, read_manifest
from abeyant.pipeline.spark.store import Store

__all__ = ["write_listed", "write_tables"]

_QUERY: Final = "query.json"
_TABLES: Final = ("outcomes", "aside")


def write_listed(answers: DataFrame, batch: int, out: str, query: str) -> None:
    """Write one batch of a query below `out`, a URI, unless its manifest exists.

    This process holds the lease on `out` until the query ends. Raises `AbeyantError` if another process holds it, or
    if `out` belongs to another query.
    """
    store = Store(answers.sparkSession, out)
    lease = lease_store_while_query_runs(store, answers, query)
    _belongs_to(store, query)
    place = store.uri(batch_manifest(batch))
    existing = read_manifest(store.read(batch_manifest(batch)), place)
    if existing is not None:
        # Written by a run that was killed before Spark recorded it. Run the batch again all the same, for its state.
        answers.write.format("noop").mode("overwrite").save()
    else:
        attempt = uuid4().hex[:12]
        entries = {"batch": batch, "query": query, "attempt": attempt}
        places = {table: f"{table}/batch={batch}/{attempt}" for table in _TABLES}
        tables = write_tables(answers, lambda table: store.uri(places[table]))
        files = {table: store.written(place) if table in tables else {} for table, place in places.items()}
        if "outcomes" not in tables:
            store.remove(places["outcomes"])
        content = manifest(entries, files)
        lease.check()
        # If one exists by now, a writer that lost its lease was still alive: its batch has equal rows, and is kept.
        store.put_new(batch_manifest(batch), content)
        existing = read_manifest(store.read(batch_manifest(batch)), place)
    if existing is None:
        raise AbeyantError(f"{place} exists, but is not a manifest: remove it")
    # Not earlier: until a manifest exists, a run taken for dead may still write one that names its files.
    for table in _TABLES:
        for name in store.names(f"{table}/batch={batch}"):
            if name != existing["attempt"]:
                store.remove(f"{table}/batch={batch}/{name}")


def write_tables(answers: DataFrame, place: Callable[[str], str]) -> list[str]:
    """Write a batch's outcomes and rejected rows to `place(table)`; return the tables that have rows, outcomes last."""
    answers.persist()  # so that writing rejected rows, if there are any, does not run every shard again
    try:
        # Write outcomes in any case: only a batch that is read to its end commits its state. Count rows on the way.
        observation = Observation()
        counted = answers.observe(observation, *(F.count(column).alias(column) for column in ("outcome", "reason")))
        outcomes_of(counted).write.parquet(place("outcomes"))
        if observation.get["reason"]:
            rejected_rows_of(answers).write.parquet(place("aside"))
        return [table for table, column in (("aside", "reason"), ("outcomes", "outcome")) if observation.get[column]]
    finally:
        answers.unpersist()


def _belongs_to(store: Store, query: str) -> None:
    """Record this query as the store's owner if it has none; raise `AbeyantError` if another query owns it."""
    if store.put_new(_QUERY, json.dumps({"query": query}) + "\n"):
        return
    try:
        owner = json.loads(store.read(_QUERY) or "")["query"]
    except (ValueError, LookupError, TypeError) as error:
        raise AbeyantError(f"{store.uri(_QUERY)} is not from abeyant: name another place for the outcomes") from error
    if owner != query:
        raise AbeyantError(
            f"{store.root} holds the outcomes of another query, whose batches have the same numbers. Give the "
            "checkpoint of that query, or another place for the outcomes"
        )
