"""Measure followers' fetches near incidents: times in which a follower sent no fetch, and gaps between fetches.

A follower is known by the `client_id` of its fetches (`broker-3-fetcher-0`). The broker that wrote a log is the only
broker that fetches from other leaders, but never from the leader with this log.
"""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.columns import Integers, codes

__all__ = [
    "SILENT_MS",
    "Fetching",
    "Gap",
    "Pair",
    "Silence",
    "broker_ids",
    "replica_of",
    "silences",
]

SILENT_MS: Final = 1500

_FETCHER: Final = re.compile(r"broker-(\d{1,10})-fetcher-\d+$")
_SECOND_US: Final = 1_000_000

Pair = tuple[str, int]
"""The instance that is a leader's log, and the id of the broker that fetches from this leader."""


class Silence(NamedTuple):
    """A time in which a follower sent no fetch to a leader."""

    instance: str
    """The leader's log."""
    replica: int
    first_us: int
    last_us: int


class Gap(NamedTuple):
    """A follower's mean time from the end of a fetch to the start of the next, in µs, and the number of fetches."""

    gap_us: float
    fetches: int


class Fetching:
    """The followers' fetches in `ACTIVITY`, in order of time, as columns. `pair` is each row's index in `pairs`."""

    pairs: list[Pair]
    """The pairs of leader and follower, in the order of their first fetches."""

    def __init__(self, activity: pa.Table, is_calm: npt.NDArray[np.bool_]) -> None:
        fetches = pc.equal(activity["kind"], "FETCH_FOLLOWER").fill_null(False).to_numpy(zero_copy_only=False)
        (instance, instances), (client, clients) = codes(activity["instance"]), codes(activity["client_id"])
        both = (instance * len(clients) + client)[fetches]
        numbers: dict[Pair, int] = {}
        distinct, first, place = np.unique(both, return_index=True, return_inverse=True)
        number_of = np.full(len(distinct), -1, np.int64)
        for at in np.argsort(first):
            replica = replica_of(clients[int(distinct[at]) % len(clients)].as_py())
            if replica is not None:
                pair = instances[int(distinct[at]) // len(clients)].as_py(), replica
                number_of[at] = numbers.setdefault(pair, len(numbers))
        self.pairs = list(numbers)
        pair_of = number_of[place]
        rows = np.flatnonzero(fetches)[pair_of >= 0]
        self.pair: Integers = pair_of[pair_of >= 0]
        self.first_us, self.last_us, self._second, self._operations, self._busy_us = (
            activity[name].to_numpy()[rows] for name in ("first_us", "last_us", "second", "operations", "busy_us")
        )
        self._is_calm = is_calm[rows]

    def pairs_in(self, seconds: range) -> list[Pair]:
        """Return the pairs that fetched in `seconds`."""
        return [self.pairs[number] for number in np.unique(self.pair[self._slice(seconds)])]

    def gaps(self, seconds: range, *, calm: bool = False) -> dict[Pair, Gap]:
        """Return the gap of each pair that fetched in `seconds`; with `calm`, only outside of every incident."""
        rows, number = self._slice(seconds), len(self.pairs)
        selection = self._is_calm[rows] if calm else slice(None)
        pair, second = self.pair[rows][selection], self._second[rows][selection]
        fetches, busy_us = (
            np.bincount(pair, column[rows][selection], number) for column in (self._operations, self._busy_us)
        )
        # Count only seconds in which a fetch started: a follower that is silent is not slow.
        seconds_of = np.bincount(np.unique(second * number + pair) % number, minlength=number) if number else pair
        return {
            self.pairs[at]: Gap(max(_SECOND_US * int(seconds_of[at]) - int(busy_us[at]), 0) / int(count), int(count))
            for at, count in enumerate(fetches)
            if count
        }

    def _slice(self, seconds: range) -> slice:
        return slice(*map(int, np.searchsorted(self._second, [seconds.start, seconds.stop])))


def silences(fetching: Fetching, end_us: int) -> list[Silence]:
    """Return the times of `SILENT_MS` or more in which a follower sent no fetch to a leader and had no fetch waiting.

    O(n log n).
    """
    least, pairs = SILENT_MS * 1000, fetching.pairs
    order = np.argsort(fetching.pair, kind="stable")
    pair, first, last = (column[order] for column in (fetching.pair, fetching.first_us, fetching.last_us))
    edges = [*np.searchsorted(pair, np.arange(len(pairs))), len(pair)]
    latest = np.concatenate([np.maximum.accumulate(last[start:end]) for start, end in pairwise(edges)] or [last])
    ends = np.flatnonzero((pair[1:] == pair[:-1]) & (first[1:] - latest[:-1] >= least)) + 1
    times = [
        Silence(*pairs[int(pair[at])], int(latest[at - 1]), int(first[at])) for at in ends[np.argsort(order[ends])]
    ]
    # A fetch that waits when the log ends is not in the log: allow as long again for it.
    allowed = end_us - least
    reaches = [int(latest[end - 1]) for end in edges[1:]]
    return times + [Silence(*key, at, allowed) for key, at in zip(pairs, reaches, strict=True) if allowed - at >= least]


def broker_ids(fetching: Fetching) -> dict[str, int]:
    """Return the id of the broker that wrote each log, for the logs where the id is certain."""
    followers: dict[str, set[int]] = defaultdict(set)
    for instance, replica in fetching.pairs:
        followers[instance].add(replica)
    everyone = set().union(*followers.values())
    candidates = {instance: everyone - ids for instance, ids in followers.items()}
    return {instance: ids.pop() for instance, ids in candidates.items() if len(ids) == 1}


@lru_cache(1024)
def replica_of(client_id: str | None) -> int | None:
    """Return the id of the broker whose fetcher has this client id; None if the client is no follower."""
    fetcher = _FETCHER.match(client_id or "")
    return int(fetcher[1]) if fetcher else None
