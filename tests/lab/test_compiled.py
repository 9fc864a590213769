"""An installed lab, which has the compiled engine but no compiled rivals, compiles them when it is first run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import abeyant
from abeyant.engine import is_compiled

PACKAGE = Path(abeyant.__file__).parent
SCRIPT = """
from abeyant.lab import compiled
compiled.ensure()
from abeyant.lab.rivals import DESIGNS, heap
from abeyant.lab.purgatories import old
print(heap.__file__)
print(old.__file__)
for design in DESIGNS.values():
    queue = design.make()
    handle = queue.add(5, "a")
    queue.add(7, "b")
    assert queue.remove(handle) == "a"
    queue._check()
"""

pytestmark = pytest.mark.skipif(not is_compiled(), reason="the engine is interpreted, and so are its rivals")


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """The package as a wheel brings it."""

    def unwanted(folder: str, names: list[str]) -> set[str]:
        lab = Path(folder).is_relative_to(PACKAGE / "lab")
        return {name for name in names if name == "__pycache__" or (lab and name.endswith((".so", ".pyd")))}

    shutil.copytree(PACKAGE, tmp_path / "site" / "abeyant", ignore=unwanted)
    return tmp_path


def run(installed: Path, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    variables = {"PYTHONPATH": str(installed / "site"), "XDG_CACHE_HOME": str(installed / "cache"), "ABEYANT_PURE": ""}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **variables, **environment}, cwd=installed, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_the_rivals_are_compiled_once_and_found_from_then_on(installed: Path) -> None:
    first = run(installed, SCRIPT, ABEYANT_CFLAGS="-O0 -g0")  # half the time
    assert first.returncode == 0, first.stderr
    assert first.stderr.startswith("compiling the rivals, once")
    second = run(installed, SCRIPT)
    assert (second.returncode, second.stderr) == (0, "")
    cache = str(installed / "cache" / "abeyant" / "lab-")
    for told in (first, second):
        assert all(line.startswith(cache) and not line.endswith(".py") for line in told.stdout.splitlines())
    assert len(list((installed / "cache" / "abeyant").iterdir())) == 1


def test_without_a_home_there_is_no_cache_and_only_who_needs_it_says_so(installed: Path) -> None:
    """As in a container that runs as a user of no name."""
    told = {}
    for words in (["lab", "list"], ["lab", "run", "cost", "--quick"]):
        code = f"""if True:
            import os, pwd, sys
            del os.environ["HOME"], os.environ["XDG_CACHE_HOME"]
            pwd.getpwuid = {{}}.__getitem__  # no number has an entry: KeyError
            from abeyant.cli import main
            sys.exit(main({words}))
        """
        told[words[1]] = run(installed, code, HOME=str(installed))
    assert (told["list"].returncode, told["list"].stderr) == (0, "")
    assert told["run"].returncode == 2
    assert told["run"].stderr == (
        "abeyant: error: there is no home directory to keep a cache in: set HOME or XDG_CACHE_HOME to a folder\n"
    )


def test_where_they_cannot_be_compiled_it_is_told_and_nothing_is_left(installed: Path) -> None:
    code = "import sys; from abeyant.cli import main; sys.exit(main(['lab', 'run', 'cost', '--quick']))"
    told = run(installed, code, CC="/nowhere/cc")
    assert told.returncode == 2
    said = told.stderr.splitlines()[-1]
    assert said.startswith(
        "abeyant: error: the lab's rivals cannot be compiled as the engine is: there was no C compiler that works: "
    )
    assert said.endswith("; with ABEYANT_PURE=1 all designs are compared interpreted")
    assert list((installed / "cache" / "abeyant").iterdir()) == []
