"""A suite that pytest runs: kafka-python's integration tests, aiokafka's functional tests."""

from __future__ import annotations

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

from scripts.client_suites.results import Result
from scripts.client_suites.source import SuiteError, run


def environment(folder: Path, packages: Sequence[str]) -> Path:
    """A virtual environment with these packages; returns its Python."""
    python = folder / "bin" / "python"
    if not python.exists():
        run([sys.executable, "-m", "venv", str(folder)])
    run([str(python), "-m", "pip", "install", "--quiet", *packages])
    return python


def run_pytest(
    python: Path, folder: Path, arguments: Sequence[str], variables: Mapping[str, str], only: str
) -> list[Result]:
    """Run them in their folder, with their own settings."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    chosen = ["-k", only] if only else []
    command = [str(python), "-m", "pytest", "-q", f"--junitxml={report}", "-o", "junit_logging=no", *arguments, *chosen]
    with (folder / "output.txt").open("wb") as output:
        subprocess.run(command, cwd=folder, env={**os.environ, **variables}, stdout=output, stderr=output, check=False)
    if not report.exists():
        raise SuiteError(f"pytest wrote no report; see {folder / 'output.txt'}")
    return [_result(case) for case in ET.parse(report).getroot().iter("testcase")]


def _result(case: ET.Element) -> Result:
    name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
    seconds = float(case.get("time", 0))
    for kind, outcome in (("failure", "failed"), ("error", "failed"), ("skipped", "skipped")):
        found = case.find(kind)
        if found is not None:
            return Result(name, outcome, seconds, found.get("message") or "")
    return Result(name, "passed", seconds)
