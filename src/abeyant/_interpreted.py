"""Import compiled modules from their `.py` sources if ABEYANT_PURE=1 was set, or in a subinterpreter; explain why.

Set the variable before the first import. It is for the tests, which pass both ways, and for stepping through the engine
with a debugger. Subinterpreters need it because Cython keeps the types of memoryviews, which most of our modules use,
once per process: a compiled module works only in the interpreter that loaded it first.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

_REASON = Path(__file__).with_name("not_compiled.txt")  # written by scripts/compilation.py
_warned = False
_in_subinterpreter = False


class _SourceFinder:
    """Finds the modules of some packages in their source files only, never in an extension beside them."""

    prefixes: tuple[str, ...] = ()

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(cls.prefixes):
            return None
        for folder in path or ():
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(fullname)
            if spec is not None:
                return spec
        return None


def install(prefix: str = "abeyant.") -> None:
    """Import modules whose names begin with `prefix` from their sources. Does not change modules already imported."""
    _SourceFinder.prefixes += (prefix,)
    if _SourceFinder not in sys.meta_path:
        sys.meta_path.insert(0, _SourceFinder)


def install_in_subinterpreter(refusal: ImportError) -> None:
    """Install if a compiled module refused its import because of a subinterpreter; else raise `refusal`."""
    global _in_subinterpreter
    if "interpreter" not in str(refusal):  # in the messages of both CPython and Cython
        raise refusal
    _in_subinterpreter = True
    install()


def _is_requested() -> bool:
    return os.environ.get("ABEYANT_PURE", "0") not in ("", "0")


def why() -> str:
    """Return one line: why the engine runs interpreted, and the fix. Only for `engine.is_compiled()` being False."""
    if _is_requested():
        return "ABEYANT_PURE is set; unset it"
    if _in_subinterpreter:
        return "compiled, the engine serves one interpreter of a process, and this is another; use threads or processes"
    if sys.implementation.name != "cpython" or sys.platform == "emscripten":
        here = f"{sys.implementation.name} on {sys.platform}"
        return f"it is compiled for CPython on Linux, macOS and Windows only, and this is {here}"
    try:
        reason = " ".join(_REASON.read_text(encoding="utf-8").split())
    except OSError:
        reason = "it was installed without being compiled"
    return f"{reason}; with a C compiler and Python's headers (apt install gcc python3-dev) install abeyant anew"


def warn_once(what: str, stacklevel: int) -> None:
    """Warn that `what`, which exists for speed, runs interpreted: once per process, and not if ABEYANT_PURE is set.

    Call it only if `engine.is_compiled()` is False. `stacklevel` is that of `warnings.warn`, counted from the caller.
    """
    global _warned
    if not _warned and not _is_requested():
        _warned = True
        warnings.warn(
            f"{what} runs interpreted, so it is slower than asyncio's own loop, and not faster: {why()}",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )
