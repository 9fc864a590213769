"""How late is each design, over delays from a millisecond to days? On a virtual clock, woken exactly when it asks."""

from __future__ import annotations

import random

from lab.experiment import Experiment, Measure, Parameters
from lab.rivals import DESIGNS

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
    """Every design over delays as far as it reaches, up to ten days; and just past each level of the kernel's."""
    steps = range(0, 9 * _POINTS + 1, 4 if quick else 1)
    delays = sorted({round(_MS * 10 ** (step / _POINTS)) for step in steps} | {63 * _MS * 8**n for n in range(8)})
    return [
        (design, {"delay_us": delay})
        for design in DESIGNS
        for delay in delays
        if delay <= min(DESIGNS[design].precision(**SHAPES.get(design, {})).reach, 10 * _DAY)
    ]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Start tasks at odd moments with the same delay; how late they come out, at most and on the average."""
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


EXPERIMENT = Experiment("precision", "How late each design is", "virtual", grid, measure)
