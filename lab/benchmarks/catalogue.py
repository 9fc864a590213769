"""The rows of the benchmarks: what each row measures, for which rivals and sizes, and its unit."""

from __future__ import annotations

from dataclasses import dataclass

LOOPS = ("aio", "aio-uvloop", "asyncio", "uvloop")
TIMERS = ("system", "manual", "engine", *LOOPS, "heapq", "sched", "threading", "kafka", "jvm-heap")
PENDING = (0, 100_000, 1_000_000)
MANY = (100_000, 1_000_000)
SMALL = 1_000  # besides, for rivals that are measured up to here only


@dataclass(frozen=True)
class Row:
    """One measured quantity, for several rivals and sizes: a table of the page."""

    name: str
    title: str
    about: str  # exactly what is measured, for the page
    sizes: tuple[int, ...]
    size_of: str = "pending"  # what the size counts
    unit: str = "µs"  # shown unit; results are stored in units of `scale`
    scale: float = 1e-3  # from the stored unit (ns, bytes, 1/s) to the shown one
    rivals: tuple[str, ...] = TIMERS
    higher_is_better: bool = False
    processes: int = 1  # fresh processes, for what can be measured only once per process
    quick_sizes: tuple[int, ...] = (10_000,)

    @property
    def unit_kept(self) -> str:
        """Return the unit of the stored figures."""
        return {"B": "B", "%": "%"}.get(self.unit, "1/s" if self.higher_is_better else "ns")


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
    Row("start", "start", "Start timers that stay pending, beside n others. The handles are kept.", PENDING),
    Row("start_forgotten", "start, handle dropped",
        "The same, but the caller drops the handle. Measured only where that can make a difference.",
        PENDING, rivals=_OURS),
    Row("stop", "stop", "Stop timers picked at random among n pending ones.", MANY),
    Row("refresh", "refresh",
        "Start the same delay again, from now, for timers picked at random among n pending ones, as when a connection "
        "was seen again. Peers have no refresh: they stop the timer and start a new one.", MANY),
    Row("expiry", "expiry",
        "The deadlines of n timers lie within 0.5 s. The timers are held back until all are due, then run. The figure "
        "is the cost per timer, its callback included.", MANY),
    Row("expiry_measured", "expiry, with histograms",
        "The same, while the timer measures how late callbacks begin and how long they take: nothing, one callback in "
        "sixteen (the default), every one.", (100_000,), rivals=("system", "system-measured", "system-measured-all")),
    Row("next", "next expiration", "Ask when the next timer comes up, with n pending.", PENDING,
        rivals=("system", "manual", "engine", "heapq", "sched"), quick_sizes=(0, 10_000)),
    Row("jump", "a jump of a year",
        "A year passes at once, with n timers pending on the way. The figure is the cost of the jump, the callbacks "
        "included.",
        (3,), rivals=("manual",), quick_sizes=(3,)),
    Row("stall_start", "longest stall: starts",
        "n timers are started. The figure is the longest gap in the starting thread, which looks at the clock every "
        "100 starts.",
        MANY, unit="ms", scale=1e-6, rivals=_BESIDE),
    Row("stall_expiry", "longest stall: expiries",
        "n timers are due at once. The figure is the longest gap in the thread that started them. It goes on starting "
        "and stopping one timer per turn (an event loop: per iteration).",
        MANY, unit="ms", scale=1e-6, rivals=_BESIDE),
    Row("stall_stop", "longest stall: stops",
        "n pending timers are stopped in random order. The figure is the longest gap in the stopping thread. Every 100 "
        "stops it looks at the clock and lets an event loop iterate.", MANY, unit="ms", scale=1e-6, rivals=_BESIDE),
    Row("memory", "memory",
        "Resident memory that n pending timers add to a fresh process, per timer. The callback is shared. The handles "
        "are kept; the caller's list of them is not counted. JVM: live heap after a full collection.",
        MANY, unit="B", scale=1, processes=3, rivals=_without("sched", "threading"), quick_sizes=(100_000,)),
    Row("memory_forgotten", "memory, handle dropped", "The same, but the caller drops the handle.",
        MANY, unit="B", scale=1, processes=3, rivals=_OURS, quick_sizes=(100_000,)),
    Row("collection", "a full garbage collection",
        "`gc.collect()` with n pending timers whose handles are kept, less the same with none.",
        MANY, unit="ms", scale=1e-6, rivals=_without("sched", "threading", "kafka", "jvm-heap")),
    Row("collection_forgotten", "a full garbage collection, handle dropped",
        "The same, but the caller drops the handles.",
        MANY, unit="ms", scale=1e-6, rivals=_OURS),
    Row("lateness", "lateness",
        "Timers with random delays on the real clock. Lateness is when a timer ran, less when it was started, less its "
        "delay. Below zero is early.", (100_000,), size_of="timers", unit="ms", scale=1e-6,
        rivals=("system", *LOOPS, "kafka"), quick_sizes=(2_000,)),
    Row("timeout_scope", "loops: a time-out scope",
        "`async with asyncio.timeout(30)` around one step of the loop, beside n pending timers. The figure is the cost "
        "of the scope.",
        PENDING, rivals=LOOPS, quick_sizes=(0, 10_000)),
    Row("idle", "loops: idle connections",
        "n connections have a time-out of 30 s. Each is seen once a second, in random order. The figure is the "
        "processor time that takes, in percent of one core. A loop's timers are cancelled and started "
        "again.", (100_000,),
        size_of="connections", unit="%", scale=1, rivals=("idle", *LOOPS), quick_sizes=(2_000,)),
    Row("http", "loops: an HTTP server",
        "aiohttp's server, unchanged, answers n requests on 64 connections. It keeps each alive for 30 s. The client "
        "is another process.", (20_000,), size_of="requests", unit="k/s", scale=1e-3, rivals=LOOPS,
        higher_is_better=True, quick_sizes=(1_000,)),
    Row("watch", "purgatory: watch on one key, complete",
        "Make an operation, watch it on one of 1,000 keys, make its condition true, check the key; n others wait "
        "on other keys. Three calls of `try_complete` are included, ours in Python: two fail, the third "
        "completes it.", (0, 100_000), rivals=("purgatory", "kafka"), quick_sizes=(0, 10_000)),
    Row("watch_made", "purgatory: the same, without making it",
        "The same, but the operations were made beforehand, as a server has its request at hand. What remains is our "
        "part and the three calls of `try_complete`. (To make an instance of a Python class that calls its base's "
        "`__init__` is the interpreter's own work, and a third of the row before. In Java it costs next to nothing.)",
        (0, 100_000), rivals=("purgatory", "kafka"), quick_sizes=(0, 10_000)),
    Row("watch_keys", "purgatory: per key, an operation on many keys",
        "The same for an operation on n keys. The figure is the cost per key.", (10, 100, 1_000),
        size_of="keys", unit="ns", scale=1, rivals=("purgatory", "kafka"), quick_sizes=(1_000,)),
    Row("watch_hot", "purgatory: per operation, many on one key",
        "n operations wait on one key, and one check completes them all. The figure is the cost per operation, watch "
        "and completion.",
        (1_000, 10_000, 100_000), size_of="operations", rivals=("purgatory", "kafka"), quick_sizes=(10_000,)),
    Row("enqueue", "purgatory: saturation",
        "Operations with a time-out of 200 ms, each on one of 1,000 keys, are submitted as fast as possible. All "
        "expire. The figure is operations per second, from the first submission to the last expiry, less the time-out.",
        (100_000,), size_of="operations",
        unit="k/s", scale=1e-3, rivals=("purgatory", "kafka"), higher_is_better=True, quick_sizes=(5_000,)),
    Row("replay", "columns: replay of a trace",
        "A trace of two million operations, about n pending at any time, goes through the wheel on one core. Columns "
        "go in; outcomes and statistics come out; all of it is counted. Each operation starts once and ends once, by "
        "its condition or at its deadline. Beside it stands the usual loop over a heap of events, which gives outcomes "
        "only.",
        (1_000, 20_000, 100_000, 1_000_000), unit="M/s", scale=1e-6, rivals=("columns", "heap-loop"),
        higher_is_better=True),
    Row("bulk_add", "columns: start", "`BulkWheel.add_many` of 100,000 deadlines beside n pending "
        "timers. The figure is the cost per timer.", PENDING, unit="ns", scale=1, rivals=("columns",)),
    Row("bulk_remove", "columns: stop", "`BulkWheel.remove_many` of 100,000 handles picked at random "
        "among n. The figure is the cost per timer.", MANY, unit="ns", scale=1, rivals=("columns",)),
    Row("bulk_expire", "columns: expiry", "`BulkWheel.advance_into` of n timers, cascades included. The figure is the "
        "cost per timer.",
        MANY, size_of="timers", unit="ns", scale=1, rivals=("columns",)),
)  # fmt: skip

ROWS = {row.name: row for row in _ROWS}
