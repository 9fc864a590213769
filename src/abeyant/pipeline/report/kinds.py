"""The colour and the order of kinds of operation, the same in every figure and table of every report."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from abeyant.pages.style import FURTHER, PALETTE
from abeyant.pipeline.request_log.operation import LONG_POLLS

__all__ = ["colours", "in_order", "is_poll"]

# The kinds that Kafka's purgatories hold (`_FIRST`) come first, in this order.
_OF_KIND: Final = {
    "PRODUCE": PALETTE[0],
    "FETCH": PALETTE[1],
    "FETCH_CONSUMER": PALETTE[1],
    "FETCH_FOLLOWER": PALETTE[2],
    "FETCH_RAFT": PALETTE[7],
    "JOIN_GROUP": PALETTE[3],
    "SYNC_GROUP": PALETTE[4],
    "DELETE_RECORDS": PALETTE[5],
    "SHARE_FETCH": FURTHER[0],
    "OFFSET_COMMIT": FURTHER[1],
    "HEARTBEAT": FURTHER[2],
    "CONSUMER_GROUP_HEARTBEAT": FURTHER[3],
}
_FIRST: Final = tuple(_OF_KIND)[:8]


def in_order(kinds: Iterable[str], weight: Mapping[str, float]) -> list[str]:
    """Sort distinct kinds: first the kinds of Kafka's purgatories, then all other kinds by falling weight."""
    found = set(kinds)
    others = sorted(found.difference(_FIRST), key=lambda kind: (-weight.get(kind, 0.0), kind))
    return [kind for kind in _FIRST if kind in found] + others


def is_poll(kind: object) -> bool:
    """Return whether a kind is one of Kafka's fetches: long polls, which ordinarily end by expiring."""
    return kind in LONG_POLLS


def colours(kinds: Sequence[str]) -> dict[str, str]:
    """Return each kind's colour.

    Kafka's kinds have fixed colours. The colour of any other kind follows from a hash of its name, so that it is the
    same on every page, unless another kind of this page has that colour.
    """
    chosen = {kind: _OF_KIND[kind] for kind in kinds if kind in _OF_KIND}
    every = [*PALETTE, *FURTHER]
    for kind in sorted(set(kinds).difference(chosen)):
        start = zlib.crc32(kind.encode()) % len(every)
        turned = every[start:] + every[:start]
        chosen[kind] = next((colour for colour in turned if colour not in chosen.values()), every[start])
    return {kind: chosen[kind] for kind in kinds}
