"""Which Pythons are tested on, and the table that tells of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import debian_pythons, graalpy
from scripts import test_pythons as pythons
from scripts.set_up import ROOT


def test_what_is_declared_is_tested_the_oldest_and_the_newest_at_least() -> None:
    versions = pythons.declared()
    assert versions[0] == "3.11"
    assert {"3.14", "3.15", "3.14t", "3.15t"} <= set(versions)
    assert pythons.ends(versions, "3.11") == ["3.15"]
    assert pythons.ends(versions, "3.13") == ["3.11", "3.15"]
    assert pythons.ends(versions, "3.15") == ["3.11"]
    assert pythons.ends(["3.11"], "3.11") == []


def test_an_interpreter_is_known_by_what_it_says() -> None:
    version = pythons.RUNNING
    found = pythons.ask(sys.executable, version)
    assert found == (sys.executable, sys.version.split()[0], ())
    assert pythons.ask(sys.executable, f"{version}t") is None
    assert pythons.ask(sys.executable, "3.9") is None


def test_what_cannot_be_had_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("PYENV_ROOT", "/nowhere")
    monkeypatch.setattr(debian_pythons, "FOLDER", tmp_path / "root")
    monkeypatch.setattr("os.geteuid", lambda: 0)
    found = pythons.find_all(["3.99", "3.99t"])
    assert found["3.99t"] == "no python3.99t on the PATH, nor among pyenv's"
    assert "no python3.99 on the PATH, nor among pyenv's; " in str(found["3.99"])
    fine, cells = pythons.line("3.99t", found["3.99t"], [], suite=True)
    assert fine
    assert cells == ["3.99t", "left out: no python3.99t on the PATH, nor among pyenv's"]


def test_graalpy_is_left_out_with_its_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(graalpy, "CACHE", tmp_path)
    told = "left out: no java on this machine, which GraalPy runs on"
    assert pythons.on_graalpy([]) == (True, ["graalpy", told])


def test_each_test_that_graalpy_is_not_given_is_there() -> None:
    given = "".join(Path(ROOT, name).read_text(encoding="utf-8") for name in graalpy.TESTS)
    assert [name for name in graalpy.EXCEPTIONS if f"def {name}(" not in given] == []


def test_the_table_has_a_line_each() -> None:
    rows = [
        ["3.12.1", "1,400 passed", "FAILED: 1 failed, 3 passed", "20 of 21 pass"],
        ["3.15t", "left out: no python3.15t on the PATH"],
    ]
    assert pythons.table(rows).splitlines() == [
        "Python  interpreted   compiled                    CPython's asyncio tests on our loop",
        "3.12.1  1,400 passed  FAILED: 1 failed, 3 passed  20 of 21 pass",
        "3.15t   left out: no python3.15t on the PATH",
    ]
