"""mypy and pyright, both strict, over a user's program and the README, against the package as it is installed.

A wheel is built of the checkout, without the compile, and unpacked in an environment of its own: a type that is not
in the wheel, or a `py.typed` that is not, shows here and not in the checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from scripts.public_names import MODULES, names
from test_docs import PAGES, scripts, shown_tests

pytestmark = pytest.mark.slow  # mypy reads all of the package and its dependencies anew

ROOT = Path(__file__).parents[2]
PROGRAM = Path(__file__).with_name("program.py")


def run(*command: str | Path, folder: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("MYPYPATH", "PYTHONPATH")}
    done = subprocess.run(
        [*map(str, command)], cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def user(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheel installed in `venv/`, where Spark and others are this environment's, and `programs/`."""
    folder = tmp_path_factory.mktemp("user")
    checkout = folder / "checkout"
    checkout.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout)
    for name in ("scripts", "src"):
        unwanted = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__")
        shutil.copytree(ROOT / name, checkout / name, ignore=unwanted)
    build = "import os; os.environ['ABEYANT_NO_COMPILE'] = '1'\nfrom setuptools.build_meta import build_wheel as build"
    run(sys.executable, "-c", f"{build}\nbuild({str(folder)!r})", folder=checkout)
    run(sys.executable, "-m", "venv", "--without-pip", folder / "venv", folder=folder)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    site = folder / "venv" / "lib" / f"python{version}" / "site-packages"
    (wheel,) = folder.glob("abeyant-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    (site / "others.pth").write_text(sysconfig.get_path("purelib"))
    programs = folder / "programs"
    programs.mkdir()
    shutil.copy(PROGRAM, programs)
    readme = PAGES["README.md"]
    (programs / "readme.py").write_text("\n".join(code for _, code in scripts(readme)))
    for line, code in shown_tests(readme):
        (programs / f"readme_{line}.py").write_text(code)
    (programs / "names.py").write_text("\n".join(revealed()))
    shutil.rmtree(checkout)
    return folder


def revealed() -> Iterator[str]:
    """A program that has mypy tell the type of every public name."""
    for module in MODULES:
        yield f"import {module}"
    for module in MODULES:
        yield from (f"reveal_type({module}.{name})" for name in names(import_module(module)))


def test_mypy_strict(user: Path) -> None:
    python = user / "venv" / "bin" / "python"
    where = run(python, "-c", "import abeyant; print(abeyant.__file__)", folder=user)
    assert where.startswith(str(user))
    told = run(
        *(sys.executable, "-m", "mypy", "--strict", "--warn-unreachable", "--python-executable", python),
        *("--cache-dir", user / "cache", user / "programs"),
        folder=user,
    )
    *notes, end = told.splitlines()
    assert end.startswith("Success: no issues found in ")
    types = [note.partition('note: Revealed type is "')[2].rstrip('"') for note in notes if "Revealed type" in note]
    assert len(types) == sum(line.startswith("reveal") for line in revealed())
    assert [kind for kind in types if kind == "Any" or kind.startswith("def (*Any")] == []


def test_pyright_strict(user: Path) -> None:
    pyright = Path(sys.executable).with_name("pyright")
    if not pyright.exists() or subprocess.run([pyright, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("there is no pyright that works: it comes from PyPI and, at its first use, from npm")
    shutil.copy(PROGRAM, user)
    settings = {
        "include": ["program.py"],
        "typeCheckingMode": "strict",
        "reportUnnecessaryTypeIgnoreComment": "error",
        "pythonVersion": "3.11",
    }
    (user / "pyrightconfig.json").write_text(json.dumps(settings))
    told = run(pyright, "--pythonpath", user / "venv" / "bin" / "python", folder=user)
    assert told.startswith("0 errors")
