"""Names of a package that are imported when they are first asked for, with what an extra brings, if any."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from abeyant.errors import AbeyantError


def check_installed(what: str, extra: str, brings: Collection[str]) -> None:
    """Raise AbeyantError, saying what to install for `what`, where a package of the extra is missing. Imports none."""
    for package in brings:
        if find_spec(package) is None:
            raise AbeyantError(f"{what} needs {package}: pip install 'abeyant[{extra}]'")


def lazy_names(
    package: str, homes: Mapping[str, str], extra: str = "", brings: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for a package; `homes` has the module below it of each name.

    `brings` are the packages of the extra `extra`: where one of them is missing, AbeyantError says what to install.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            found = getattr(import_module(f"{package}.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            missing = (error.name or "").partition(".")[0]
            if missing in brings:
                raise AbeyantError(f"{name} needs {missing}: pip install 'abeyant[{extra}]'") from error
            raise
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names
