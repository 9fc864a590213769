"""What is claimed of the cost of starting, stopping and expiring a timer."""

from __future__ import annotations

from typing import Final

from lab.report.claims.claim import MATSUDA, VARGHESE, Claim, Finding
from lab.report.run import Run

__all__ = ["CLAIMS"]

_FLAT: Final = 1.5  # a cost that grows by less over the whole range counts as constant: caches account for that much


def _growth(run: Run, design: str, metric: str, *, calls: bool = True) -> float:
    """How many times as much it costs with the most pending as with the least, the call from Python apart.

    The call is the same whatever is called: the least that any cell measured, for each is one measure on a machine
    that is now and then slower.
    """
    rows = run.of(design).sort_values("pending").dropna(subset=[metric])
    call = float(run.cells["the call alone"].min()) if calls else 0.0
    alone = (rows[metric] - call).clip(lower=1)
    return float(alone.iloc[-1] / alone.iloc[0])


def _insert(run: Run) -> Finding:
    wheel = max(_growth(run, "wheel", f"insert {order}") for order in ("random", "earliest", "latest"))
    heap = {order: _growth(run, "indexed-heap", f"insert {order}") for order in ("earliest", "random", "latest")}
    most = int(run.of("wheel")["pending"].max())
    said = (
        f"from 1,000 to {most:,} pending the wheel's insert grows {wheel:.1f}-fold at most ({_FLAT} is flat). The"
        f" heap's grows {heap['earliest']:.1f}-fold where each deadline is the earliest so far,"
        f" {heap['random']:.1f}-fold at random, and {heap['latest']:.1f}-fold where each is the latest, as with one"
        " time-out for all"
    )
    if wheel > _FLAT and wheel > heap["random"]:
        return Finding("not held here", said)
    if heap["earliest"] <= _FLAT:
        return Finding("not held here", said)
    return Finding("held" if min(heap.values()) > _FLAT and wheel <= _FLAT else "held in part", said)


def _delete(run: Run) -> Finding:
    growths = {name: _growth(run, name, "delete random") for name in ("wheel", "indexed-heap", "delay-queue")}
    slowest = float(run.of("delay-queue")["delete random"].max())
    said = (
        f"the wheel's delete grows {growths['wheel']:.1f}-fold, the heap's with places"
        f" {growths['indexed-heap']:.1f}-fold, the delay queue's {growths['delay-queue']:,.0f}-fold, to"
        f" {slowest / 1_000:,.0f} µs"
    )
    parts = [growths["delay-queue"] > 10, growths["indexed-heap"] > _FLAT, growths["wheel"] <= _FLAT]
    if not parts[0]:
        return Finding("not held here", said)
    return Finding("held" if all(parts) else "held in part", f"{said} ({_FLAT} is flat)")


def _expiring(run: Run) -> Finding:
    wheel, heap = (_growth(run, name, "expire", calls=False) for name in ("wheel", "indexed-heap"))
    most = int(run.of("wheel")["pending"].max())
    each, other = (float(run.of(name, pending=most)["expire"].iloc[0]) for name in ("wheel", "indexed-heap"))
    said = (
        f"from 1,000 to {most:,} pending the cost per task that comes due grows {heap:.1f}-fold in the heap and"
        f" {wheel:.1f}-fold on the wheel, cascades included. At {most:,} it is {other:,.0f} ns in the heap and"
        f" {each:,.0f} ns on the wheel"
    )
    if heap <= _FLAT:
        return Finding("not held here", said)
    return Finding("held" if wheel <= _FLAT else "held in part" if wheel < heap else "not held here", said)


def _stall(run: Run) -> Finding:
    if "turn after stops" not in run.cells:
        return Finding("not decided", "the run has not measured it")
    most = int(run.of("lazy-heap").dropna(subset=["turn after stops"])["pending"].max())
    lazy, wheel = (float(run.of(name, pending=most)["turn after stops"].iloc[0]) for name in ("lazy-heap", "wheel"))
    said = f"with six in ten of {most:,} stopped, the next turn takes {lazy:.1f} ms, and {wheel:.3f} ms on the wheel"
    return Finding("held" if lazy > 10 * wheel else "not held here", said)


CLAIMS: Final[list[Claim]] = [
    Claim(
        "Starting a timer is O(log n) in a heap, and O(1) on a timing wheel.",
        f"{VARGHESE}; {MATSUDA}",
        _insert,
        "Held if the wheel's cost grows 1.5-fold at most, and the heap's more in each order. Not held if the "
        "heap's grows no more even where each is the earliest, or if the wheel's grows more than 1.5-fold and "
        "more than the heap's at random.",
    ),
    Claim(
        "Stopping one is O(n) in a delay queue, O(log n) in a heap that knows places, and O(1) on a wheel.",
        f"{VARGHESE}; {MATSUDA}",
        _delete,
        "Held if the cost grows more than 10-fold in the delay queue, more than 1.5-fold in the heap, "
        "and at most 1.5-fold on the wheel. Held in part if it does so in the delay queue only.",
    ),
    Claim(
        "Taking out what is due is O(log n) in a heap, and O(1) on a wheel.",
        VARGHESE,
        _expiring,
        "Held if the heap's cost grows more than 1.5-fold, and the wheel's at most 1.5-fold. Held in part if "
        "the wheel's grows less than the heap's.",
    ),
    Claim(
        "A heap that deletes lazily pays for it in a stall.",
        "CPython's asyncio; law T4",
        _stall,
        "Held if the heap's turn takes more than 10 times the wheel's.",
    ),
]
