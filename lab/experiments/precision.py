"""Measure how late each design is, over delays from a millisecond to days.

The clock is virtual, and the driver wakes exactly when the design asks it to.
"""

from __future__ import annotations

import random
from typing import Final

from abeyant.pages.figure import Figure
from lab.claim import VARGHESE, Claim, Finding
from lab.experiment import Experiment, Measure, Parameters
from lab.panels import (
    TEN_DAYS,
    Panel,
    durations_axis,
    figure_of,
    line_a_design,
    percent,
)
from lab.rivals import DESIGNS
from lab.run import Run

_MS = 1_000  # the unit is a microsecond
_DAY = 86_400_000 * _MS
_TASKS = 200
_POINTS = 4  # a decade

# As each is used: ticks of a millisecond, Netty's of a hundred.
SHAPES: dict[str, dict[str, int]] = {
    "wheel": {"tick": _MS, "wheel_size": 64},
    "hashed-wheel": {"tick": 100 * _MS, "size": 512},
    "kernel-wheel": {"tick": _MS, "levels": 9},
    "ring": {"tick": _MS, "size": 1 << 20},
}


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """Return the grid: every design over delays as far as it reaches, up to ten days.

    Some delays are just past each level of the kernel's wheel.
    """
    steps = range(0, 9 * _POINTS + 1, 4 if quick else 1)
    delays = sorted({round(_MS * 10 ** (step / _POINTS)) for step in steps} | {63 * _MS * 8**n for n in range(8)})
    return [
        (design, {"delay_us": delay})
        for design in DESIGNS
        for delay in delays
        if delay <= min(DESIGNS[design].precision(**SHAPES.get(design, {})).reach, 10 * _DAY)
    ]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Start tasks with the same delay at odd moments; measure how late they come out, at most and on average."""
    delay = int(parameters["delay_us"])
    chance = random.Random(delay)
    now = 1_000_000_007
    queue = DESIGNS[design].make(**SHAPES.get(design, {}), start=now)
    late: list[int] = []
    for _ in range(_TASKS):
        now += chance.randrange(1, 3 * _MS)
        while (upcoming := queue.next_expiration()) is not None and upcoming < now:
            late += [upcoming - deadline for deadline in queue.advance(upcoming)]
        late += [now - deadline for deadline in queue.advance(now)]  # its clock is up to date, as a driver's is
        queue.add(now + delay, now + delay)
    # Nothing is due for a long while: go near it in one step, or those who poll would poll for days.
    near = max(now, now + delay - 3_000 * _MS)
    late += [near - deadline for deadline in queue.advance(near)]
    wakeups = 0
    while (upcoming := queue.next_expiration()) is not None:
        late += [upcoming - deadline for deadline in queue.advance(upcoming)]
        wakeups += 1
    promised = DESIGNS[design].precision(**SHAPES.get(design, {})).at_most(delay)
    return [
        Measure("latest", max(late), "us"),
        Measure("mean lateness", sum(late) / len(late), "us"),
        Measure("early", sum(lateness < 0 for lateness in late), "tasks"),
        Measure("promised", promised, "us"),
        Measure("of the delay", max(late) / delay, "share"),
    ]


def _exact(run: Run) -> Finding:
    wheel = run.of("wheel")
    hashed = run.of("hashed-wheel")
    longest = int(wheel["delay_us"].max()) / 86_400e6
    early = int(run.cells["early"].sum())
    said = (
        f"up to {longest:.1f} days ahead, the wheel is {wheel['latest'].max() / 1_000:.2f} ms late at most, with a"
        f" tick of 1 ms. The hashed wheel is {hashed['latest'].max() / 1_000:.0f} ms late, with a tick of 100 ms."
        f" {early} tasks of all designs are early"
    )
    held = wheel["latest"].max() < 1_000 and hashed["latest"].max() > 90_000 and not early
    return Finding("held" if held else "not held here", said)


def _eighth(run: Run) -> Finding:
    rows = run.of("kernel-wheel")
    rows = rows[rows["delay_us"] >= 63_000]
    worst = rows.loc[rows["of the delay"].idxmax()]
    share = float(worst["of the delay"])
    said = f"{share:.2%} at {worst['delay_us'] / 1_000:,.0f} ms"
    if share <= 0.125:
        return Finding("held", said)
    return Finding(
        "held in part" if share <= 8 / 63 + 1e-6 else "not held here",
        f"{said}: a level begins at 63 granules of the one below, not at 64, so that its bound is 8/63 = 12.7 %",
    )


CLAIMS: Final[list[Claim]] = [
    Claim(
        "A hashed wheel is approximate; a hierarchical one keeps its tick at any delay.",
        f"Netty; {VARGHESE}; law T2",
        _exact,
        "Held if the wheel is less than 1 ms late, the hashed wheel more than 90 ms, and no task is early.",
    ),
    Claim(
        "A wheel that does not cascade is late by 12.5 % of the delay at most.",
        "Linux kernel/time/timer.c, its introductory comment",
        _eighth,
        "Held up to 12.5 % of the delay; in part up to 8/63 of it.",
    ),
]


def figure(run: Run) -> Figure:
    """Plot the greatest lateness, in ms and as a share of the delay, against the delay."""
    shares = [10.0**power for power in range(-8, 3, 2)]
    panels = [
        Panel(
            "how late at most",
            "delay",
            "late",
            "ms late",
            {**durations_axis(0.5, 2 * TEN_DAYS), "title": {"text": "late"}},
        ),
        Panel(
            "how late at most, as a share of the delay",
            "delay",
            "share",
            "of the delay",
            {
                "type": "log",
                "tickvals": shares,
                "ticktext": [percent(share) for share in shares],
            },
        ),
    ]
    cells = run.cells.assign(
        delay=run.cells["delay_us"] / 1e3, late=run.cells["latest"] / 1e3, share=run.cells["of the delay"]
    )
    exact = {"delay-queue", "indexed-heap", "lazy-heap", "sorted-list", "unsorted-list"}
    drawn = Run(run.experiment, run.date, run.machine, run.version, cells[~cells["design"].isin(exact)])
    return figure_of(panels, line_a_design(drawn), "delay", rows=1, across=durations_axis(0.7, 1.4 * TEN_DAYS))


READING: Final = (
    "Tasks started at odd moments, on a virtual clock, by a driver that wakes exactly when the design asks it to. "
    "Heaps and lists are exact and not drawn. A level line on the left is a fixed error, one that climbs a share "
    "of the delay."
)

EXPERIMENT = Experiment(
    "precision", "How late each design is", "virtual", grid, measure, claims=CLAIMS, figure=figure, reading=READING
)
