"""Where the engine is interpreted, what is for speed says so: once, with the reason and the mend."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import abeyant

# As a checkout whose modules are not compiled: the finder that ABEYANT_PURE puts in place, without asking for it.
HEAD = """
import warnings
from abeyant import _interpreted
_interpreted.install()
for name in [name for name in sys.modules if name.startswith("abeyant.") and name != "abeyant._interpreted"]:
    del sys.modules[name]
from abeyant import aio

async def main():
    return 5

"""
PROGRAMS = {
    "run": "aio.run(main())\naio.run(main())\naio.EventLoop().close()",
    "EventLoop": "aio.EventLoop().close()\naio.EventLoop().close()",
    "UvloopEventLoop": "aio.uvloop_factory().close()",
}
SOURCE = Path(abeyant.__file__).parents[1]


def run(program: str, pure: str = "") -> list[str]:
    """The warnings that a program gives."""
    text = f"import sys\n{HEAD}{program}\n"
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", text],
        env={"PYTHONPATH": str(SOURCE), "ABEYANT_PURE": pure},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.splitlines() if "Warning" in line or "Exception ignored" in line]


@pytest.mark.parametrize("what", PROGRAMS)
def test_it_is_told_once_and_where_the_user_called(what: str) -> None:
    if what.startswith("Uvloop"):
        pytest.importorskip("uvloop")
    (told,) = run(PROGRAMS[what])
    assert f"RuntimeWarning: abeyant.aio.{what} runs interpreted" in told
    assert "install abeyant anew" in told
    assert told.startswith("<string>:") or what.startswith("Uvloop")


@pytest.mark.parametrize("what", PROGRAMS)
def test_where_warnings_are_errors_nothing_else_is_told(what: str) -> None:
    if what.startswith("Uvloop"):
        pytest.importorskip("uvloop")
    catch = f"warnings.simplefilter('error', RuntimeWarning)\ntry: {PROGRAMS[what].splitlines()[0]}\n"
    assert run(f"{catch}except RuntimeWarning as warning: assert 'runs interpreted' in str(warning)") == []


def test_0_asks_for_nothing() -> None:
    assert len(run(PROGRAMS["run"], pure="0")) == 1


def test_not_where_it_was_asked_for_nor_where_speed_is_not_the_point() -> None:
    assert run(PROGRAMS["run"], pure="1") == []
    assert run("assert aio.run_virtual(main()) == 5") == []


def test_not_where_it_is_compiled() -> None:
    program = "from abeyant import aio, engine\naio.EventLoop().close()\nprint(engine.is_compiled())"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={"PYTHONPATH": str(SOURCE)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.stdout == "False\n" or "RuntimeWarning" in done.stderr:
        pytest.skip("nothing is compiled here")
    assert done.returncode == 0, done.stderr
