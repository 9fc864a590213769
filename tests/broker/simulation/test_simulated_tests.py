"""The fixture `simulation` and its options, in a pytest of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from abeyant.broker.simulation.corpus import extended, read_corpus, write_corpus
from abeyant.broker.simulation.pytest_runner import chunks, options_of, parse_seeds, written
from abeyant.simulation import SimulationError

pytest.importorskip("aiokafka")

PLUGINS = ("pytest_abeyant", "pytest_abeyant_kafka")
ALONE = ("-p", "no:cacheprovider")
CODE = """
import asyncio, pytest
from abeyant.broker import checks as kafka_checks
from aiokafka import AIOKafkaProducer

@pytest.mark.kafka(brokers=1, seeds=4, faults=("disconnect",), horizon=1.0)
async def test_orders(simulation):
    simulation.kafka.create_topic("orders")
    producer = AIOKafkaProducer(bootstrap_servers=simulation.bootstrap, acks="all")
    await producer.start()
    await producer.send_and_wait("orders", b"tea")
    simulation.check(kafka_checks.acknowledged_is_readable("orders"))
    assert simulation.seed != WRONG
"""


def run(folder: Path, code: str, *options: str) -> tuple[int, str]:
    (folder / "test_it.py").write_text(code)
    plugins = [part for name in PLUGINS for part in ("-p", name)]
    command = [sys.executable, "-m", "pytest", "-q", *ALONE, *plugins, *options, str(folder)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, timeout=300,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONHASHSEED": "5"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_each_seed_is_run_and_told_in_the_trace(tmp_path: Path) -> None:
    trace, corpus = ("--kafka-trace", str(tmp_path / "trace")), tmp_path / "corpus.json"
    corpus.write_text('{"test_it.py::test_orders": {"2": ["Produce NOT_SEEN"]}}')
    code, said = run(tmp_path, CODE.replace("WRONG", "-1"), *trace, "--kafka-corpus", str(corpus))
    assert code == 0, said
    assert "kafka: 4 seeds" in said
    assert "groups: none" in said
    assert f"seeds in {corpus}" in said
    known = json.loads(corpus.read_text())["test_it.py::test_orders"]
    assert "Produce NOT_SEEN" in known["2"]
    assert any("Produce NONE" in reached for reached in known.values())
    lines = [line.split() for line in (tmp_path / "trace").read_text().splitlines()]
    assert [(line[0], line[2]) for line in lines] == [(str(seed), "passed") for seed in (2, 0, 1, 3)]


@pytest.mark.slow
def test_a_failure_is_told_with_the_command_that_repeats_it(tmp_path: Path) -> None:
    code, said = run(tmp_path, CODE.replace("WRONG", "2"))
    assert code == 1
    assert "found by seed 2, 3 seeds tried" in said
    assert "pytest test_it.py::test_orders --kafka-repeat 2:" in said
    assert "AssertionError" in said
    assert "its timeline: add --kafka-story DIR" in said
    stories = tmp_path / "stories"
    code, said = run(tmp_path, CODE.replace("WRONG", "2"), "--kafka-repeat", "2", "--kafka-story", str(stories))
    assert code == 1, said
    (page,) = stories.iterdir()
    assert "  seed 2 repeated:" in said
    assert "kafka: 1 seed; " in said
    assert page.name == "test_it-test_orders-2.html"
    assert f"its timeline: {page}" in said
    assert "assert simulation.seed != 2" in page.read_text(encoding="utf-8")
    code, said = run(tmp_path, CODE.replace("WRONG", "2"), "--kafka-seeds", "3:5")
    assert code == 0, said


@pytest.mark.slow
def test_workers_share_the_seeds(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    test = CODE.replace("WRONG", "3").replace("(simulation)", "(simulation, what)")
    test = test.replace("@pytest", '@pytest.mark.parametrize("what", ["a b"])\n@pytest')
    code, said = run(tmp_path, test, "-p", "xdist", "-n", "2")
    assert code == 1
    assert "repeat it: pytest 'test_it.py::test_orders[a b]' --kafka-repeat 3:" in said
    assert "kafka: " in said
    assert "7 passed" in said or "3 passed" in said
    assert "test_orders[3-3-a b]" in said


@pytest.mark.slow  # a process for each
def test_misuse_in_a_test_is_told_in_a_line(tmp_path: Path) -> None:
    """One run of pytest for all of them: it costs more than the tests."""
    imports, test = CODE.replace("WRONG", "-1").split("\n\n", 1)
    mistakes = {
        "write `async def`": test.replace("async def", "def").replace("await ", ""),
        "there is no fault 'explode'": test.replace('("disconnect",)', '("explode",)'),
        "a simulation has no clock=": test.replace("seeds=4", 'seeds=4, clock="held"'),
        "a simulation has no racks=": test.replace("seeds=4", 'seeds=4, racks=("a", "b", "c")'),
        "kafka(seeds=...) takes a whole number from 1, or FIRST:END, not '0'": test.replace("seeds=4", "seeds=0"),
    }
    tests = [code.replace("test_orders", f"test_{number}") for number, code in enumerate(mistakes.values())]
    tests.append(
        "@pytest.mark.kafka(seeds=2)\nasync def test_skipped(simulation):\n"
        '    simulation.check(kafka_checks.acknowledged_is_readable("tea"))\n    pytest.skip("no tea")\n'
    )
    tests.append(
        "@pytest.mark.kafka(seeds=2)\nasync def test_expected(simulation):\n"
        '    if simulation.seed == 1:\n        pytest.xfail("no milk")\n'
    )
    ended, said = run(tmp_path, "\n\n".join([imports, *tests]), "-rsx")
    assert ended == 1
    assert "4 failed, 1 skipped, 1 xfailed, 1 error" in said
    assert "no tea" in said
    assert "no milk" in said
    assert [mistake for mistake in mistakes if mistake not in said] == []


@pytest.mark.parametrize(
    ("marked", "mistake"),
    [
        ({"brokers": 0}, "brokers= takes a whole number from 1, not 0"),
        ({"brokers": "3"}, "not '3'"),
        ({"horizon": -1.0}, "horizon= takes seconds of virtual time from 0, not -1.0"),
        ({"converge": "long"}, "converge= takes seconds"),
        ({"converge": float("nan")}, "not nan"),
    ],
)
def test_a_marker_that_cannot_be_is_told(marked: dict[str, object], mistake: str) -> None:
    with pytest.raises(SimulationError, match=mistake):
        options_of(marked)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "mistake"),
    [
        (("--kafka-seeds", "many"), "--kafka-seeds takes a whole number"),
        (("--kafka-repeat", "nine"), "a seed must be a whole number"),
    ],
)
def test_a_misused_option_is_told_in_a_line(tmp_path: Path, options: tuple[str, ...], mistake: str) -> None:
    ended, said = run(tmp_path, CODE.replace("WRONG", "-1"), *options)
    assert ended == 1
    assert mistake in said


def test_seeds_are_read_as_they_are_written() -> None:
    for text, seeds in (("3", [0, 1, 2]), ("5:7", [5, 6]), ("9:10,0:2", [9, 0, 1]), ("1:3,2:4", [1, 2, 3])):
        assert parse_seeds(text) == seeds
        assert parse_seeds(written(seeds)) == seeds
    with pytest.raises(SimulationError, match=r"--kafka-seeds takes .*, not '3:5,7:6'"):
        parse_seeds("3:5,7:6")
    assert chunks(parse_seeds("5"), 2) == [[0, 1, 2], [3, 4]]


def test_a_corpus_takes_what_is_new_only(tmp_path: Path) -> None:
    known = extended({7: ["a"]}, [(0, ["a"]), (1, ["a", "b"]), (2, ["b"]), (7, ["c"])])
    assert known == {7: ["a", "c"], 1: ["b"]}
    write_corpus(tmp_path / "corpus", {"it": known})
    assert read_corpus(tmp_path / "corpus") == {"it": known}
    assert read_corpus(tmp_path / "none") == {}
    for wrong in ("def test(): ...", "[]", '{"it": 3}', '{"it": {"x": []}}'):
        (tmp_path / "wrong").write_text(wrong)
        with pytest.raises(SimulationError, match="wrong is not a corpus"):
            read_corpus(tmp_path / "wrong")
