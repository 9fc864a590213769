"""What the browser's page needs: the pure wheel is built whatever setuptools is there, and what fails is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from scripts import browser_files


def test_the_error_names_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "print('Preparing\\nERROR: no such backend\\nnote: this is no problem with pip'); raise SystemExit(1)"
    with pytest.raises(browser_files.NotHadError, match=r"^building failed: ERROR: no such backend$"):
        browser_files.run("building", sys.executable, "-c", program)
    with pytest.raises(browser_files.NotHadError, match=r"^building failed: it printed nothing$"):
        browser_files.run("building", sys.executable, "-c", "raise SystemExit(1)")


def test_the_page_is_told_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_wheel(folder: Path) -> Path:
        raise browser_files.NotHadError("building the pure wheel failed: ERROR: no such backend")

    monkeypatch.setattr(browser_files, "fetch_pyodide", lambda folder: None)
    monkeypatch.setattr(browser_files, "build_wheel", no_wheel)
    monkeypatch.setattr(sys, "argv", ["browser_files", str(tmp_path / "browser")])
    browser_files.main()
    said = (tmp_path / "browser" / browser_files.MISSING).read_text()
    assert said == "building the pure wheel failed: ERROR: no such backend\n"
    assert "npm" not in said


def test_the_wheel_is_built_apart_from_the_tools_of_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A venv of Python 3.11 has setuptools 65, which knows nothing of a licence expression."""
    ran: list[tuple[object, ...]] = []

    def note(*words: object, **environment: str) -> None:
        ran.append((*words, environment))

    monkeypatch.setattr(browser_files, "run", note)
    with pytest.raises(browser_files.NotHadError, match="made none"):
        browser_files.build_wheel(Path("/nowhere"))
    assert "--no-build-isolation" not in ran[0]
    assert ran[0][-1] == {"ABEYANT_NO_COMPILE": "1"}
