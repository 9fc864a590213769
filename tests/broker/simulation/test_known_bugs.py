"""Reported bugs of unmodified aiokafka: seeds find them again in the version that has them."""

from __future__ import annotations

from importlib.metadata import version

import pytest

pytest.importorskip("aiokafka")

from broker.simulation.shrunk import shrunk
from examples.simulation.known_bugs import BUGS, options_of

HERE = [name for name, bug in BUGS.items() if bug.versions == version("aiokafka")]


@pytest.mark.slow
@pytest.mark.parametrize("name", HERE)
def test_a_known_bug_is_found_again_and_shrunk(name: str) -> None:
    bug = BUGS[name]
    _, best = shrunk(bug.story, options_of(bug), len(bug.faults))
    assert len(best.faults) == len(bug.faults)
