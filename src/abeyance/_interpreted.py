"""Run the compiled modules' own `.py` instead: set ABEYANCE_PURE=1 before the first import.

For the tests, which pass both ways, and for stepping through the engine with a debugger.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
from types import ModuleType


class _SourceFinder:
    """Finds this package's modules in their source files only, never in an extension beside them."""

    @classmethod
    def find_spec(
        cls, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith("abeyance."):
            return None
        for folder in path or ():
            spec = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(fullname)
            if spec is not None:
                return spec
        return None


def install() -> None:
    """Put the finder first. Modules already imported stay as they are."""
    if _SourceFinder not in sys.meta_path:
        sys.meta_path.insert(0, _SourceFinder)
