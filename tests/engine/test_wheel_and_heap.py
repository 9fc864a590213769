"""examples/wheel_and_heap.py, run as a person runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "wheel_and_heap.py"


def test_a_task_travels_down_the_wheels_and_both_are_timed() -> None:
    said = subprocess.run(
        [sys.executable, EXAMPLE, "1000"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert said[:5] == [
        "at   0  wheel 3, bucket 2: 222, 223",
        "at 200  wheel 2, bucket 2: 222, 223",
        "at 220  wheel 1, bucket 2: 222; wheel 1, bucket 3: 223",
        "at 222  wheel 1, bucket 3: 223; due: one",
        "at 223  due: another",
    ]
    assert [line.split()[:2] for line in said if "start" in line] == [["1,000", "wheel"], ["1,000", "heap"]]
