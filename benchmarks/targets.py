"""The targets of the design (its section 5), and whether a run reached them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks import wording
from benchmarks.results import Results
from benchmarks.rows import ROWS

# (the figure in words, whether it reaches the target); None where the run did not measure it
Judge = Callable[[Results], tuple[str, bool] | None]

# The interpreter passes from one thread to another every 5 ms. Twice that is the longest that a caller may stand
# still beside a timer that keeps to its budget.
LONGEST_STALL_MS = 10.0
JUMP_US = 20.0  # the design says "microseconds"


@dataclass(frozen=True)
class Target:
    """What is to be reached."""

    what: str
    row: str
    size: int  # at which the peers' figures are shown
    aim: str
    judge: Judge
    line: float | None = None  # the limit, in the row's unit, for the plots


def ceiling(what: str, row: str, sizes: tuple[int, ...], limit: float, rival: str = "system") -> Target:
    """The rival's figure is at most the limit at each of these sizes."""
    aim = f"≤ {limit:g} {ROWS[row].unit}"
    return Target(what, row, sizes[-1], aim, at_most(rival, row, sizes, limit), limit)


def floor(what: str, row: str, size: int, limit: float, rival: str) -> Target:
    """The rival's figure is at least the limit."""
    aim = f"≥ {limit:g} {ROWS[row].unit}"
    return Target(what, row, size, aim, at_least(rival, row, size, limit), limit)


def at_most(rival: str, row: str, sizes: tuple[int, ...], limit: float) -> Judge:
    """The worst of the sizes is at most this, in the row's unit."""

    def judge(results: Results) -> tuple[str, bool] | None:
        found = [results.find(rival, row, size) for size in sizes]
        figures = [wording.shown(ROWS[row], one.median) for one in found if one is not None]
        if len(figures) < len(sizes):
            return None
        said = " · ".join(map(wording.number, figures))
        return f"{said} {ROWS[row].unit}", max(figures) <= limit

    return judge


def at_least(rival: str, row: str, size: int, limit: float) -> Judge:
    """The figure is at least this, in the row's unit."""

    def judge(results: Results) -> tuple[str, bool] | None:
        found = results.find(rival, row, size)
        if found is None:
            return None
        figure = wording.shown(ROWS[row], found.median)
        return f"{wording.number(figure)} {ROWS[row].unit}", figure >= limit

    return judge


def ahead_of(rival: str, peer: str, row: str, sizes: tuple[int, ...]) -> Judge:
    """The rival costs no more than the peer at any of the sizes, in this run."""

    def judge(results: Results) -> tuple[str, bool] | None:
        ratios = []
        for size in sizes:
            one, other = results.find(rival, row, size), results.find(peer, row, size)
            if one is None or other is None:
                return None
            ratios.append(one.median / other.median)
        return " · ".join(f"{wording.number(ratio)}x" for ratio in ratios), max(ratios) <= 1

    return judge


def flat(rival: str, row: str, small: int, large: int, limit: float) -> Judge:
    """The cost at the large size is at most so many times that at the small one."""

    def judge(results: Results) -> tuple[str, bool] | None:
        one, other = results.find(rival, row, large), results.find(rival, row, small)
        if one is None or other is None:
            return None
        ratio = one.median / other.median
        return f"{wording.number(ratio)}x", ratio <= limit

    return judge


def never_early(results: Results) -> tuple[str, bool] | None:
    """No timer ran before its deadline."""
    size = ROWS["lateness"].sizes[0]
    found = results.find("system", "lateness", size)
    if found is None:
        return None
    earliest = min(found.extra["late"]) / 1e6
    return f"earliest {earliest:+.3f} ms", earliest >= 0


def less_processor_time(results: Results) -> tuple[str, bool] | None:
    """A request of the enqueue benchmark costs less processor time than on the JVM."""
    size = ROWS["enqueue"].sizes[0]
    ours, theirs = results.find("purgatory", "enqueue", size), results.find("kafka", "enqueue", size)
    if ours is None or theirs is None:
        return None
    one, other = (sorted(found.extra["cpu"])[len(found.extra["cpu"]) // 2] / 1e3 for found in (ours, theirs))
    return f"{wording.number(one)} µs against {wording.number(other)} µs", one < other


_K, _M = 100_000, 1_000_000
_PENDING = (0, _K, _M)

TARGETS = (
    ceiling("start + stop at 0, 100 k and 1 M pending", "pair", _PENDING, 0.09),
    Target("the same, to Kafka on the JVM", "pair", _M, "ahead of it in this run",
           ahead_of("system", "kafka", "pair", _PENDING)),
    Target("the same, flat", "pair", _M, "1 M ≤ 1.3x of 0 pending", flat("system", "pair", 0, _M, 1.3)),
    ceiling("start, 1 M pending", "start", (_M,), 0.12),
    ceiling("start, 1 M pending, handle dropped", "start_forgotten", (_M,), 0.12),
    ceiling("stop in random order, 1 M pending", "stop", (_M,), 0.2),
    ceiling("refresh over 100 k", "refresh", (_K,), 0.06),
    ceiling("expiry, callback included, at 100 k and 1 M", "expiry", (_K, _M), 0.3),
    ceiling("a jump of a year, three timers pending", "jump", (3,), JUMP_US, "manual"),
    ceiling("longest stall of the caller while 1 M expire", "stall_expiry", (_M,), LONGEST_STALL_MS),
    ceiling("memory a pending timer, at 1 M", "memory", (_M,), 64),
    ceiling("memory a pending timer, handle dropped", "memory_forgotten", (_M,), 64),
    Target("never early: 100 k timers on the real clock", "lateness", _K, "earliest ≥ 0", never_early),
    ceiling("purgatory: watch on one key + complete", "watch", (0,), 0.5, "purgatory"),
    ceiling("purgatory: a key of an operation on 1,000", "watch_keys", (1_000,), 50, "purgatory"),
    floor("enqueue benchmark in small", "enqueue", _K, 300, "purgatory"),
    Target("the same, processor time a request", "enqueue", _K, "less than the JVM's", less_processor_time),
    floor("columnar replay, 100 k pending, on one core", "replay", _K, 10, "columns"),
)  # fmt: skip

LINES = {target.row: target.line for target in TARGETS if target.line is not None}
