"""The pytest plugin: `@pytest.mark.virtual_time` on an `async def` test, and the fixture `virtual_time`.

A marked test runs in virtual time (see `abeyant.aio.virtual`), and so does one that asks for the fixture, which is the
clock. Where pytest-asyncio, anyio's plugin or `unittest` runs the test, its body is in virtual time on their loop;
otherwise it gets a loop of its own, which is virtual from its first moment.

The plugin is loaded by every pytest run in whose environment abeyant is installed, wanted or not. So it stands outside
of the package, whose import it leaves to the first test that is marked: nothing of abeyant or asyncio is loaded
before, and coverage of abeyant itself begins before its import.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from abeyant.aio import VirtualClock

_MARKER = (
    "virtual_time(start=None, autojump=True, io_grace=0.1, patience=30.0, limit=inf, clocks=False, ignore_threads=(), "
    "loop_factory=None): run this async test in virtual time, where sleeps and time-outs are over at once; see "
    "abeyant.aio.VirtualClock for the options. loop_factory makes the loop where no other plugin does."
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest) -> VirtualClock:
    """The virtual clock of this `async def` test, set up by its marker if it has one."""
    item = request.node
    if not (isinstance(item, pytest.Function) and _is_async(item)):
        pytest.fail("the fixture virtual_time is for `async def` tests: no other has a loop", pytrace=False)
    return _new_clock(item)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # the old way: a pluggy before 1.2 knows no other
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Put the test's function in virtual time, before those get at it who run it."""
    if not (isinstance(item, pytest.Function) and _is_virtual(item)):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        holder, name = _place_of_function(item)
        patch.setattr(holder, name, _in_virtual_time(item, getattr(holder, name)))
        yield


def _is_virtual(item: pytest.Function) -> bool:
    if _is_async(item):
        return item.get_closest_marker("virtual_time") is not None or _given_clock(item) is not None
    if any(mark.name == "virtual_time" for mark in item.own_markers):  # a marker of its class or module is no mistake
        pytest.fail("@pytest.mark.virtual_time is for `async def` tests: this one has no loop", pytrace=False)
    return False


def _is_async(item: pytest.Function) -> bool:
    return inspect.iscoroutinefunction(_test_of(item))


def _test_of(item: pytest.Function) -> Callable[..., Any]:
    """The user's function; Hypothesis wraps it in one that calls it many times, and is not async."""
    test: Callable[..., Any] = getattr(getattr(item.obj, "hypothesis", None), "inner_test", item.obj)
    return test


def _place_of_function(item: pytest.Function) -> tuple[Any, str]:
    """The attribute from which the function is taken to be called."""
    if hasattr(item.obj, "hypothesis"):
        return item.obj.hypothesis, "inner_test"
    if _host(item) == "unittest":
        return item.instance, item.name
    return item, "obj"


def _host(item: pytest.Function) -> str | None:
    """Who else makes this test's loop."""
    if item.get_closest_marker("asyncio") is not None and item.config.pluginmanager.has_plugin("asyncio"):
        return "pytest-asyncio"
    if "anyio_backend" in item.funcargs:
        return "anyio"
    import unittest

    if isinstance(item.instance, unittest.IsolatedAsyncioTestCase):
        return "unittest"
    return None


def _in_virtual_time(item: pytest.Function, test: Callable[..., Any]) -> Callable[..., Any]:
    clock = _given_clock(item) or _new_clock(item)
    loop_factory = _options(item).get("loop_factory")
    host = _host(item)
    if host is None:

        @functools.wraps(test)
        def on_own_loop(*args: Any, **kwargs: Any) -> Any:
            from abeyant.aio import run_virtual

            __tracebackhide__ = True
            return run_virtual(test(*args, **kwargs), clock=clock, loop_factory=loop_factory)

        return on_own_loop

    if loop_factory is not None:
        pytest.fail(
            f"virtual_time(loop_factory=...): the loop of this test is made by {host}; set it there", pytrace=False
        )
    if host == "anyio" and "trio" in str(item.funcargs["anyio_backend"]):
        pytest.fail("virtual_time is for asyncio; for trio there is trio.testing.MockClock", pytrace=False)

    @functools.wraps(test)
    async def on_their_loop(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        async with clock:
            return await test(*args, **kwargs)

    return on_their_loop


def _given_clock(item: pytest.Function) -> VirtualClock | None:
    """The fixture's, ours or one that the user put in its place; not what another fixture of that name gives."""
    clock: Any = item.funcargs.get("virtual_time")
    return clock if type(clock).__module__.startswith("abeyant.") else None


def _new_clock(item: pytest.Function) -> VirtualClock:
    from abeyant.aio import VirtualClock
    from abeyant.errors import AbeyantError

    options = {name: value for name, value in _options(item).items() if name != "loop_factory"}
    try:
        return VirtualClock(**options)
    except (TypeError, ValueError, AbeyantError) as error:
        pytest.fail(f"@pytest.mark.virtual_time: {str(error).replace('VirtualClock.__init__()', 'it')}", pytrace=False)


def _options(item: pytest.Function) -> dict[str, Any]:
    marker = item.get_closest_marker("virtual_time")
    if marker is None:
        return {}
    if marker.args:
        pytest.fail(f"@pytest.mark.virtual_time takes named options only, not {marker.args}", pytrace=False)
    return dict(marker.kwargs)
