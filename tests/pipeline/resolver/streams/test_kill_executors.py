"""O4 over killed executors. (More: `python -m pipeline.resolver.streams.kill_executors --kills 20`.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]


@pytest.mark.slow
def test_o4_no_outcome_is_lost_or_doubled_when_executors_are_killed() -> None:
    """In a process of its own: this one's session is on no cluster."""
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT)])
    call = [sys.executable, "-m", "pipeline.resolver.streams.kill_executors", "--kills", "2", "--traces", "200"]
    done = subprocess.run(call, env=os.environ | {"PYTHONPATH": paths}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.startswith("2 kills, ")
    assert ": 0 lost, 0 wrong, 0 doubled\n" in done.stdout
