"""Each kind of operation has one colour in every figure and table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from abeyant.pages.style import PALETTE

_OF_KIND: Final = {
    "PRODUCE": PALETTE[0],
    "FETCH": PALETTE[1],
    "FETCH_CONSUMER": PALETTE[1],
    "FETCH_FOLLOWER": PALETTE[2],
    "FETCH_RAFT": PALETTE[7],
    "JOIN_GROUP": PALETTE[3],
    "SYNC_GROUP": PALETTE[4],
    "DELETE_RECORDS": PALETTE[5],
}


def colours(kinds: Sequence[str]) -> dict[str, str]:
    """Return each kind's colour: its own for those that Kafka always has, the next free one for others."""
    chosen = dict[str, str]()
    for kind in kinds:
        if kind in _OF_KIND and _OF_KIND[kind] not in chosen.values():
            chosen[kind] = _OF_KIND[kind]
    free = [colour for colour in PALETTE if colour not in chosen.values()]
    for i, kind in enumerate(kind for kind in kinds if kind not in chosen):
        chosen[kind] = free[i % len(free)]
    return chosen
