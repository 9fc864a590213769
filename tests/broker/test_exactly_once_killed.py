"""confluent-kafka copies exactly once while it is killed, stopped and fenced, and coordinators move."""

from __future__ import annotations

import pytest

from broker.copying import STEPS, confluent, fence_a_zombie, run


@pytest.mark.slow
def test_every_input_is_in_the_output_once() -> None:
    run(confluent, STEPS, seed=1)


@pytest.mark.slow
def test_a_zombie_is_fenced() -> None:
    fence_a_zombie(confluent)
