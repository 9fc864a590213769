"""Import modules from their `.py` sources, not compiled, if ABEYANT_PURE=1 is set or in a subinterpreter.

Set the variable before the first import of abeyant. It is for the tests, which pass compiled and interpreted, and for
stepping through the engine with a debugger. Subinterpreters need the sources because Cython keeps the types of
memoryviews, which most of our modules use, once per process: a compiled module works only in the interpreter that
loaded it first.
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
    """An import finder for modules whose names begin with a prefix: it finds only `.py` files, never extensions."""

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
    """From now on, import modules whose names begin with `prefix` from `.py` files. Loaded modules stay as they are."""
    _SourceFinder.prefixes += (prefix,)
    if _SourceFinder not in sys.meta_path:
        sys.meta_path.insert(0, _SourceFinder)


def install_in_subinterpreter(refusal: ImportError) -> None:
    """Call `install` if a compiled module raised `refusal` because this is a subinterpreter; else raise `refusal`."""
    global _in_subinterpreter
    if "interpreter" not in str(refusal):  # in the messages of both CPython and Cython
        raise refusal
    _in_subinterpreter = True
    install()


def _is_requested() -> bool:
    return os.environ.get("ABEYANT_PURE", "0") not in ("", "0")


def why() -> str:
    """Return one line: why the engine runs interpreted, and the fix. Valid only if `engine.is_compiled()` is False."""
    if _is_requested():
        return "ABEYANT_PURE is set; unset it"
    if _in_subinterpreter:
        return "the compiled engine works only in the interpreter that loaded it first; use threads or processes here"
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

    Call it only if `engine.is_compiled()` is False. `stacklevel` is as in `warnings.warn`, counted from the caller.
    """
    global _warned
    if not _warned and not _is_requested():
        _warned = True
        warnings.warn(
            f"{what} runs interpreted, so it is slower than asyncio's own loop, and not faster: {why()}",
            RuntimeWarning,
            stacklevel=stacklevel + 1,
        )
