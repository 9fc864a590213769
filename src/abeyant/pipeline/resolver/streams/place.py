"""Whose a stream's place on a store is: this process's while a query writes there, or a command has it.

(On this machine a place is locked instead: `query_identity.hold_while_it_runs`.)
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Final

from pyspark.sql import DataFrame

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.streams.query_identity import run_of, when_it_ends
from abeyant.pipeline.results.claims import Claim
from abeyant.pipeline.spark.store import Store

__all__ = ["claim_place", "claim_while_it_runs", "leave_place"]


class _Held:
    def __init__(self, claim: Claim) -> None:
        self.claim: Final = claim
        self.holders: Final[set[str]] = set()


_ours: Final[dict[str, _Held]] = {}
"""The places of this process, each with those in it who want it held."""

_guard: Final = threading.Lock()


def claim_while_it_runs(store: Store, answers: DataFrame, query: str) -> Claim:
    """Claim a place from the first batch of a query until the query ends; return the claim.

    Until the process ends for a query that is not of its first session. Raises `AbeyantError` where another process
    has the place, or has taken it over.
    """
    run = run_of(answers) or query
    claim, fresh = _claim(store, run)
    if fresh:
        when_it_ends(query, partial(leave_place, store, run))
    return claim


def claim_place(store: Store, holder: str) -> Claim:
    """Claim a place until `leave_place`; `AbeyantError` where another process has it, or has taken it over."""
    return _claim(store, holder)[0]


def leave_place(store: Store, holder: str) -> None:
    """End what `claim_place` began: with the last holder the claim goes."""
    with _guard:
        held = _ours.get(store.root)
        if held is None:
            return
        held.holders.discard(holder)
        if not held.holders:
            _ours.pop(store.root).claim.close()


def _claim(store: Store, holder: str) -> tuple[Claim, bool]:
    """Return the claim, and whether this holder is new."""
    with _guard:
        held = _ours.get(store.root)
        if held is not None:
            try:
                held.claim.check()
            except AbeyantError:
                _ours.pop(store.root).claim.close()
                raise
        else:
            claim = Claim(store, "stream")
            for name in claim.dead:
                claim.forget(name)
            held = _ours[store.root] = _Held(claim)
        fresh = holder not in held.holders
        held.holders.add(holder)
        return held.claim, fresh
