"""The list of all names is that of the code, and says how each is called: compiled and interpreted alike."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from importlib import import_module
from typing import Any

import pytest

from scripts.public_names import MODULES, PAGE, members, names, signature


@pytest.mark.parametrize("pure", ["", "1"], ids=["compiled", "interpreted"])
def test_the_page_of_all_names_is_that_of_the_code(pure: str) -> None:
    call = [sys.executable, "-m", "scripts.public_names", "--print"]
    told = subprocess.run(
        call, cwd=PAGE.parents[2], env={**os.environ, "ABEYANT_PURE": pure}, capture_output=True, text=True, check=True
    )
    assert told.stdout.splitlines() == PAGE.read_text().splitlines(), "python -m scripts.public_names writes it anew"


@pytest.mark.parametrize("module", MODULES)
def test_every_name_and_method_says_how_it_is_called(module: str) -> None:
    found = import_module(module)
    assert names(found)
    for name in names(found):
        thing = getattr(found, name)
        signature(thing)  # raises for one that is called and does not say how
        for member, of in members(thing).items() if inspect.isclass(thing) else ():
            assert not inspect.isroutine(of) or inspect.signature(of), f"{module}.{name}.{member}"


@pytest.mark.parametrize("module", MODULES)
def test_dir_lists_every_name(module: str) -> None:
    found: Any = import_module(module)
    assert set(found.__all__) <= set(dir(found))
