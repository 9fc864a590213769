"""How workers share the tests: each file is one worker's, and one of three keeps clear of Spark."""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from types import SimpleNamespace
from typing import Any

import pytest

import sharing as sharing_module
from sharing import WITH_SPARK, Sharing, from_another_place, in_order


class Worker:
    """What the scheduler knows of a worker; it has at once done what it is given."""

    def __init__(self, number: int) -> None:
        self.gateway = SimpleNamespace(id=f"gw{number}")
        self.given: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


TESTS = [
    f"tests/{file}::test_{number}"
    for file in ("pipeline/commands/test_a.py", "pipeline/test_b.py", "test_docs.py", "aio/test_c.py", "idle/test_d.py")
    for number in range(3)
]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_each_test_runs_once_and_a_third_worker_keeps_clear_of_spark(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing_module, "processors", lambda: 2)
    config: Any = SimpleNamespace(
        getvalue=lambda name: ["popen"] * count, option=SimpleNamespace(loadscopereorder=False), hook=None
    )
    sharing: Any = Sharing(config, None)
    workers = [Worker(number) for number in range(count)]
    for worker in workers:
        sharing.add_node(worker)
        sharing.add_node_collection(worker, TESTS)
    sharing.schedule()
    done = [0] * count
    while not sharing.tests_finished or any(done[n] < len(worker.given) for n, worker in enumerate(workers)):
        for n, worker in enumerate(workers):
            if done[n] < len(worker.given):
                sharing.mark_test_complete(worker, worker.given[done[n]])
                done[n] += 1
    assert sorted(test for worker in workers for test in worker.given) == list(range(len(TESTS)))
    files = [{TESTS[test].partition("::")[0] for test in worker.given} for worker in workers]
    assert sum(map(len, files)) == len(set().union(*files))
    for light in files[2:]:
        assert light
        assert light <= {"tests/aio/test_c.py", "tests/idle/test_d.py"}


def test_sparks_longest_files_come_first_then_those_of_many_tests() -> None:
    few, many, spark, command = map(
        PurePath, ("aio/test_few.py", "aio/test_many.py", "pipeline/test_a.py", "pipeline/commands/test_b.py")
    )
    places = in_order([few, *[many] * 9, spark, command])
    assert sorted(places, key=lambda file: places[file]) == [command, spark, many, few]


def test_workers_read_the_same_from_different_places() -> None:
    here = Path(__file__).parent
    orders = [from_another_place(here, number, 3) for number in range(3)]
    assert len({order[0] for order in orders}) == 3
    assert len({frozenset(order) for order in orders}) == 1
    assert {here / "aio", here / "test_sharing.py"} < set(orders[0])
    assert here / "data" not in orders[0]


def test_each_file_with_spark_is_named() -> None:
    """Else the worker that keeps clear of it would start a session of its own."""
    here = Path(__file__).parent
    own = ("connect_server", "lakes", "object_store", "real_kafka")  # they run by themselves
    files = [
        file.relative_to(here)
        for file in here.rglob("test_*.py")
        if re.search(r"^def test_.*?\bspark: SparkSession", file.read_text(), re.MULTILINE | re.DOTALL)
    ]
    assert len(files) > 20
    named = (*WITH_SPARK, *own)
    assert [str(file) for file in files if not any(file.is_relative_to(one) for one in named)] == []
