"""Read the counts of timers, purgatories, detectors, loops and clusters: in O(1) each, from any thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol, runtime_checkable

from abeyant import IdleDetector, Purgatory
from abeyant.aio.purgatory import Purgatory as AioPurgatory
from abeyant.aio.timer import Timer as AioTimer
from abeyant.engine import WheelStats
from abeyant.metrics import series
from abeyant.metrics.series import Family, Measured, Reading
from abeyant.timer import SystemTimer, Timer
from abeyant.timer.meter import BOUNDS

Labels = Mapping[str, str]


def _counts(labels: Labels, *values: tuple[Family, int]) -> Iterator[Reading]:
    return (Reading(family, labels, value) for family, value in values)


def timer_readings(timer: Timer, labels: Labels) -> Iterator[Reading]:
    """Return the counts of a timer."""
    stats = timer.stats()
    up = not timer.closed and stats.failure is None
    yield from _counts(
        labels,
        (series.TIMER_PENDING, stats.pending),
        (series.TIMER_STARTED, stats.started),
        (series.TIMER_EXPIRED, stats.expired),
        (series.TIMER_CANCELLED, stats.cancelled),
        (series.TIMER_FAILED, stats.failed),
        (series.TIMER_CASCADED, stats.cascaded),
        (series.TIMER_WAKEUPS, stats.wakeups),
        (series.TIMER_UP, int(up)),
    )
    latencies = timer.latencies() if isinstance(timer, (SystemTimer, AioTimer)) else None
    if latencies is not None:
        for family, found in ((series.TIMER_LATENESS, latencies.lateness), (series.TIMER_CALLBACK, latencies.callback)):
            yield Reading(family, labels, series.Histogram(BOUNDS, found.counts, found.total))


def purgatory_readings(purgatory: Purgatory[Any] | AioPurgatory, labels: Labels) -> Iterator[Reading]:
    """Return the counts of a purgatory for threads or for asyncio."""
    stats = purgatory.stats()
    yield from _counts(
        labels,
        (series.WATCHED, stats.watched),
        (series.WATCHED_KEYS, stats.watched_keys),
        (series.DELAYED, stats.delayed),
        (series.COMPLETED, stats.completed),
        (series.EXPIRED, stats.expired),
        (series.CANCELLED, stats.cancelled),
        (series.ERRORS, stats.errors),
    )


def idle_readings(detector: IdleDetector[Any], labels: Labels) -> Iterator[Reading]:
    """Return the counts of an idle detector."""
    stats = detector.stats()
    yield from _counts(
        labels,
        (series.IDLE_WATCHED, stats.watched),
        (series.IDLE_BEGUN, stats.started),
        (series.IDLE_EXPIRED, stats.expired),
        (series.IDLE_FORGOTTEN, stats.forgotten),
    )


@runtime_checkable
class CountedLoop(Protocol):
    """An event loop that counts its timers, as the loops of `abeyant.aio` do."""

    def stats(self) -> WheelStats:
        """Return the counts of the loop's timers."""

    def is_running(self) -> bool:
        """Return whether the loop runs."""


def loop_readings(loop: CountedLoop, labels: Labels) -> Iterator[Reading]:
    """Return the counts of an event loop's timers."""
    stats = loop.stats()
    yield from _counts(
        labels,
        (series.LOOP_PENDING, stats.pending),
        (series.LOOP_STARTED, stats.started),
        (series.LOOP_EXPIRED, stats.expired),
        (series.LOOP_CANCELLED, stats.cancelled),
        (series.LOOP_CASCADED, stats.cascaded),
        (series.LOOP_RUNNING, int(loop.is_running())),
    )


def cluster_readings(cluster: Measured, labels: Labels) -> Iterator[Reading]:
    """Return the readings of a cluster, each with the label of the cluster added."""
    for reading in cluster.readings():
        yield reading._replace(labels={**labels, **reading.labels})


class Kind:
    """A kind of thing that can be collected: the label that distinguishes such things, and the function to read one."""

    def __init__(self, label: str, read: Callable[[Any, Labels], Iterable[Reading]]) -> None:
        self.label = label
        self.read = read


_KINDS: tuple[tuple[Any, Kind], ...] = (
    (Timer, Kind("timer", timer_readings)),
    ((Purgatory, AioPurgatory), Kind("purgatory", purgatory_readings)),
    (IdleDetector, Kind("detector", idle_readings)),
    (CountedLoop, Kind("loop", loop_readings)),
    (Measured, Kind("cluster", cluster_readings)),
)


def kind_of(thing: object) -> Kind:
    """Return the `Kind` of a thing. Raises TypeError for one that has no counts."""
    for types, kind in _KINDS:
        if not isinstance(thing, type) and isinstance(thing, types):
            return kind
    allowed = "a timer, Purgatory, IdleDetector, event loop of abeyant.aio or broker Cluster"
    raise TypeError(f"no metrics can be collected from {thing!r}: pass {allowed}")
