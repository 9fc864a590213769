"""The end-to-end story of examples/produce_acks_all.py: a produce with acks=all, and its other end."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from abeyant.timer import ManualTimer

EXAMPLE = Path(__file__).parents[2] / "examples" / "produce_acks_all.py"


@pytest.fixture(scope="module")
def story() -> Any:
    spec = importlib.util.spec_from_file_location("produce_acks_all", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def timer() -> ManualTimer:
    return ManualTimer()


@pytest.fixture
def cluster(story: Any, timer: ManualTimer) -> Any:
    """A leader of two partitions with two followers each."""
    names = [story.TopicPartition("t", 0), story.TopicPartition("t", 1)]
    return story.Leader({name: story.Partition(("f1", "f2")) for name in names}, timer)


def counts(leader: Any, timer: ManualTimer) -> tuple[int, int, int]:
    return leader.purgatory.watched, leader.purgatory.delayed, len(timer)


def test_it_is_answered_when_both_high_watermarks_have_passed_p2_p3_p4(cluster: Any, timer: ManualTimer) -> None:
    answers: list[list[str]] = []
    first, second = cluster.partitions
    assert not cluster.produce({first: ["a", "b"], second: ["c"]}, answers.append)
    assert counts(cluster, timer) == (2, 1, 1)
    timer.advance(1)
    assert cluster.fetch(first, "f1", 0) == ["a", "b"]
    cluster.fetch(first, "f1", 2)
    assert cluster.partitions[first].high_watermark == 0  # f2 is in sync and has nothing yet
    cluster.fetch(first, "f2", 2)
    assert cluster.partitions[first].high_watermark == 2
    assert answers == []
    cluster.fetch(second, "f1", 1)
    cluster.fetch(second, "f2", 1)
    assert answers == [["NONE", "NONE"]]
    assert counts(cluster, timer) == (0, 0, 0)
    timer.advance(1000)
    assert len(answers) == 1
    assert cluster.purgatory.stats().completed == 1


def test_with_no_follower_it_is_timed_out_at_the_deadline_and_not_before(cluster: Any, timer: ManualTimer) -> None:
    answers: list[list[str]] = []
    first, second = cluster.partitions
    cluster.produce({first: ["a"], second: ["b"]}, answers.append)
    timer.advance(29.999)
    assert answers == []
    timer.advance(0.001)
    assert answers == [["REQUEST_TIMED_OUT", "REQUEST_TIMED_OUT"]]
    assert counts(cluster, timer) == (0, 0, 0)
    for follower in ("f1", "f2"):
        cluster.fetch(first, follower, 1)
    assert len(answers) == 1
    assert cluster.purgatory.stats().expired == 1


def test_a_partition_that_made_it_is_told_from_one_that_did_not(cluster: Any, timer: ManualTimer) -> None:
    answers: list[list[str]] = []
    first, second = cluster.partitions
    cluster.produce({first: ["a"], second: ["b"]}, answers.append)
    for follower in ("f1", "f2"):
        cluster.fetch(first, follower, 1)
    timer.advance(30)
    assert answers == [["NONE", "REQUEST_TIMED_OUT"]]


def test_the_followers_may_be_there_first(story: Any, timer: ManualTimer) -> None:
    """A partition without followers has nothing to wait for: complete at the first try, never watched."""

    class Alone(story.Partition):  # type: ignore[misc]
        def append(self, records: list[str]) -> int:
            offset: int = super().append(records)
            self.high_watermark = offset
            return offset

    name = story.TopicPartition("t", 0)
    leader = story.Leader({name: Alone(())}, timer)
    answers: list[list[str]] = []
    assert leader.produce({name: ["a"]}, answers.append)
    assert answers == [["NONE"]]
    assert timer.stats().started == 0


def test_the_example_runs_and_tells_both_ends() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    told = done.stdout.splitlines()
    answers = [line for line in told if "answered" in line]
    assert answers == [
        "  0.6 s          the client is answered: NONE, NONE",
        " 40.0 s          the client is answered: REQUEST_TIMED_OUT, REQUEST_TIMED_OUT",
    ]
    assert told[-1] == " 40.0 s          0 watched, 0 timers"
