"""Java's producer and consumer copy exactly once while they are killed, stopped and fenced, and coordinators move."""

from __future__ import annotations

import random

import pytest

from broker.copying import STEPS, fence_a_zombie, run
from clients.java import Programs


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_input_is_in_the_output_once(programs: Programs, protocol: str) -> None:
    steps = list(STEPS) * 2
    random.Random(15).shuffle(steps)
    said = run(lambda *arguments: programs.command("Copier", *arguments), protocol, steps, seed=15)
    print(f"\n{dict(said)}")
    assert not said["stuck"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_zombie_is_fenced(programs: Programs, protocol: str) -> None:
    fence_a_zombie(lambda *arguments: programs.command("Copier", *arguments), protocol)
