"""The command from end to end, in fresh processes, without the JVM."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.__main__ import main
from benchmarks.results import read

from benchmarks import jvm_rivals


def test_a_selection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chosen = ["--rows", "pair,watch", "--rivals", "system,purgatory", "--sizes", "0", "--effort", "tiny"]
    assert main([*chosen, "--out", str(tmp_path), "--docs", str(tmp_path / "docs")]) == 0
    said = capsys.readouterr().out
    assert "[1/2] start + stop, 0 pending, abeyance SystemTimer" in said
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
    def not_here(root: Path) -> str:
        raise jvm_rivals.NotHereError("no mvn on this machine")

    monkeypatch.setattr(jvm_rivals, "build", not_here)
    chosen = ["--rows", "pair", "--rivals", "kafka,engine", "--sizes", "0", "--effort", "tiny"]
    assert main([*chosen, "--out", str(tmp_path)]) == 0
    assert "left out: Apache Kafka (JVM): no mvn on this machine" in capsys.readouterr().out
    assert read(tmp_path / "selected.json").left_out == {"kafka": "no mvn on this machine"}
