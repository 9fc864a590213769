"""The design's targets, and whether a run reached them."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from lab.benchmarks import wording
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.results import Results

# (the figure in words, whether it reaches the target); None where the run did not measure it
Judge = Callable[[Results], tuple[str, bool] | None]

# The interpreter passes from one thread to another every 5 ms. Twice that is the longest that a caller may stand
# still beside a timer that keeps to its budget.
LONGEST_STALL_MS = 10.0
JUMP_US = 20.0  # the design says "microseconds"


@dataclass(frozen=True)
class Target:
    """A target for one row."""

    title: str
    row: str
    size: int  # size at which the peers' figures are shown
    aim: str
    judge: Judge
    line: float | None = None  # the limit, in the row's unit, for the plots
    format_peer: Callable[[Results, str], str] | None = None  # formats a peer's figure if not its median

    def of_peer(self, results: Results, peer: str) -> str:
        """Return the peer's figure as text; a dash if it has none."""
        found = results.find(peer, self.row, self.size)
        if found is None or self.format_peer is None:
            return wording.median(found)
        return self.format_peer(results, peer)


def ceiling(title: str, row: str, sizes: tuple[int, ...], limit: float, rival: str = "system") -> Target:
    """Return a target: the rival's figure is at most the limit at each of these sizes."""
    aim = f"≤ {limit:g} {ROWS[row].unit}"
    return Target(title, row, sizes[-1], aim, at_most(rival, row, sizes, limit), limit)


def floor(title: str, row: str, size: int, limit: float, rival: str) -> Target:
    """Return a target: the rival's figure is at least the limit."""
    aim = f"≥ {limit:g} {ROWS[row].unit}"
    return Target(title, row, size, aim, at_least(rival, row, size, limit), limit)


def at_most(rival: str, row: str, sizes: tuple[int, ...], limit: float) -> Judge:
    """Return a function that judges whether the largest figure over the sizes is at most the limit, in row units."""

    def judge(results: Results) -> tuple[str, bool] | None:
        found = [results.find(rival, row, size) for size in sizes]
        figures = [wording.shown(ROWS[row], one.median) for one in found if one is not None]
        if len(figures) < len(sizes):
            return None
        summary = " · ".join(map(wording.number, figures))
        return f"{summary} {ROWS[row].unit}", max(figures) <= limit

    return judge


def at_least(rival: str, row: str, size: int, limit: float) -> Judge:
    """Return a function that judges whether the figure is at least the limit, in the row's unit."""

    def judge(results: Results) -> tuple[str, bool] | None:
        found = results.find(rival, row, size)
        if found is None:
            return None
        figure = wording.shown(ROWS[row], found.median)
        return f"{wording.number(figure)} {ROWS[row].unit}", figure >= limit

    return judge


def ahead_of(rival: str, peer: str, row: str, sizes: tuple[int, ...]) -> Judge:
    """Return a function that judges whether the rival costs at most as much as the peer at each of the sizes."""

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
    """Return a function that judges whether the cost at size `large` is at most `limit` times that at size `small`."""

    def judge(results: Results) -> tuple[str, bool] | None:
        one, other = results.find(rival, row, large), results.find(rival, row, small)
        if one is None or other is None:
            return None
        ratio = one.median / other.median
        return f"{wording.number(ratio)}x", ratio <= limit

    return judge


def growth(results: Results, rival: str) -> str:
    """Return, as text, the cost of start and stop at 1 M pending timers divided by the cost at none."""
    judged = flat(rival, "pair", 0, _M, 0)(results)
    return wording.NONE if judged is None else judged[0]


def earliest(results: Results, rival: str) -> str:
    """Return, as text, the ms after its deadline at which the earliest timer ran; negative is early."""
    found = results.find(rival, "lateness", _K)
    return wording.NONE if found is None else f"{min(found.extra['late']) / 1e6:+.3f} ms"


def never_early(results: Results) -> tuple[str, bool] | None:
    """Judge whether no timer ran before its deadline."""
    found = results.find("system", "lateness", _K)
    return None if found is None else (earliest(results, "system"), min(found.extra["late"]) >= 0)


def processor_time(results: Results, rival: str) -> float | None:
    """Return the median processor time per request of the enqueue benchmark, in microseconds."""
    found = results.find(rival, "enqueue", _K)
    return None if found is None else statistics.median(found.extra["cpu"]) / 1e3


def less_processor_time(results: Results) -> tuple[str, bool] | None:
    """Judge whether a request of the enqueue benchmark costs less processor time than on the JVM."""
    ours, theirs = processor_time(results, "purgatory"), processor_time(results, "kafka")
    return None if ours is None or theirs is None else (f"{wording.number(ours)} µs", ours < theirs)


def processor_time_in_words(results: Results, rival: str) -> str:
    """Return the processor time per request of the enqueue benchmark as text for the table."""
    spent = processor_time(results, rival)
    return wording.NONE if spent is None else f"{wording.number(spent)} µs"


def no_figure(results: Results, rival: str) -> str:
    """Return a dash, for targets where peers have no figure to compare."""
    del results, rival
    return wording.NONE


_K, _M = 100_000, 1_000_000
_PENDING = (0, _K, _M)

TARGETS = (
    ceiling("start + stop at 0, 100 k and 1 M pending", "pair", _PENDING, 0.09),
    Target("the same, to Kafka on the JVM", "pair", _M, "ahead of it in this run",
           ahead_of("system", "kafka", "pair", _PENDING), format_peer=no_figure),
    Target("the same, flat", "pair", _M, "1 M ≤ 1.3x of 0 pending", flat("system", "pair", 0, _M, 1.3),
           format_peer=growth),
    ceiling("start, 1 M pending", "start", (_M,), 0.12),
    ceiling("start, 1 M pending, handle dropped", "start_forgotten", (_M,), 0.12),
    ceiling("stop in random order, 1 M pending", "stop", (_M,), 0.2),
    ceiling("refresh over 100 k", "refresh", (_K,), 0.06),
    ceiling("expiry, callback included, at 100 k and 1 M", "expiry", (_K, _M), 0.3),
    ceiling("a jump of a year, three timers pending", "jump", (3,), JUMP_US, "manual"),
    ceiling("longest stall of the caller while 1 M expire", "stall_expiry", (_M,), LONGEST_STALL_MS),
    ceiling("memory per pending timer, at 1 M", "memory", (_M,), 64),
    ceiling("memory per pending timer, handle dropped", "memory_forgotten", (_M,), 64),
    Target("never early: 100 k timers on the real clock", "lateness", _K, "earliest ≥ 0", never_early,
           format_peer=earliest),
    ceiling("purgatory: watch on one key + complete", "watch", (0,), 0.5, "purgatory"),
    ceiling("purgatory: the same, made beforehand", "watch_made", (0,), 0.5, "purgatory"),
    ceiling("purgatory: per key, an operation on 1,000 keys", "watch_keys", (1_000,), 50, "purgatory"),
    floor("enqueue benchmark in small", "enqueue", _K, 300, "purgatory"),
    Target("the same, processor time per request", "enqueue", _K, "less than the JVM's", less_processor_time,
           format_peer=processor_time_in_words),
    floor("columnar replay, 100 k pending, on one core", "replay", _K, 10, "columns"),
)  # fmt: skip

LINES = {target.row: target.line for target in TARGETS if target.line is not None}
