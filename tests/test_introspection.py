"""Compiled, the package looks to `inspect`, `help` and `unittest.mock` as its Python source does."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import create_autospec, patch

import pytest

import abeyant
import introspection
from abeyant import aio
from abeyant.engine import is_compiled

COMPILED = pytest.mark.skipif(not is_compiled(), reason="it is Python here, and looks so")
LOOKER = Path(introspection.__file__)


@cache
def look(*, pure: bool) -> dict[str, dict[str, Any]]:
    environment = {**os.environ, "ABEYANT_PURE": "1" if pure else ""}
    told = subprocess.run([sys.executable, LOOKER], env=environment, capture_output=True, text=True, check=True)
    looks: dict[str, dict[str, Any]] = json.loads(told.stdout)
    return looks


def test_every_public_class_and_method_has_the_signature_of_its_source() -> None:
    source, compiled = look(pure=True), look(pure=False)
    assert len(source) > 150
    differ = {
        name: (compiled.get(name, {}).get("signature"), seen["signature"])
        for name, seen in source.items()
        if name not in compiled or compiled[name]["signature"] != seen["signature"]
    }
    assert differ == {}


def test_every_public_class_and_method_tells_what_it_does() -> None:
    for name, seen in look(pure=False).items():
        if name.endswith(".__init__"):
            continue
        assert seen["doc"], name
        assert not any(words in seen["doc"] for words in ("--\n", "the interpreter calls")), name


@COMPILED
def test_help_begins_with_how_to_make_one() -> None:
    seen = {name: each for name, each in look(pure=False).items() if each.get("signature") and "help" in each}
    timer = seen["abeyant.timer.system.SystemTimer"]["help"].splitlines()
    assert " |  SystemTimer(name='abeyant', *, tick=0.001, wheel_size=64, executor=None, on_error=None)" in timer
    assert len(seen) > 15
    for name, each in seen.items():
        assert f"\n |  {name.rpartition('.')[2]}(" in each["help"]


def test_a_subclass_with_an_init_of_its_own_shows_that() -> None:
    class Mine(abeyant.DelayedOperation):
        def __init__(self, offset: int, *, timeout: float = 30.0) -> None:
            super().__init__(timeout)

    class Same(abeyant.DelayedOperation):
        pass

    class Made(abeyant.DelayedOperation):
        def __new__(cls, partition: str) -> Made:
            return super().__new__(cls)

    class Callable(Same):
        def __call__(self, word: str) -> None:
            pass

    assert list(inspect.signature(Mine).parameters) == ["offset", "timeout"]
    assert list(inspect.signature(Same).parameters) == ["timeout", "lock"]
    assert list(inspect.signature(Made).parameters) == ["partition"]
    assert list(inspect.signature(Callable(1.0)).parameters) == ["word"]


@pytest.mark.parametrize("kind", [kind for kind in introspection.classes() if not issubclass(kind, tuple)])
def test_autospec_takes_every_public_class(kind: type[Any]) -> None:
    create_autospec(kind, spec_set=True)
    assert isinstance(create_autospec(kind, instance=True), kind)


def test_autospec_refuses_what_the_class_would() -> None:
    with patch("abeyant.SystemTimer", autospec=True) as mocked:
        timer = abeyant.SystemTimer("mocked", tick=0.01)
        timer.call_later(5, print, "called")
        timer.call_later.assert_called_once_with(5, print, "called")  # type: ignore[attr-defined]
        assert mocked.call_args.kwargs == {"tick": 0.01}
        with pytest.raises(TypeError, match="nam"):
            abeyant.SystemTimer(nam="mocked")  # type: ignore[call-arg]
        with pytest.raises(TypeError, match="too many"):
            abeyant.SystemTimer("mocked", 0.01)  # type: ignore[call-arg]
        with pytest.raises(AttributeError):
            timer.call_sooner  # type: ignore[attr-defined]  # noqa: B018


def test_autospec_takes_what_is_at_work() -> None:
    timer, loop = abeyant.ManualTimer(), aio.EventLoop()
    things: list[Any] = [
        timer,
        timer.call_later(1, print),
        loop,
        loop.call_later(1, print),
        abeyant.Purgatory("x", timer),
    ]
    for thing in things:
        assert isinstance(create_autospec(thing), type(thing))
    loop.close()


@COMPILED
def test_autospec_knows_of_a_c_function_that_it_is_there_and_no_more() -> None:
    # Of dict's methods as of ours: unittest.mock reads the arguments of functions in Python only, on 3.11 to 3.15.
    timer = create_autospec(abeyant.ManualTimer, instance=True)
    for mocked, method in ((create_autospec(dict, instance=True), "get"), (timer, "call_later")):
        getattr(mocked, method)("one", 2, 3, 4, wrong=5)
    with pytest.raises(AttributeError):
        timer.call_sooner(1, print)
    purgatory = create_autospec(abeyant.Purgatory, instance=True)
    with pytest.raises(TypeError, match="too many positional"):
        purgatory.cancel_for_key("key", "another")  # which is Python's
