"""The command from end to end, in fresh processes, without the JVM."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab import jvm, peers
from lab.benchmarks import programs
from lab.benchmarks.__main__ import main
from lab.experiment import Cell, Experiment, Measure
from lab.results import Record, Results
from lab.runner import Runner


def measured(folder: Path, name: str = "selected") -> list[Record]:
    return [record for record in Results(folder / f"{name}.jsonl").records() if record.failed is None]


@pytest.mark.slow
def test_a_selection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--rows", "pair,watch", "--rivals", "system,purgatory", "--sizes", "0", "--effort", "tiny"]
    assert main([*chosen, "--out", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 0
    said = capsys.readouterr()
    assert "bench pair [1/1]" in said.err
    assert "system (size 0): round" in said.err
    assert "purgatory: watch on one key, complete, µs" in said.out
    assert len(measured(tmp_path)) == 2
    assert (tmp_path / "selected" / "benchmarks.md").read_text().startswith("# Benchmarks\n")
    assert not (tmp_path / "docs").exists(), "only a full run writes the page of the documentation"

    # An update goes into the full run's results, and its page.
    os.rename(tmp_path / "selected.jsonl", tmp_path / "results.jsonl")
    assert main([*chosen, "--update", "--out", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 0
    assert len(measured(tmp_path, "results")) == 4
    assert len({record.cell for record in measured(tmp_path, "results")}) == 2
    assert (tmp_path / "docs" / "benchmarks.md").exists()


def test_an_update_or_a_page_without_a_full_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--render", "--update"):
        assert main([option, "--out", str(tmp_path)]) == 2
        assert "there is no full run yet" in capsys.readouterr().err


def test_a_list_measures_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--rows", "pair", "--rivals", "kafka", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["pair", "1", "M", "Apache", "Kafka", "(JVM)"]
    assert not list(tmp_path.iterdir())


def test_an_unknown_name_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--rows", "pear"])
    assert "unknown: 'pear'; choose from pair, start" in capsys.readouterr().err


def test_without_a_jdk_the_jvm_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm, "why_no_jvm", lambda: "no mvn on this machine")
    chosen = ["--rows", "pair", "--rivals", "kafka,engine", "--sizes", "0", "--effort", "tiny"]
    assert main([*chosen, "--out", str(tmp_path)]) == 0
    assert "left out: kafka: no mvn on this machine" in capsys.readouterr().err
    page = (tmp_path / "selected" / "benchmarks.md").read_text()
    assert "- Apache Kafka (JVM): no mvn on this machine" in page


@pytest.mark.slow
def test_an_interrupted_run_is_taken_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ["--rows", "pair,jump", "--rivals", "manual", "--sizes", "0,3", "--effort", "tiny", "--out", str(tmp_path)]
    run = Runner.run

    def interrupted(runner: Runner, experiment: Experiment, cells: Sequence[Cell]) -> object:
        if experiment.name == "bench jump":
            raise KeyboardInterrupt
        return run(runner, experiment, cells)

    with monkeypatch.context() as once:
        once.setattr(Runner, "run", interrupted)
        assert main(chosen) == 130
    kept = measured(tmp_path)
    assert [record.cell.experiment for record in kept] == ["bench pair"]
    capsys.readouterr()
    assert main([*chosen, "--resume"]) == 0
    done = measured(tmp_path)
    assert done[0] == kept[0], "it was not measured again"
    assert [record.cell.experiment for record in done] == ["bench pair", "bench jump"]
    assert len({record.date for record in done}) == 1


def test_what_a_jvm_measures_is_measured_in_a_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = '{"rounds": [5.0], "operations": 20, "extra": {"empty": [1.0]}}'
    monkeypatch.setattr(jvm, "command", lambda *words: ["echo", answer])
    measures = programs.BENCHMARKS["bench pair"].measure("kafka", {"size": 20, "effort": "tiny", "process": 0})
    assert measures == [Measure("round", 5.0, "ns"), Measure("operations", 20, "a round"), Measure("empty", 1.0, "ns")]


def test_every_process_of_a_row_is_a_cell() -> None:
    cells = [one for one in programs.BENCHMARKS["bench memory"].cells(quick=False) if one.design == "system"]
    assert len(cells) == 2 * 3, "two sizes, three processes"
    assert peers.why_missing("system") is None
