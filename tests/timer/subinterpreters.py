"""Run a program in several interpreters of one process at once, the main one too, each in a thread.

    python tests/timer/subinterpreters.py timers|stress

Each prints a line: how its engine runs, and what it found. From 3.12 on each has a lock of its own.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1]
BEGINNING = """
import os, sys, threading
sys.path[:] = {path!r}
import abeyant
from abeyant import _interpreted
from abeyant.engine import is_compiled
"""
PROGRAMS = {
    "timers": """
timer, manual, done = abeyant.SystemTimer(), abeyant.ManualTimer(), threading.Event()
class Never(abeyant.DelayedOperation):
    def try_complete(self):
        return False
operation = Never(1)
purgatory = abeyant.Purgatory("p", manual)
assert not purgatory.try_complete_else_watch(operation, ["k"])
manual.advance(1)
timer.call_later(0.01, done.set)
found = {} if done.wait(30) and operation.outcome == "expired" else "nothing ran"
timer.call_later(3600, int)
if sys.version_info < (3, 12):  # later ones must end all the same; that one allows daemons there, and aborts with one
    timer.close()
""",
    "stress": """
from purgatory.stress import stress
found = stress(1.0)["found"]
""",
}
END = """
how = "compiled" if is_compiled() else "interpreted: " + _interpreted.why()
os.write(1, f"{number} found {{found}} {{how}}\\n".encode())
"""


def low() -> Any:
    """The module behind `concurrent.interpreters`, which came with 3.14."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            return importlib.import_module(name)
        except ImportError:
            pass
    raise SystemExit("this Python has no subinterpreters")


def in_another(program: str) -> None:
    interpreters = low()
    options = {"isolated": False} if sys.version_info < (3, 12) else {}  # there, isolated means without threads
    made = interpreters.create(**options)
    try:
        failure = interpreters.run_string(made, program)
        if failure is not None:
            os.write(1, f"{failure}\n".encode())
    finally:
        interpreters.destroy(made)


def main() -> None:
    programs = [
        BEGINNING.format(path=[str(TESTS), *sys.path]) + PROGRAMS[sys.argv[1]] + END.format(number=number)
        for number in range(3)
    ]
    exec(programs[0], {})  # the main one first: compiled modules are its own
    threads = [threading.Thread(target=in_another, args=[program]) for program in programs[1:]]
    for thread in threads:
        thread.start()
    if sys.argv[1] == "stress":
        exec(programs[0], {})
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main()
