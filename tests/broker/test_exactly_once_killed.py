"""confluent-kafka copies exactly once while it is killed, stopped and fenced, and coordinators move."""

from __future__ import annotations

import pytest

from broker.copying import STEPS, confluent, fence_a_zombie, run


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_input_is_in_the_output_once(protocol: str) -> None:
    run(confluent, protocol, STEPS, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_zombie_is_fenced(protocol: str) -> None:
    fence_a_zombie(confluent, protocol)
