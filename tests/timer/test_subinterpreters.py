"""Of the interpreters of one process the first runs what is compiled, the others its source; each has its timers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import abeyance
from abeyance.engine import is_compiled

PROGRAM = Path(__file__).with_name("subinterpreters.py")


@pytest.mark.parametrize("program", ["timers", pytest.param("stress", marks=pytest.mark.slow)])
def test_each_interpreter_has_timers_of_its_own(program: str) -> None:
    source = Path(abeyance.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, program],
        env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = sorted(ran.stdout.splitlines())
    main = [line for line in told if line.startswith("0 ")]
    others = [line for line in told if line not in main]
    assert [line[:10] for line in others] == ["1 found {}", "2 found {}"], ran.stdout
    if is_compiled():
        assert set(main) == {"0 found {} compiled"}
        assert all("interpreted: compiled, the engine serves one interpreter of a process" in line for line in others)
