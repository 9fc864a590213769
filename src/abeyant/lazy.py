"""Import a package's names at their first use, and say what to install if an extra is missing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from abeyant.errors import AbeyantError
from abeyant.installation import install_command


def missing(extras: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
    """Return the missing packages in `extras`, by extra; leave out extras with all packages. Import no package."""
    absent = {extra: [name for name in brings if find_spec(name) is None] for extra, brings in extras.items()}
    return {extra: names for extra, names in absent.items() if names}


def needs(what: str, lacking: Mapping[str, Collection[str]]) -> AbeyantError:
    """Return the error that `what` needs the packages in `lacking`, by extra, with the command that installs them."""
    names = [*dict.fromkeys(name for brings in lacking.values() for name in brings)]
    listed = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else names[0]
    return AbeyantError(f"{what} needs {listed}: {install_command(*lacking)}")


def lazy_names(
    package: str, homes: Mapping[str, str], extra: str = "", brings: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` for `package`, to import names on first use; `homes` has each name's module.

    `brings` has the packages of the extra `extra`: if a package is missing, AbeyantError says what to install.
    """

    def find(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            value = getattr(import_module(f"{package}.{homes[name]}"), name)
        except ModuleNotFoundError as error:
            absent = (error.name or "").partition(".")[0]
            if absent in brings:
                raise needs(name, missing({extra: brings}) or {extra: [absent]}) from error
            raise
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return find, names
