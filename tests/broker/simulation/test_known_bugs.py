"""Reported bugs of unmodified aiokafka: seeds find them again in the version that has them."""

from __future__ import annotations

from importlib.metadata import version

import pytest

from abeyant.broker.simulation import search, shrink

pytest.importorskip("aiokafka")

from examples.simulation.known_bugs import BUGS, options_of

HERE = [name for name, bug in BUGS.items() if bug.versions == version("aiokafka")]
RARE = {name for name in HERE if len(BUGS[name].faults) > 1 or BUGS[name].faults == ("leader moves",)}


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in RARE)) for name in HERE])
def test_a_known_bug_is_found_again_and_shrunk(name: str) -> None:
    bug = BUGS[name]
    found = search(bug.story, range(2000), options_of(bug), lambda _: True, any_hashes=True)
    assert found is not None, "2,000 seeds did not find it"
    assert found.failure is not None
    _, best = shrink(bug.story, found, options_of(bug), any_hashes=True)
    assert best.failure is not None
    assert len(best.faults) == len(bug.faults)
