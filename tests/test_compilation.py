"""A build without a compiler installs all the same, leaves nothing half compiled, and tells why."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import pytest

from abeyant import _interpreted, cli
from abeyant.engine import is_compiled

ROOT = Path(__file__).parents[1]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what a build needs, without what was compiled."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    unwanted = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info", "not_compiled.txt")
    for name in ("scripts", "src"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=unwanted)
    return tmp_path


def build(checkout: Path, *options: str, **environment: str) -> str:
    pytest.importorskip("setuptools", "77")
    done = subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", *options],
        cwd=checkout, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return done.stderr


def compiled(checkout: Path) -> list[Path]:
    return sorted(checkout.rglob(f"*{sysconfig.get_config_var('EXT_SUFFIX')}"))


def test_without_a_compiler_nothing_compiled_is_left_and_the_reason_is_told(checkout: Path) -> None:
    stale = checkout / "src" / "abeyant" / "engine" / f"wheel{sysconfig.get_config_var('EXT_SUFFIX')}"
    stale.touch()  # of an earlier build: it would hide its .py
    told = build(checkout, "--inplace", CC="/nowhere/cc")
    assert "cannot compile the engine, so it will run interpreted: there was no C compiler that works: " in told
    assert compiled(checkout) == []
    reason = (checkout / "src" / "abeyant" / "not_compiled.txt").read_text()
    assert reason.startswith("there was no C compiler that works: ")
    assert "/nowhere/cc" in reason
    # The compiler was looked for first: Cython has written nothing.
    assert list(checkout.rglob("*.c")) == []
    info = subprocess.run(
        [sys.executable, "-m", "abeyant", "info"],
        cwd=checkout, env={**os.environ, "PYTHONPATH": str(checkout / "src"), "ABEYANT_PURE": ""},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "engine    interpreted: there was no C compiler that works: " in info
    assert "install abeyant anew" in info


def test_a_wheel_holds_nothing_of_what_was_compiled_in_place_before(checkout: Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    stale = [  # a checkout compiles the lab's rivals as well, and may have had a module that is gone
        checkout / "built" / name for name in (f"lab/rivals/heap{suffix}", f"abeyant/gone{suffix}", "abeyant/gone.py")
    ]
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    told = checkout / "built" / "abeyant" / "__init__.py"
    shutil.copy(checkout / "src" / "abeyant" / "__init__.py", told)
    build(checkout, "--build-lib", "built", CC="/nowhere/cc")
    assert [path for path in stale if path.exists()] == []
    assert told.exists()


SETUP = """
from setuptools import setup
from scripts import compilation
setup(
    name="small",
    py_modules=[],
    ext_modules=compilation.extensions(["small"], shared="shared"),
    cmdclass={"build_ext": compilation.Compile},
)
"""
COMPILER = """#!/bin/sh
echo "$*" >> "$(dirname "$0")/calls"
while [ $# -gt 1 ]; do [ "$1" = -o ] && touch "$2"; shift; done
"""


@pytest.mark.slow  # several builds
def test_for_quick_tests_it_is_compiled_quickly_and_for_all_else_anew(tmp_path: Path) -> None:
    """With a compiler that only notes how it was called."""
    pytest.importorskip("Cython")
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "compilation.py", tmp_path / "scripts")
    (tmp_path / "setup.py").write_text(SETUP)
    (tmp_path / "small.py").write_text("def one():\n    return 1\n")
    cc = tmp_path / "cc"
    cc.write_text(COMPILER)
    cc.chmod(0o755)

    def levels(**environment: str) -> set[str]:
        (tmp_path / "calls").write_text("")
        build(tmp_path, "--inplace", CC=str(cc), PYTHONPATH=str(tmp_path), **environment)
        calls = [line for line in (tmp_path / "calls").read_text().splitlines() if "/small.c " in line]
        assert all(" -DCYTHON_COMPRESS_STRINGS=0 " in line for line in calls)
        return {[word for word in line.split() if word.startswith("-O")][-1] for line in calls}

    assert levels(ABEYANT_COMPILE_QUICKLY="1") == {"-O1"}
    assert levels(ABEYANT_COMPILE_QUICKLY="1") == set()
    assert levels() == {"-O3"}
    assert levels() == levels(ABEYANT_COMPILE_QUICKLY="1") == set(), "what was compiled well is kept"
    assert levels(ABEYANT_CFLAGS="-O0") == {"-O0"}
    # Cython unpacked anew is younger than the C that it once wrote, of which it would write all again.
    (written,) = (tmp_path / "build" / "cython").rglob("small.c")
    os.utime(written, (1, 1))
    assert levels(ABEYANT_CFLAGS="-O0") == set()
    (tmp_path / "small.py").write_text("def one():\n    return 2\n")
    assert levels(ABEYANT_CFLAGS="-O0") == {"-O0"}
    written.unlink()
    assert levels(ABEYANT_CFLAGS="-O0") == {"-O0"}


@pytest.mark.parametrize(
    ("pure", "left", "told"),
    [
        ("1", "a compiler that fails\n", "ABEYANT_PURE is set; unset it"),
        ("", "a compiler that fails\nand says so\n", "a compiler that fails and says so; with a C compiler "),
        ("", None, "it was installed without being compiled; with a C compiler "),
    ],
)
def test_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pure: str, left: str | None, told: str) -> None:
    monkeypatch.setenv("ABEYANT_PURE", pure)
    monkeypatch.setattr(_interpreted, "_REASON", tmp_path / "not_compiled.txt")
    if left is not None:
        (tmp_path / "not_compiled.txt").write_text(left)
    assert _interpreted.why().startswith(told)


@pytest.mark.parametrize(("implementation", "platform"), [("graalpy", "linux"), ("cpython", "emscripten")])
def test_where_nothing_can_be_compiled_no_compiler_is_asked_for(
    monkeypatch: pytest.MonkeyPatch, implementation: str, platform: str
) -> None:
    monkeypatch.delenv("ABEYANT_PURE", raising=False)
    monkeypatch.setattr(sys, "implementation", SimpleNamespace(name=implementation))
    monkeypatch.setattr(sys, "platform", platform)
    assert _interpreted.why() == (
        f"it is compiled for CPython on Linux, macOS and Windows only, and this is {implementation} on {platform}"
    )


def test_info_tells_how_the_engine_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["info"]) == 0
    how = "compiled" if is_compiled() else f"interpreted: {_interpreted.why()}"
    assert f"\nengine    {how}\n" in capsys.readouterr().out
    assert cli.main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["engine"] == how
