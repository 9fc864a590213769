"""Runs: in fresh processes, appended as they come, resumed where they were broken off."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.former import former
from lab import __main__ as command_module
from lab import results as results_module
from lab.__main__ import main
from lab.experiment import QUICK, TAKEN, Cell, Experiment, Measure, Parameters, cell
from lab.experiments import EXPERIMENTS, geometry, traces
from lab.results import Results, now
from lab.rivals import heap
from lab.runner import Runner, measure_alone

PRECISION = EXPERIMENTS["precision"]
SHIPPED = Path(__file__).parents[2] / "examples" / "data" / "kafka-request-log"


def small(experiment: Experiment, count: int) -> Experiment:
    return dataclasses.replace(experiment, grid=lambda quick: experiment.grid(True)[:count])


def runner(folder: Path, *, resume: bool = False, quiet: bool = True) -> Runner:
    return Runner(Results(folder / "results.jsonl"), quick=True, resume=resume, quiet=quiet)


def test_a_virtual_run_measures_what_this_process_does(tmp_path: Path) -> None:
    mine = runner(tmp_path)
    ran = mine.run(small(PRECISION, 5))
    assert (ran.measured, ran.skipped, ran.failed) == (5, 0, {})
    records = mine.results.records()
    assert [record.cell for record in records] == small(PRECISION, 5).cells(True)
    for record in records:
        measures = PRECISION.measure(record.cell.design, record.cell.choices())
        assert record.measures == [*measures, Measure(QUICK, 1.0, "of the run")]
    rows = mine.results.read()
    assert set(rows["experiment"]) == {"precision"}
    assert rows["date"].nunique() == rows["machine"].nunique() == rows["version"].nunique() == 1
    assert not rows.isna().any().any()


@pytest.mark.slow
def test_resuming_measures_only_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    append = Results.append
    written: list[Cell] = []

    def interrupted(results: Results, date: datetime, one: Cell, *what: Any) -> None:
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(one)
        append(results, date, one, *what)

    with monkeypatch.context() as patched:
        patched.setattr(Results, "append", interrupted)
        with pytest.raises(KeyboardInterrupt):
            runner(tmp_path).run(small(PRECISION, 8))
    ran = runner(tmp_path, resume=True).run(small(PRECISION, 8))
    assert (ran.measured, ran.skipped) == (5, 3)
    again = runner(tmp_path, resume=True).run(small(PRECISION, 8))
    assert (again.measured, again.skipped) == (0, 8)
    rows = Results(tmp_path / "results.jsonl").read()
    assert rows["date"].nunique() == 1
    assert not rows.duplicated(["design", "parameters", "metric"]).any()


def test_without_resuming_a_run_is_another_run(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    assert results.last_run() == (None, set())
    one, other = cell("idle", "refresh", {"connections": 1}), cell("cost", "wheel", {"pending": 1})
    earlier, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    results.append(earlier, other, [Measure("insert", 1.0, "ns")])
    results.append(later, one, [Measure("CPU", 1.0, "ms a second")])
    assert results.last_run() == (later, {one}), "a cell of an earlier run is none of the last one's"
    assert runner(tmp_path, resume=True).date == later
    assert runner(tmp_path).date > later


def test_a_line_that_a_killed_run_left_half_written_is_passed_over(tmp_path: Path) -> None:
    results = Results(tmp_path / "results.jsonl")
    one = cell("idle", "refresh", {"connections": 1})
    results.append(now(), one, [Measure("CPU", 1.0, "ms a second")])
    whole = results.path.read_text(encoding="utf-8")
    results.path.write_text(whole + whole[: len(whole) // 2], encoding="utf-8")
    assert [record.cell for record in results.records()] == [one]
    results.append(now(), one, [Measure("CPU", 2.0, "ms a second")])
    assert [record.measures[0].value for record in results.records()] == [1.0, 2.0]


def test_a_real_cell_runs_in_a_process_of_its_own() -> None:
    measures = measure_alone(cell("idle", "refresh", {"connections": 100, "packets_s": 100, "seconds": 31}))
    assert {measure.metric for measure in measures} >= {"a packet", "longest turn", "latest"}


def test_a_cell_that_fails_is_told_and_does_not_end_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen: Parameters = {"connections": 10, "packets_s": 100, "seconds": 31}
    grid = [("no such way", chosen), ("scan-all", chosen)]
    experiment = dataclasses.replace(EXPERIMENTS["idle"], grid=lambda quick: grid)
    ran = runner(tmp_path, quiet=False).run(experiment)
    assert ran.measured == 1
    assert [one.design for one in ran.failed] == ["no such way"]
    assert "no such way" in next(iter(ran.failed.values()))
    rows = Results(tmp_path / "results.jsonl").read().set_index("metric")["value"]
    assert rows[QUICK] == 1
    if sys.platform == "linux":
        assert 0 <= rows[TAKEN] <= 1
    said = capsys.readouterr().err
    assert "idle [1/2]" in said
    assert "failed" in said
    assert "idle [2/2]" in said
    assert ran.failed.keys() & Results(tmp_path / "results.jsonl").last_run()[1] == set()


def test_running_out_of_memory_is_a_result() -> None:
    parameters: Parameters = {
        "load": "low", "rate": 10**6, "requests": 100_000, "seconds": 30, "size": 300_000, "memory_mb": 200,
        "purge_interval": 1000,
    }  # fmt: skip
    assert measure_alone(cell("enqueue", "kafka", parameters)) == [Measure("out of memory", 1.0, "runs")]


def test_a_design_that_is_not_here_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = dataclasses.replace(
        EXPERIMENTS["idle"], grid=lambda quick: [("refresh", {"connections": 1})], missing=lambda design: "it is away"
    )
    ran = runner(tmp_path).run(experiment)
    assert (ran.measured, ran.left_out) == (0, {"refresh": "it is away"})
    assert "left out: refresh: it is away" in capsys.readouterr().err


@pytest.mark.slow  # of a whole log
def test_a_real_log_is_a_trace(spark: SparkSession, tmp_path: Path) -> None:
    names = traces.from_log([str(SHIPPED)], tmp_path / "traces", spark)
    cells = [cell("geometry", design, chosen) for design, chosen in geometry.on_traces(names, quick=True)]
    mine = runner(tmp_path)
    assert mine.run(EXPERIMENTS["geometry"], cells).measured == 3 * 2 * 3, "three brokers, two ticks, three wheel sizes"
    rows = mine.results.read()
    assert rows[rows["metric"] == "tasks"]["value"].min() > 1_000


@pytest.mark.parametrize("stray", ["no JSON\n", "{}\n", "[1, 2]\n"])
def test_files_of_others_are_told_apart(tmp_path: Path, stray: str) -> None:
    (tmp_path / "results.jsonl").write_text(stray)
    with pytest.raises(AbeyantError, match="not a results file of the lab"):
        Results(tmp_path / "results.jsonl").read()


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "lab", *arguments], capture_output=True, text=True, check=False, timeout=120
    )


def test_the_command_lists_every_experiment() -> None:
    said = command("list")
    assert said.returncode == 0
    assert [line.split()[0] for line in said.stdout.splitlines()] == list(EXPERIMENTS)


def test_the_command_tells_a_program_what_was_measured_and_where(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen: Parameters = {"connections": 10, "packets_s": 100, "seconds": 31}
    idle = dataclasses.replace(EXPERIMENTS["idle"], grid=lambda quick: [("scan-all", chosen)])
    monkeypatch.setitem(EXPERIMENTS, "idle", idle)
    assert main(["run", "idle", "--dir", str(tmp_path), "--json"]) == 0
    counted = {"idle": {"measured": 1, "skipped": 0, "failed": 0}}
    assert json.loads(capsys.readouterr().out) == {"out": str(tmp_path), "report": None, "result": counted}
    assert main(["run", "idle", "--dir", str(tmp_path), "--resume"]) == 0
    said = capsys.readouterr().out
    assert said == f"idle: 0 cells measured, 1 skipped, 0 failed\n\nResult: {tmp_path}\n"


def test_the_command_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "enqeue"]) == 2
    said = capsys.readouterr().err
    assert "no experiment 'enqeue'" in said
    assert "did you mean enqueue?" in said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("reprot", "; did you mean report?"),
        ("run cost --quik", "python -m lab run: error: there is no option --quik; did you mean --quick?"),
    ],
)
def test_what_is_most_alike_is_named(words: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(words.split())
    assert said in capsys.readouterr().err.splitlines()[-1]


def test_compiled_the_wheel_is_compared_with_nothing_interpreted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_module, "is_compiled", lambda: True)
    monkeypatch.setattr(heap, "__file__", "heap.py")
    assert main(["run", "cost", "--quick", "--dir", str(tmp_path)]) == 2
    assert "the engine is compiled and the rivals are not: run make .venv/.lab" in capsys.readouterr().err


def test_a_slip_beside_all_is_not_passed_over(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_module, "EXPERIMENTS", {})
    assert main(["run", "all", "enqeue", "--dir", str(tmp_path)]) == 2
    assert "no experiment 'enqeue'" in capsys.readouterr().err


def test_a_report_of_nothing_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--dir", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"no results in {tmp_path}: run python -m lab run enqueue --quick --dir {tmp_path}" in said


def test_logs_that_no_experiment_would_read_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "idle", "--log", "logs"]) == 2
    assert "--log is for geometry, which is not among the experiments to run" in capsys.readouterr().err


def test_results_of_the_former_name_are_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as before:
        before.setattr(results_module, "versions", lambda: {former("abeyant"): "0.1.0 compiled"})
        measures = [Measure("lateness", 1.0, "s")]
        Results(tmp_path / "results.jsonl").append(now(), cell("precision", "wheel", {}), measures)
    for words in (["report"], ["run", "precision", "--quick", "--resume"]):
        assert main([*words, "--dir", str(tmp_path)]) == 2
        assert "was written under the project's former name" in capsys.readouterr().err
