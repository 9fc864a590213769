"""The rival designs of timer queues by name: all have the engine's interface, and promise a precision."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from abeyant.engine import TimingWheel
from lab.rivals import (
    delay_queue,
    hashed_wheel,
    indexed_heap,
    kernel_wheel,
    lazy_heap,
    ring,
    sorted_list,
    unsorted_list,
)
from lab.rivals.precision import Precision

__all__ = ["DESIGNS", "Design", "Precision", "TimerQueue"]


class TimerQueue(Protocol):
    """The engine's interface: what drivers, and the lab, call on a timer queue. Times are integers in any unit."""

    def add(self, deadline: int, item: object, /) -> int:
        """Start a task that returns `item` at `deadline`; return its handle."""

    def remove(self, handle: int, /) -> object | None:
        """Remove a pending task and return its item; return None if the task has ended."""

    def next_expiration(self) -> int | None:
        """Return the time at which `advance` next has work; None if nothing is pending."""

    def advance(self, now: int, budget: int | None = None, /) -> list[Any]:
        """Advance to `now` and return the items that are due, at most `budget`."""

    def __len__(self) -> int:
        """Return how many tasks are pending."""

    def _check(self) -> None:
        """Assert every invariant."""


@dataclass(frozen=True)
class Design:
    """A design of a timer queue: `make` makes one, `precision` returns its promise; both take its parameters."""

    title: str
    source: str
    start: str
    """The cost of starting a task, as the design's source states it."""
    stop: str
    make: Callable[..., TimerQueue]
    precision: Callable[..., Precision]
    ticks: bool = True
    """Whether `make` takes a `tick`."""


def _wheel_precision(tick: int = 1, wheel_size: int = 64) -> Precision:
    return Precision(lambda delay: tick - 1, apart=tick, words="less than a tick, at any delay")


DESIGNS = {
    "wheel": Design(
        "hierarchical wheel (ours)",
        "Varghese and Lauck 1987, scheme 7; Apache Kafka's TimingWheel",
        "O(1)",
        "O(1)",
        TimingWheel,
        _wheel_precision,
    ),
    "delay-queue": Design(
        "delay queue (heap, no random delete)",
        "java.util.concurrent.DelayQueue; Kafka's purgatory before 0.9",
        "O(log n)",
        "O(n)",
        delay_queue.DelayQueue,
        delay_queue.precision,
        ticks=False,
    ),
    "indexed-heap": Design(
        "heap with places",
        "java.util.concurrent.ScheduledThreadPoolExecutor; libuv",
        "O(log n)",
        "O(log n)",
        indexed_heap.IndexedHeap,
        indexed_heap.precision,
        ticks=False,
    ),
    "lazy-heap": Design(
        "heap with lazy deletion",
        "CPython's asyncio",
        "O(log n)",
        "O(1), and O(n) now and then",
        lazy_heap.LazyHeap,
        lazy_heap.precision,
        ticks=False,
    ),
    "hashed-wheel": Design(
        "hashed wheel with rounds",
        "Varghese and Lauck 1987, scheme 6; Netty's HashedWheelTimer",
        "O(1)",
        "O(1)",
        hashed_wheel.HashedWheel,
        hashed_wheel.precision,
    ),
    "kernel-wheel": Design(
        "wheel without cascades",
        "Linux kernel/time/timer.c since 4.8",
        "O(1)",
        "O(1)",
        kernel_wheel.KernelWheel,
        kernel_wheel.precision,
    ),
    "ring": Design("simple ring", "Varghese and Lauck 1987, scheme 4", "O(1)", "O(1)", ring.Ring, ring.precision),
    "sorted-list": Design(
        "sorted list",
        "Varghese and Lauck 1987, scheme 2",
        "O(n)",
        "O(1)",
        sorted_list.SortedList,
        sorted_list.precision,
        ticks=False,
    ),
    "unsorted-list": Design(
        "unsorted list",
        "Varghese and Lauck 1987, scheme 1",
        "O(1)",
        "O(1)",
        unsorted_list.UnsortedList,
        unsorted_list.precision,
        ticks=False,
    ),
}
