"""The examples in other languages: each by its language's own tool, with the one scenario, and with a false one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clients import toolchains

HERE = toolchains.HERE.parents[1] / "examples" / "languages"
SCENARIO = HERE / "scenario.json"


@pytest.mark.parametrize("language", ["javascript", "go", "java", "rust"])
def test_a_produce_times_out_in_held_time(language: str, tmp_path: Path) -> None:
    line, folder = toolchains.example(HERE / language)
    done = run(line, folder, SCENARIO)
    assert done.returncode == 0, done.stdout + done.stderr
    false = json.loads(SCENARIO.read_text(encoding="utf-8"))
    false["outcome"]["error"] = "NOT_LEADER_OR_FOLLOWER"
    wrong = tmp_path / "scenario.json"
    wrong.write_text(json.dumps(false), encoding="utf-8")
    done = run(line, folder, wrong)
    assert done.returncode != 0
    assert "REQUEST_TIMED_OUT" in done.stdout + done.stderr


def run(line: list[str], folder: Path, scenario: Path) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {**os.environ, "PATH": path, "SCENARIO": str(scenario)}
    return subprocess.run(line, cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300)
