"""P1-P4 with real threads and the real clock; and that the stress test notices when a lock is taken out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seeds import with_slow

STRESS = Path(__file__).with_name("stress.py")


def stress(seconds: int, *options: str, pure: str) -> dict[str, Any]:
    """In a process of its own, for it sets a trace function and the interpreter's switch interval."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "ABEYANT_PURE": pure,
    }
    done = subprocess.run(
        [sys.executable, str(STRESS), "--seconds", str(seconds), *options],
        capture_output=True, text=True, timeout=seconds + 120, env=environment,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    result["stderr"] = done.stderr
    return result


@pytest.mark.parametrize("pure", with_slow(["", "1"], ["1"]), ids=["as installed", "interpreted"])
def test_every_operation_ends_exactly_once_under_stress_p1_p2_p3_p4(pure: str) -> None:
    result = stress(6, pure=pure)
    assert result["found"] == {}, result
    assert result["operations"] > 100
    assert set(result["outcomes"]) == {"completed", "expired", "stolen"}


@pytest.mark.slow
@pytest.mark.parametrize("part", ["operation-lock", "lists-lock", "adoption-lock", "second-try"])
def test_the_stress_test_notices_what_is_missing(part: str) -> None:
    """Stops at the first finding, after seconds: the second try is missed in one round of 150."""
    assert stress(600, "--without", part, pure="1")["found"] != {}
