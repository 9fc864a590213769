"""Compare four designs that detect idle connections, where each packet restarts its connection's time-out.

The clock is virtual and the work is timed: the cost of a packet, and of finding idle connections.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final, Protocol

from abeyant.engine import TimingWheel
from abeyant.pages.figure import Figure
from lab.claim import Claim, Finding, Verdict
from lab.experiment import Experiment, Measure, Parameters
from lab.look import colour, title
from lab.panels import (
    Panel,
    figure_of,
    hover_words,
    in_order,
)
from lab.run import Run

_TIMEOUT: Final = 30_000  # ticks of a millisecond
_SECOND: Final = 1_000
_STEP: Final = 10


class Watch(Protocol):
    """Detector of connections that sent nothing for 30 seconds."""

    def seen(self, connection: int, now: int) -> None:
        """Restart the time-out of a connection that sent a packet."""

    def turn(self, now: int) -> list[int]:
        """Advance to `now`. Return the connections that became idle, and forget them."""


class ScanAll:
    """Detector that records each connection's last packet, and scans all connections once a second."""

    def __init__(self) -> None:
        self._last: dict[int, int] = {}
        self._next = _SECOND

    def seen(self, connection: int, now: int) -> None:
        """O(1)."""
        self._last[connection] = now

    def turn(self, now: int) -> list[int]:
        """O(connections), once a second."""
        if now < self._next:
            return []
        self._next += _SECOND
        oldest = now - _TIMEOUT
        silent = [connection for connection, last in self._last.items() if last <= oldest]
        for connection in silent:
            del self._last[connection]
        return silent


class RingOfSets:
    """Detector with a ring of sets, one per second of the time-out and one more.

    A packet moves its connection to the current set.
    """

    def __init__(self) -> None:
        self._sets: list[set[int]] = [set() for _ in range(_TIMEOUT // _SECOND + 1)]
        self._where: dict[int, int] = {}
        self._hand = 0
        self._next = _SECOND

    def seen(self, connection: int, now: int) -> None:
        """Move the connection to the current set. O(1)."""
        was = self._where.get(connection)
        if was != self._hand:
            if was is not None:
                self._sets[was].discard(connection)
            self._sets[self._hand].add(connection)
            self._where[connection] = self._hand

    def turn(self, now: int) -> list[int]:
        """Return the set that becomes current: its connections had no packet for a whole round of the ring.

        O(idle connections), once a second.
        """
        if now < self._next:
            return []
        self._next += _SECOND
        self._hand = (self._hand + 1) % len(self._sets)
        silent = list(self._sets[self._hand])
        self._sets[self._hand].clear()
        for connection in silent:
            del self._where[connection]
        return silent


class AddAgain:
    """Detector with a task on the wheel per connection; a packet removes the task and adds a new task."""

    def __init__(self) -> None:
        self._wheel = TimingWheel(1, 64)
        self._tasks: dict[int, int] = {}

    def seen(self, connection: int, now: int) -> None:
        """O(1)."""
        handle = self._tasks.get(connection)
        if handle is not None:
            self._wheel.remove(handle)
        self._tasks[connection] = self._wheel.add(now + _TIMEOUT, connection)

    def turn(self, now: int) -> list[int]:
        """O(idle connections)."""
        silent: list[int] = self._wheel.advance(now)  # type: ignore[assignment]
        for connection in silent:
            del self._tasks[connection]
        return silent


class Refresh(AddAgain):
    """Detector with a task on the wheel per connection; a packet refreshes the task.

    A refresh stores the new deadline; the task moves to its new bucket only when the old bucket is due.
    """

    def seen(self, connection: int, now: int) -> None:
        """O(1)."""
        handle = self._tasks.get(connection)
        if handle is None:
            self._tasks[connection] = self._wheel.add(now + _TIMEOUT, connection)
        else:
            self._wheel.refresh(handle, now + _TIMEOUT)


DETECTORS: Final[dict[str, Callable[[], Watch]]] = {
    "scan-all": ScanAll,
    "ring-of-sets": RingOfSets,
    "add-again": AddAgain,
    "refresh": Refresh,
}


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """Return the grid: 100,000 connections with a time-out of 30 s, at several packet rates."""
    rates = [20_000] if quick else [2_000, 20_000, 100_000]
    seconds = 40 if quick else 60
    return [
        (name, {"connections": 100_000, "packets_s": rate, "seconds": seconds}) for rate in rates for name in DETECTORS
    ]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Measure packets from random connections; one connection in ten becomes idle during the run."""
    connections, rate = int(parameters["connections"]), int(parameters["packets_s"])
    chance = random.Random(1)
    watch = DETECTORS[design]()
    last = [0] * connections
    for connection in range(connections):
        watch.seen(connection, 0)
    packets = turns = longest = count = 0
    late: list[int] = []
    talking = connections
    for now in range(_STEP, int(parameters["seconds"]) * _SECOND + 1, _STEP):
        packets_now = [int(chance.random() * talking) for _ in range(rate * _STEP // _SECOND)]
        seen = watch.seen
        began = time.perf_counter_ns()
        for connection in packets_now:
            seen(connection, now)
        between = time.perf_counter_ns()
        silent = watch.turn(now)
        spent = time.perf_counter_ns() - between
        packets += between - began
        turns += spent
        longest = max(longest, spent)
        count += len(packets_now)
        for connection in packets_now:
            last[connection] = now
        late += [now - last[connection] - _TIMEOUT for connection in silent]
        talking = connections - connections // 10 * now // (int(parameters["seconds"]) * _SECOND)
    seconds = int(parameters["seconds"])
    return [
        Measure("a packet", packets / count, "ns"),
        Measure("turns", turns / seconds / 1e6, "ms a second"),
        Measure("longest turn", longest / 1e6, "ms"),
        Measure("CPU", (packets + turns) / seconds / 1e6, "ms a second"),
        Measure("found silent", len(late), "connections"),
        Measure("mean lateness", sum(late) / max(len(late), 1), "ms"),
        Measure("latest", max(late, default=0), "ms"),
        Measure("early", sum(lateness < 0 for lateness in late), "connections"),
    ]


def _cheapest(run: Run) -> Finding:
    rate = run.choices("packets_s")[-1]
    cost = run.of(packets_s=rate).set_index("design")
    packet, pause = cost["a packet"], cost["longest turn"]
    summary = f"at {rate:,} packets/s a packet costs " + ", ".join(
        f"{packet[name]:,.0f} ns ({title(name)})" for name in ("refresh", "add-again", "ring-of-sets", "scan-all")
    )
    summary += f"; the longest turn is {pause['scan-all']:.1f} ms to scan all, {pause['refresh']:.1f} ms with refresh"
    beats = packet["refresh"] < packet["add-again"] and packet["refresh"] < packet["ring-of-sets"]
    verdict: Verdict = "held" if beats else "not held here"
    return Finding(verdict, summary)


def _precise(run: Run) -> Finding:
    latest = run.cells.groupby("design")["latest"].max()
    summary = ", ".join(f"{title(name)} {latest[name]:,.0f} ms" for name in latest.index)
    held = latest["refresh"] <= 10 and latest["ring-of-sets"] > 500 and latest["scan-all"] > 500
    return Finding("held" if held else "not held here", f"latest detection: {summary} (the clock steps by 10 ms)")


CLAIMS: Final[list[Claim]] = [
    Claim(
        "Refreshing in place costs least among the designs that do not scan.",
        "Linux mod_timer; Netty's IdleStateHandler; law T4",
        _cheapest,
        "Held if at the highest rate a packet costs less to refresh than to remove and add again, and "
        "than in the ring.",
    ),
    Claim(
        "The wheel detects idle connections to the tick; scan and ring to the second.",
        "law T2",
        _precise,
        "Held if refresh detects within 10 ms, and scan and ring after more than 500 ms.",
    ),
]


def figure(run: Run) -> Figure:
    """Plot each design's CPU per second (packets and turns) and its longest turn, by packet rate."""
    panels = [
        Panel("CPU, ms a second", "packets_s", "CPU", "ms a second", {}),
        Panel("longest turn, ms", "packets_s", "longest turn", "ms", {}),
    ]

    def draw(plot: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for design in in_order(run):
            cells = run.of(design).sort_values("packets_s")
            plot.add_bar(
                x=[f"{rate:,}" for rate in cells["packets_s"]], y=cells[panel.y], name=title(design),
                legendgroup=design, showlegend=first, marker={"color": colour(design)},
                hovertemplate=hover_words(title(design), panel.unit, "%{x} packets/s"), **axes,
            )  # fmt: skip

    plot = figure_of(panels, draw, "packets a second", rows=1, across={"type": "category"})
    plot.update_layout(barmode="group", bargap=0.25)
    return plot


READING: Final = (
    "100,000 connections, each with a time-out of 30 s that every packet restarts. CPU is that of packets and "
    "turns together. The longest turn is the longest time that everything else had to wait."
)

EXPERIMENT = Experiment(
    "idle", "Idle connections", "real", grid, measure, claims=CLAIMS, figure=figure, reading=READING
)
