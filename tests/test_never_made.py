"""An object whose `__init__` was never called refuses, compiled as interpreted: it does not crash the interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import never_made
from abeyant.engine import is_compiled

REFUSALS = (
    "AttributeError",
    "MalformedRecordsError",
    "NotImplementedError",
    "OverflowError",
    "RuntimeError",
    "TypeError",
    "ValueError",
)


def test_no_method_of_a_class_in_c_crashes_on_what_was_never_made() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", Path(never_made.__file__)], capture_output=True, text=True, check=False
    )
    *lines, last = ran.stdout.splitlines() or ["nothing was printed"]
    assert (last, ran.returncode) == ("alive", 0), f"{last}\n{ran.stderr}"
    called = [line for line in lines if not line.startswith(" ")]
    answers = [line.strip() for line in lines if line.startswith(" ")]
    assert len({line.rpartition(" ")[0] for line in called}) > 20, "classes"
    assert not is_compiled() or any(
        "TimingWheel: its __init__ must be called before it is used" in answer for answer in answers
    )
    odd = [answer for answer in answers if not answer.startswith(("returned ", *REFUSALS))]
    assert odd == []
