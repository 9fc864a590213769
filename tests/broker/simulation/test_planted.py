"""Planted mistakes of programs: each is found within so many seeds, and its mended version raises no alarm."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aiokafka")

from broker.simulation.shrunk import shrunk
from examples.simulation.mistakes import MISTAKES, options_of
from seeds import with_slow

CHECKOUT = Path(__file__).parents[3]
# Those that take many seeds, or long ones: docs/simulation-checks.md has both figures. And those like quick ones.
SLOW = {
    *("marked as sent when only buffered", "marked as sent after an error", "to the end when partitions are assigned"),
    *("a failed order is given up", "an outbox is sent twice, and booked twice", "begun again without a seek"),
    "two instances with one transactional id",
    *("sent again without idempotence", "a topic with one replica", "committed before the work", "committed by time"),
    *("several at once, committed as they end", "a dead letter is not awaited", "no transaction from topic to topic"),
    *("offsets beside the transaction", "reads what is not committed"),
    "commits in a rebalance what it has only gathered",
    *("a new group begins at the end", "committed one too few"),
}


@pytest.mark.parametrize("name", with_slow(MISTAKES, SLOW))
def test_a_planted_mistake_is_found_and_shrunk(name: str) -> None:
    mistake = MISTAKES[name]
    _, best = shrunk(mistake.mistaken, options_of(mistake))
    assert len(best.faults) <= 1


@pytest.mark.slow  # it searches once more
def test_a_failed_run_leaves_no_client_to_be_collected_later(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[str] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: left.append(repr(unraisable.exc_value)))
    mistake = MISTAKES["marked as sent after an error"]
    _, best = shrunk(mistake.mistaken, options_of(mistake))
    del best
    gc.collect()
    assert left == []


@pytest.mark.slow
def test_the_mended_versions_raise_no_alarm() -> None:
    """In a child with fixed hashes, so that the seeds are the same runs each time."""
    command = [sys.executable, "-m", "examples.simulation.mistakes_table", "8", "--mended"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


@pytest.mark.slow
def test_two_hundred_seeds_of_the_example_are_the_same_in_processes_of_their_own() -> None:
    """S1"""
    command = [sys.executable, "-m", "examples.simulation.twice", "200"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "200 seeds run twice, 0 differ" in done.stdout
