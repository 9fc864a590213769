"""Make hashes equal in all processes: hashes of strings by PYTHONHASHSEED=0, and the hash of None.

Before Python 3.12 the hash of None was its address. So it differed between processes, as did the order of sets of
tuples with None. A child process therefore makes the hash of None constant before it imports anything.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

_VALUED: Final = ("-W", "-X", "--check-hash-based-pycs")  # options of Python whose value is the next argument

# Use PyObject_IsTrue as the hash function of None: it returns 0. The hash slot is the sixteenth word of a type.
_BEGIN: Final = """
import ctypes, sys
if sys.version_info < (3, 12):
    slot = lambda one: ctypes.c_void_p.from_address(id(one) + 15 * ctypes.sizeof(ctypes.c_void_p))
    if slot(type(None)).value == slot(object).value:
        slot(type(None)).value = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p).value
    del slot
del ctypes
kind, target = sys.argv[1:3]
sys.argv[:3] = [target]
import runpy
if kind == "module":
    runpy.run_module(target, run_name="__main__", alter_sys=True)
elif kind == "path":
    import os
    sys.path[0] = os.path.dirname(os.path.abspath(target))
    runpy.run_path(target, run_name="__main__")
else:
    sys.argv[0] = "-c"
    exec(compile(target, "<string>", "exec"), {"__name__": "__main__", "__builtins__": __builtins__})
"""


def hashes_are_fixed() -> bool:
    """Return whether sets of strings, and of tuples with None, have the same order in all processes."""
    return not sys.flags.hash_randomization and (sys.version_info >= (3, 12) or hash(None) == 0)


def command(kind: str, target: str, arguments: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """Return the command line of a child with fixed hashes, to be run in `environment()`.

    `kind` is "module", "path" or "code"; `options` are options of Python itself.
    """
    return [sys.executable, *options, "-c", _BEGIN, kind, target, *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a child with fixed hashes."""
    return {**os.environ, "PYTHONHASHSEED": "0"}


def fix_hashes() -> None:
    """Run this program again in a child with fixed hashes and exit with the child's code, unless hashes are fixed."""
    if not hashes_are_fixed():
        sys.stdout.flush()
        sys.stderr.flush()
        raise SystemExit(subprocess.call(command(*_program(sys.orig_argv)), env=environment()))


def _program(words: Sequence[str]) -> tuple[str, str, list[str], list[str]]:
    """Split a command line into kind, target, arguments and Python's options."""
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-c", "-m"):
        at += 2 if words[at] in _VALUED else 1
    options, rest = list(words[1:at]), list(words[at:])
    if rest[:1] == ["-m"]:
        return "module", rest[1], rest[2:], options
    if rest[:1] == ["-c"]:
        return "code", rest[1], rest[2:], options
    return "path", rest[0], rest[1:], options
