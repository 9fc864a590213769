"""Java's producer and consumer copy exactly once while they are killed, stopped and fenced, and coordinators move."""

from __future__ import annotations

import random

from broker.copying import STEPS, fence_a_zombie, run
from clients.java import Programs


def test_every_input_is_in_the_output_once(programs: Programs) -> None:
    steps = list(STEPS) * 2
    random.Random(15).shuffle(steps)
    said = run(lambda *arguments: programs.command("Copier", *arguments), steps, seed=15)
    print(f"\n{dict(said)}")
    assert not said["stuck"]


def test_a_zombie_is_fenced(programs: Programs) -> None:
    fence_a_zombie(lambda *arguments: programs.command("Copier", *arguments))
