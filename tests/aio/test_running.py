"""How our loops are asked for: `aio.run`, the factories, and what is imported for it."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from abeyant import aio


async def name_of_the_loop() -> str:
    return type(asyncio.get_running_loop()).__name__


def test_run_runs_on_our_loop_and_returns_the_result() -> None:
    assert aio.run(name_of_the_loop()) == "EventLoop"
    pytest.importorskip("uvloop")
    assert aio.run(name_of_the_loop(), loop_factory=aio.uvloop_factory) == "UvloopEventLoop"


def test_a_runner_takes_the_factories() -> None:
    with asyncio.Runner(loop_factory=aio.loop_factory) as runner:
        assert isinstance(runner.get_loop(), aio.EventLoop)
    pytest.importorskip("uvloop")
    with asyncio.Runner(loop_factory=aio.uvloop_factory) as runner:
        assert isinstance(runner.get_loop(), aio.UvloopEventLoop)


def test_run_passes_on_debug_and_errors() -> None:
    async def fail() -> None:
        assert asyncio.get_running_loop().get_debug()
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        aio.run(fail(), debug=True)


def test_run_inside_a_running_loop_is_refused() -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match="await the coroutine instead"):
            aio.run(name_of_the_loop())
        with pytest.raises(RuntimeError, match="await the coroutine instead"):
            aio.run(name_of_the_loop)  # type: ignore[arg-type]  # not called, besides

    aio.run(main())


def test_without_uvloop_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    monkeypatch.delitem(sys.modules, "abeyant.aio.uvloop_loop", raising=False)
    monkeypatch.delitem(vars(aio), "UvloopEventLoop", raising=False)  # kept once it was asked for
    with pytest.raises(ModuleNotFoundError, match="pip install uvloop"):
        aio.uvloop_factory()
    with pytest.raises(ModuleNotFoundError):
        aio.UvloopEventLoop  # noqa: B018


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Loop'"):
        aio.Loop  # noqa: B018


@pytest.mark.parametrize(("imported", "absent"), [("abeyant", "asyncio"), ("abeyant.aio", "uvloop")])
def test_nothing_is_imported_before_it_is_asked_for(imported: str, absent: str) -> None:
    code = f"import sys, {imported}; assert {absent!r} not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
