"""Reported bugs of unmodified aiokafka: seeds find them again in the version that has them."""

from __future__ import annotations

from importlib.metadata import version

import pytest

pytest.importorskip("aiokafka")

from broker.simulation.shrunk import shrunk
from examples.simulation.known_bugs import BUGS, options_of

HERE = [name for name, bug in BUGS.items() if bug.versions == version("aiokafka")]
RARE = {name for name in HERE if len(BUGS[name].faults) > 1 or BUGS[name].faults == ("leader moves",)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in RARE)) for name in HERE])
def test_a_known_bug_is_found_again_and_shrunk(name: str) -> None:
    bug = BUGS[name]
    _, best = shrunk(bug.story, options_of(bug), len(bug.faults))
    assert len(best.faults) == len(bug.faults)
