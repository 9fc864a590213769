"""The rows: what each asks, at which sizes, of whom, in which unit."""

from __future__ import annotations

from dataclasses import dataclass

TIMERS = ("system", "manual", "engine", "asyncio", "uvloop", "heapq", "sched", "threading", "kafka", "jvm-heap")
PENDING = (0, 100_000, 1_000_000)
MANY = (100_000, 1_000_000)
SMALL = 1_000  # besides, for rivals that are measured up to here only


@dataclass(frozen=True)
class Row:
    """One question."""

    name: str
    title: str
    about: str  # what exactly is done, for the page
    sizes: tuple[int, ...]
    size_of: str = "pending"  # what the size counts
    unit: str = "µs"  # as it is shown; figures are kept in units of `scale`
    scale: float = 1e-3  # from what is kept (ns, bytes, per second) to what is shown
    rivals: tuple[str, ...] = TIMERS
    higher_is_better: bool = False
    processes: int = 1  # fresh processes, for what can be measured but once in each
    quick_sizes: tuple[int, ...] = (10_000,)


def _without(*names: str) -> tuple[str, ...]:
    return tuple(rival for rival in TIMERS if rival not in names)


_STALLS = {
    "unit": "ms",
    "scale": 1e-6,
    "sizes": MANY,
    "rivals": _without("manual", "threading", "sched", "jvm-heap"),
}
_OURS = ("system", "manual")
_BESIDE = _without("manual", "threading", "sched", "jvm-heap")

_ROWS = (
    Row("pair", "start + stop", "Start a timer and stop it at once, while n others are pending.", PENDING,
        quick_sizes=(0, 10_000)),
    Row("start", "start", "Start timers that stay pending, beside n others; the handles are kept.", PENDING),
    Row("start_forgotten", "start, handle dropped",
        "The same, but the caller drops the handle (only where that can make a difference).",
        PENDING, rivals=_OURS),
    Row("stop", "stop", "Stop timers picked at random among n pending ones.", MANY),
    Row("refresh", "refresh",
        "Start the same delay again, from now, for timers picked at random among n pending ones (a connection was "
        "seen again). Peers have no refresh: they stop, and start anew.", MANY),
    Row("expiry", "expiry",
        "n timers whose deadlines lie within half a second are kept waiting until all are due, then run: "
        "what one costs, its callback included.", MANY),
    Row("next", "next expiration", "Ask when the next timer comes up, with n pending.", PENDING,
        rivals=("system", "manual", "engine", "heapq", "sched"), quick_sizes=(0, 10_000)),
    Row("jump", "a jump of a year",
        "A year passes at once, with n timers pending on the way: what the jump costs, their callbacks included.",
        (3,), rivals=("manual",), quick_sizes=(3,)),
    Row("stall_start", "longest stall: starts",
        "n timers are started. The longest gap in the starting thread, which looks at the clock every 100 starts.",
        MANY, unit="ms", scale=1e-6, rivals=_BESIDE),
    Row("stall_expiry", "longest stall: expiries",
        "n timers are due at once. The longest gap in the thread of their starter, which goes on starting and "
        "stopping a timer every turn (an event loop: every iteration).",
        MANY, unit="ms", scale=1e-6, rivals=_BESIDE),
    Row("stall_stop", "longest stall: stops",
        "n pending timers are stopped in random order. The longest gap in the stopping thread, which looks at the "
        "clock, and lets an event loop iterate, every 100 stops.", MANY, unit="ms", scale=1e-6, rivals=_BESIDE),
    Row("memory", "memory",
        "Resident memory of a fresh process that n pending timers add, a timer; the callback is shared, the "
        "handles are kept (the caller's list of them not counted). JVM: live heap after a full collection.",
        MANY, unit="B", scale=1, processes=3, rivals=_without("sched", "threading"), quick_sizes=(100_000,)),
    Row("memory_forgotten", "memory, handle dropped", "The same, but the caller drops the handle.",
        MANY, unit="B", scale=1, processes=3, rivals=_OURS, quick_sizes=(100_000,)),
    Row("collection", "gc.collect()",
        "A full garbage collection with n pending timers whose handles are kept, less one with none.",
        MANY, unit="ms", scale=1e-6, rivals=_without("sched", "threading", "kafka", "jvm-heap")),
    Row("collection_forgotten", "gc.collect(), handle dropped", "The same, but the caller drops the handles.",
        MANY, unit="ms", scale=1e-6, rivals=_OURS),
    Row("lateness", "lateness",
        "Timers with random delays on the real clock: when each ran, less the time at which it was started, less "
        "its delay. Below zero is early.", (100_000,), size_of="timers", unit="ms", scale=1e-6,
        rivals=("system", "asyncio", "uvloop", "kafka"), quick_sizes=(2_000,)),
    Row("watch", "purgatory: watch on one key, complete",
        "Make an operation, watch it on one of 1,000 keys, make its condition true, check the key; n others wait "
        "on other keys. The two tries in vain and the one that completes it are included: three calls of a "
        "`try_complete`, ours in Python.", (0, 100_000), rivals=("purgatory", "kafka"), quick_sizes=(0, 10_000)),
    Row("watch_keys", "purgatory: a key of an operation on many",
        "The same for an operation on n keys: what one key costs.", (10, 100, 1_000),
        size_of="keys", unit="ns", scale=1, rivals=("purgatory", "kafka"), quick_sizes=(1_000,)),
    Row("watch_hot", "purgatory: an operation among many on one key",
        "n operations wait on one key, and one check completes them all: what one costs, watch and completion.",
        (1_000, 10_000, 100_000), size_of="operations", rivals=("purgatory", "kafka"), quick_sizes=(10_000,)),
    Row("enqueue", "purgatory: saturation",
        "Operations with a time-out of 200 ms on one of 1,000 keys each are submitted as fast as possible, and "
        "all expire: how many a second, from the first submission to the last expiry, less the time-out.",
        (100_000,), size_of="operations",
        unit="k/s", scale=1e-3, rivals=("purgatory", "kafka"), higher_is_better=True, quick_sizes=(5_000,)),
    Row("replay", "columns: replay of a trace",
        "A trace of two million operations, about n pending at any time, goes through the wheel on one core: columns "
        "in, outcomes and statistics out, everything counted. An operation is started once, and ended once, by its "
        "condition or at its deadline. Beside it, the usual loop over a heap of events, which tells outcomes only.",
        (1_000, 20_000, 100_000, 1_000_000), unit="M/s", scale=1e-6, rivals=("columns", "heap-loop"),
        higher_is_better=True),
    Row("bulk_add", "columns: start", "`BulkWheel.add_many` of 100,000 deadlines beside n pending timers: what one "
        "costs.", PENDING, unit="ns", scale=1, rivals=("columns",)),
    Row("bulk_remove", "columns: stop", "`BulkWheel.remove_many` of 100,000 handles picked at random among n: what "
        "one costs.", MANY, unit="ns", scale=1, rivals=("columns",)),
    Row("bulk_expire", "columns: expiry", "`BulkWheel.advance_into` of n timers, cascades included: what one costs.",
        MANY, size_of="timers", unit="ns", scale=1, rivals=("columns",)),
)  # fmt: skip

ROWS = {row.name: row for row in _ROWS}
