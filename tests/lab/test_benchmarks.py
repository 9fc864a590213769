"""The command from end to end, in fresh processes, without the JVM."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lab.benchmarks import runner
from lab.benchmarks.__main__ import main
from lab.benchmarks.measurement import Measurement, Sample
from lab.benchmarks.plan import Task
from lab.benchmarks.progress import Progress
from lab.benchmarks.results import read
from lab.benchmarks.runner import Runner

from lab import jvm


def test_a_selection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--rows", "pair,watch", "--rivals", "system,purgatory", "--sizes", "0", "--effort", "tiny"]
    assert main([*chosen, "--out", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 0
    said = capsys.readouterr().out
    assert "[1/2] start + stop, 0 pending, abeyant SystemTimer" in said
    assert "purgatory: watch on one key, complete, µs" in said
    assert len(read(tmp_path / "selected.json").measurements) == 2
    assert (tmp_path / "selected" / "benchmarks.md").read_text().startswith("# Benchmarks\n")
    assert not (tmp_path / "docs").exists(), "only a full run writes the page of the documentation"
    assert not (tmp_path / "selected.unfinished.json").exists()

    # An update goes into the full run's results, and its page.
    os.rename(tmp_path / "selected.json", tmp_path / "results.json")
    assert main([*chosen, "--update", "--out", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 0
    assert len(read(tmp_path / "results.json").measurements) == 2
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
    assert "'pear' is none of pair, start" in capsys.readouterr().err


def test_without_a_jdk_the_jvm_is_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jvm, "why_no_jvm", lambda: "no mvn on this machine")
    chosen = ["--rows", "pair", "--rivals", "kafka,engine", "--sizes", "0", "--effort", "tiny"]
    assert main([*chosen, "--out", str(tmp_path)]) == 0
    assert "left out: Apache Kafka (JVM): no mvn on this machine" in capsys.readouterr().out
    assert read(tmp_path / "selected.json").left_out == {"kafka": "no mvn on this machine"}


def test_an_interrupted_run_is_taken_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = ["--rows", "pair,jump", "--rivals", "manual", "--sizes", "0,3", "--effort", "tiny", "--out", str(tmp_path)]
    measure = Runner.measure

    def interrupted(runner: Runner, task: Task) -> Measurement:
        if task.row == "jump":
            raise KeyboardInterrupt
        return measure(runner, task)

    with monkeypatch.context() as once:
        once.setattr(Runner, "measure", interrupted)
        assert main(chosen) == 130
    kept = read(tmp_path / "selected.unfinished.json").measurements
    assert [one.row for one in kept] == ["pair"]
    capsys.readouterr()
    assert main([*chosen, "--resume"]) == 0
    said = capsys.readouterr().out
    assert "resumed: 1 of 2 measurements were there already" in said
    assert "[1/1] a jump of a year, 3 pending, abeyant ManualTimer" in said
    done = read(tmp_path / "selected.json").measurements
    assert done[0] == kept[0], "it was not measured again"
    assert [one.row for one in done] == ["pair", "jump"]


def test_a_jvm_measures_a_row_at_all_its_sizes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [Task("kafka", "pair", 0), Task("system", "pair", 0), Task("kafka", "pair", 20), Task("kafka", "stop", 20)]
    commands = []

    def answer(command: list[str], count: int) -> list[Sample]:
        commands.append(command)
        return [Sample([float(place)], 1) for place in range(count)]

    monkeypatch.setattr(runner, "_in_a_process", answer)
    monkeypatch.setattr(jvm, "_class_path", lambda: "a.jar")
    runs = Runner("tiny", tasks)
    assert [runs.measure(task).median for task in tasks] == [0.0, 0.0, 1.0, 0.0]
    asked = [" ".join(command[command.index("bench.Main") + 1 :][:3]) for command in commands if "java" in command]
    assert asked == ["kafka pair 0,20", "kafka stop 20"]


def test_the_bar_tells_how_far_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [Task("system", "pair", 0), Task("system", "pair", 750_000), Task("system", "pair", 0)]
    progress = Progress(tasks, live=True)
    for task in tasks:
        progress.begin(task)
        progress.end(task, "0.1 µs")
    bars = [
        line.split("\r")[0] for line in capsys.readouterr().out.splitlines() if line.startswith("[") and "%" in line
    ]
    assert [bar.split("%")[0] for bar in bars] == [
        "[........................] 0",
        "[####....................] 17",
        "[####################....] 83",
    ]
