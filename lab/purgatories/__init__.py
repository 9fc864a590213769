"""The designs of purgatories by name: all have one interface, and run on the machine's clock or on a virtual clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from abeyant.pipeline.purging.kafka import TICK, WHEEL_SIZE, KafkaPurgatory
from abeyant.pipeline.purging.reaped import PURGE_INTERVAL, Reaped
from abeyant.pipeline.purging.virtual import VirtualClock, VirtualReaper
from abeyant.purgatory import DelayedOperation, Purgatory
from abeyant.timer import ManualTimer, SystemTimer
from lab.purgatories.old import OldPurgatory
from lab.purgatories.reaper import Reaper

__all__ = ["DESIGNS", "PURGE_INTERVAL", "Design", "Room", "WaitingRoom"]


class WaitingRoom(Protocol):
    """The interface of all purgatories, as experiments call it. Operations are `abeyant.DelayedOperation`s."""

    def try_complete_else_watch(self, operation: Any, keys: Iterable[Hashable]) -> bool:
        """Try to complete `operation`; else let it wait on `keys`. Return whether it is completed."""

    def check_and_complete(self, key: Hashable) -> int:
        """Try all operations that wait on `key`; return how many this completed."""

    @property
    def watched(self) -> int:
        """The number of entries on watch lists, including entries of ended operations."""

    @property
    def delayed(self) -> int:
        """The number of operations in the timer, including ended operations."""


@dataclass(frozen=True)
class Room:
    """A running purgatory, and functions to drive it and to read its counts."""

    purgatory: WaitingRoom
    advance_to: Callable[[int], object]
    """Advance the virtual clock to a time (ns); does nothing on the machine's clock."""
    work: Callable[[], tuple[int, int]]
    """Return the number of purges so far, and of the entries that they looked at."""
    ended: Callable[[], tuple[int, int]]
    """Return how many operations have ended so far, and how many of them expired."""
    close: Callable[[], object]


@dataclass(frozen=True)
class Design:
    """A design of a purgatory. `virtual` and `real` make one on a virtual or the machine's clock.

    Both take the purge interval, which our design ignores.
    """

    title: str
    source: str
    virtual: Callable[[int], Room]
    real: Callable[[int], Room]


def _reaped(kind: type[Reaped], *, each_poll: bool) -> dict[str, Callable[[int], Room]]:
    def virtual(purge_interval: int) -> Room:
        clock = VirtualClock()
        purgatory = kind(clock, purge_interval)
        reaper = VirtualReaper(purgatory, clock, each_poll=each_poll)
        return Room(purgatory, reaper.advance_to, lambda: _work(purgatory), lambda: _ended(purgatory), lambda: None)

    def real(purge_interval: int) -> Room:
        purgatory = kind(time.monotonic_ns, purge_interval)
        reaper = Reaper(purgatory)
        reaper.start()
        return Room(purgatory, lambda now: None, lambda: _work(purgatory), lambda: _ended(purgatory), reaper.stop)

    return {"virtual": virtual, "real": real}


def _work(purgatory: Reaped) -> tuple[int, int]:
    return purgatory.counts[2], purgatory.counts[3]


def _ended(purgatory: Reaped) -> tuple[int, int]:
    completed, expired, _, _ = purgatory.counts
    return completed + expired, expired


def _no_work() -> tuple[int, int]:
    return 0, 0


def _ours_ended(purgatory: Purgatory[DelayedOperation]) -> tuple[int, int]:
    stats = purgatory.stats()
    return stats.completed + stats.expired, stats.expired


def _our_virtual(purge_interval: int) -> Room:
    timer = ManualTimer(tick=TICK / 1e9, wheel_size=WHEEL_SIZE)
    purgatory: Purgatory[DelayedOperation] = Purgatory("lab", timer)
    return Room(
        purgatory, lambda now: timer.advance_to(now / 1e9), _no_work, lambda: _ours_ended(purgatory), purgatory.close
    )


def _our_real(purge_interval: int) -> Room:
    timer = SystemTimer("lab", tick=TICK / 1e9, wheel_size=WHEEL_SIZE)
    purgatory: Purgatory[DelayedOperation] = Purgatory("lab", timer)

    def close() -> None:
        purgatory.close()
        timer.close()

    return Room(purgatory, lambda now: None, _no_work, lambda: _ours_ended(purgatory), close)


DESIGNS = {
    "ours": Design("ours", "abeyant.Purgatory", _our_virtual, _our_real),
    "kafka": Design(
        "Kafka's design",
        "Apache Kafka DelayedOperationPurgatory since 0.9 (KAFKA-1989)",
        **_reaped(KafkaPurgatory, each_poll=False),  # a purge leaves its estimate where none follows
    ),
    # It scans at each poll while its lists are long, whether or not anything has come.
    "old": Design("the old design", "Apache Kafka 0.8 RequestPurgatory", **_reaped(OldPurgatory, each_poll=True)),
}
