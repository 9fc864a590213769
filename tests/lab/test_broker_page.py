"""The page of the broker's benchmarks: verdicts, the state of the machine, missing peers."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from lab.broker.__main__ import main
from lab.broker.page import Circumstances, render, table


def _run(**changes: Any) -> Circumstances:
    return Circumstances(rounds=3, minutes=9.4, load=0.1, others=0.01, gaps={})._replace(**changes)


def _verdicts(**figures: dict[str, float]) -> list[str]:
    rows = table({name.replace("_", "-"): by for name, by in figures.items()}).splitlines()[2:]
    return [row.split("|")[-2].strip() for row in rows]


def test_a_target_beside_kafka_is_judged_only_beside_kafka() -> None:
    assert _verdicts(produce_p50={"abeyant": 0.15}) == [""]
    assert _verdicts(produce_p50={"abeyant": 0.15, "kafka": 2.0}) == ["reached"]
    assert _verdicts(produce_p50={"abeyant": 0.15, "kafka": 0.1}) == ["**missed**"]
    assert _verdicts(produce_all={"abeyant": 399_999.0}) == ["**missed**"], "whatever Kafka does"
    assert _verdicts(listening={"abeyant": 0.15}, memory={"abeyant": 81}) == ["reached", "**missed**"]
    assert _verdicts(consume={"abeyant": 2.0, "kafka": 1.0}) == ["reached"], "whatever the machine reaches"
    assert _verdicts(produce_one={"abeyant": 1.0}) == [""], "the row has no target"


def test_the_page_says_what_was_missed_and_why() -> None:
    page = render({"listening": {"abeyant": 0.2}, "first": {"abeyant": 0.24}}, _run())
    assert "- from `import` to three brokers that listen, s: 0.200 (≤ 0.15). Half of this time is" in page
    assert "first produced record, s: 0.240" not in page
    assert "medians of 3 rounds" in page
    assert "The machine was quiet: 0.1 processes were runnable at the start, and other processes used 1%" in page
    assert "This run met every target that it could judge." in render({"first": {"abeyant": 0.24}}, _run())


def test_the_page_names_a_busy_machine_and_missing_peers() -> None:
    page = render({}, _run(rounds=1, others=0.4, gaps={"kafka": "no java here"}))
    assert "**The machine was not quiet**, so times are upper bounds" in page
    assert "**Apache Kafka, three JVMs** is incomplete: no java here." in page
    assert "one round." in page


def test_the_rows_state_the_counts_of_the_run() -> None:
    figures = {name: {"abeyant": 1.0} for name in ("waiting", "members", "rebalance")}
    whole_run, quick = (table(figures, scale).splitlines()[2:] for scale in (1, 10))
    assert [row.split()[1] for row in whole_run] == ["10,000", "10,000", "a"]
    assert [row.split()[1] for row in quick] == ["1,000", "1,000", "a"]
    assert "a rebalance of 1,000 members" in whole_run[2]
    assert "a rebalance of 100 members" in quick[2]
    assert "| a rebalance of 100 members" in render(figures, _run(scale=10))


def test_a_missing_peer_is_skipped(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("compileall.compile_dir", lambda *args, **options: True)
    assert main(["--quick", "--peers", "kafka"]) == 0
    said = capsys.readouterr()
    assert "Apache Kafka, three JVMs: Kafka needs Java 17 or newer and Maven" in said.err
    assert "1 of 1 rounds" in said.out
