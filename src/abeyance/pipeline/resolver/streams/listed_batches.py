"""A stream's batches where no directory can be renamed: a batch is there when its manifest is.

`out/batches/N.json` names the files of batch N, below `out/outcomes/batch=N` and `out/aside/batch=N`. It is written
last and once. Files that no manifest names are of a run that was killed: nobody reads them, and the batch done again
removes them.
"""

from __future__ import annotations

import json
from typing import Final
from uuid import uuid4

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F  # noqa: N812

from abeyance.errors import AbeyanceError
from abeyance.pipeline.resolver.streams.plan import aside_of, outcomes_of
from abeyance.pipeline.results.claims import Claim
from abeyance.pipeline.results.manifests import batch_manifest, files_of, manifest, read_manifest
from abeyance.pipeline.spark.store import Store

__all__ = ["write_listed"]

_QUERY: Final = "query.json"


_claims: Final[dict[str, Claim]] = {}
"""Those of this process, by place. Spark itself runs no query twice in one process."""


def write_listed(answers: DataFrame, batch: int, out: str, query: str) -> None:
    """Write one batch of a query below `out`, a URI, unless it is there.

    The place is this process's from then on. Raises `AbeyanceError` where it is another process's or another query's.
    """
    store = Store(answers.sparkSession, out)
    claim = _claimed(store)
    _belongs_to(store, query)
    if read_manifest(store.read(batch_manifest(batch))) is not None:
        # Done by a run that was killed before Spark noted it. The state of the batch has to be made all the same.
        answers.write.format("noop").mode("overwrite").save()
        return
    attempt = uuid4().hex[:12]
    files = _written(answers, store, batch, attempt)
    claim.check()
    if not store.put_new(batch_manifest(batch), manifest({"batch": batch, "query": query}, files)):
        _only_once(store, batch, attempt)


def _claimed(store: Store) -> Claim:
    if store.root in _claims:
        try:
            _claims[store.root].check()
        except AbeyanceError:
            _claims.pop(store.root).close()
            raise
    else:
        claim = _claims[store.root] = Claim(store, "stream")
        for name in claim.dead:
            claim.forget(name)
    return _claims[store.root]


def _written(answers: DataFrame, store: Store, batch: int, attempt: str) -> dict[str, dict[str, int]]:
    """Write the files of a batch where nobody looks; return them by table."""
    for table in ("outcomes", "aside"):
        store.remove(f"{table}/batch={batch}")  # of a run that was killed
    files: dict[str, dict[str, int]] = {"outcomes": {}, "aside": {}}

    def write(rows: DataFrame, table: str) -> str:
        name = f"{table}/batch={batch}/{attempt}"
        rows.write.parquet(store.uri(name))
        return name

    answers.persist()  # for the rows set aside: seldom there, and then not worth a second turn of every shard
    try:
        seen = Observation()
        counted = answers.observe(seen, *(F.count(column).alias(column) for column in ("outcome", "reason")))
        name = write(outcomes_of(counted), "outcomes")
        if seen.get["outcome"]:
            files["outcomes"] = store.written(name)
        else:
            store.remove(f"outcomes/batch={batch}")
        if seen.get["reason"]:
            files["aside"] = store.written(write(aside_of(answers), "aside"))
    finally:
        answers.unpersist()
    return files


def _only_once(store: Store, batch: int, attempt: str) -> None:
    """Look why the manifest was there: a store that did not answer in time may have written ours. Else ours goes."""
    found = read_manifest(store.read(batch_manifest(batch)))
    if found is None:
        raise AbeyanceError(f"{store.uri(batch_manifest(batch))} is there and is no manifest: remove it")
    named = [file for table in ("outcomes", "aside") for file in files_of(found, table)]
    if named and not any(f"/{attempt}/" in file for file in named):
        raise AbeyanceError(f"{store.root}: batch {batch} was written by another run in the meantime: it stands")


def _belongs_to(store: Store, query: str) -> None:
    """Note whose `out` this is, if nobody's, else check that it is this query's."""
    if store.put_new(_QUERY, json.dumps({"query": query}) + "\n"):
        return
    try:
        found = json.loads(store.read(_QUERY) or "")["query"]
    except (ValueError, LookupError, TypeError) as error:
        raise AbeyanceError(
            f"{store.uri(_QUERY)} is none of abeyance's: name another place for the outcomes"
        ) from error
    if found != query:
        raise AbeyanceError(
            f"{store.root} holds the outcomes of another query: its batches have the same numbers. Give the checkpoint "
            "that goes with it, or another place for the outcomes"
        )
