"""The example in JavaScript that needs no client of Kafka, so it is run wherever there is Node."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[3] / "examples" / "languages" / "javascript"


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_records_offsets_and_a_fault_from_javascript() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    line = ["node", "--test", "control.test.js"]
    done = subprocess.run(
        line, cwd=HERE, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " pass 1\n" in done.stdout
