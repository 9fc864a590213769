"""The pytest plugin: `@pytest.mark.virtual_time` on an `async def` test, and the fixture `virtual_time`.

A marked test runs in virtual time (see `abeyant.aio.virtual`), and so does a test that uses the fixture, which is the
clock. If pytest-asyncio, anyio's plugin or `unittest` runs the test, its body is in virtual time on their loop;
otherwise it gets a new loop in virtual time.

Every pytest run in an environment with abeyant loads this plugin, whether it is used or not. So the plugin is
outside of the package, and imports abeyant and asyncio only for the first marked test. Thus coverage measures the
import of abeyant, too.
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
    "loop_factory=None): run this async test in virtual time, where sleeps and time-outs take no real time; see "
    "abeyant.aio.VirtualClock for the options. loop_factory makes the loop if no other plugin does."
)
_HINT = (
    "Only the loop's clock has moved: time.monotonic(), time.time() and datetime.now() show real time. If the code "
    "reads one of them: @pytest.mark.virtual_time(clocks=True)."
)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture
def virtual_time(request: pytest.FixtureRequest) -> VirtualClock:
    """The virtual clock of this `async def` test, set up by its marker if it has one."""
    item = request.node
    if not (isinstance(item, pytest.Function) and _is_async(item)):
        pytest.fail("the fixture virtual_time is for `async def` tests: others have no loop", pytrace=False)
    return _new_clock(item)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)  # the old style, for pluggy before 1.2
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, None]:
    """Wrap the test function so that it runs in virtual time, before other plugins call it."""
    if not (isinstance(item, pytest.Function) and _is_virtual(item)):
        yield
        return
    clock = _fixture_clock(item) or _new_clock(item)
    with pytest.MonkeyPatch.context() as patch:
        holder, name = _function_attribute(item)
        patch.setattr(holder, name, _in_virtual_time(item, getattr(holder, name), clock))
        outcome = yield
    failed = outcome.excinfo is not None and issubclass(outcome.excinfo[0], AssertionError)
    if failed and not clock.clocks and clock.time() >= 1:
        item.add_report_section("call", "virtual time", _HINT)


def _is_virtual(item: pytest.Function) -> bool:
    if _is_async(item):
        return item.get_closest_marker("virtual_time") is not None or _fixture_clock(item) is not None
    if any(mark.name == "virtual_time" for mark in item.own_markers):  # not for a marker of its class or module
        pytest.fail("@pytest.mark.virtual_time is for `async def` tests: this one has no loop", pytrace=False)
    return False


def _is_async(item: pytest.Function) -> bool:
    return inspect.iscoroutinefunction(_test_function(item))


def _test_function(item: pytest.Function) -> Callable[..., Any]:
    """Return the user's test function; under Hypothesis the inner one, which a synchronous wrapper calls often."""
    test: Callable[..., Any] = getattr(getattr(item.obj, "hypothesis", None), "inner_test", item.obj)
    return test


def _function_attribute(item: pytest.Function) -> tuple[Any, str]:
    """Return the object and the attribute name through which the test function will be called."""
    if hasattr(item.obj, "hypothesis"):
        return item.obj.hypothesis, "inner_test"
    if _host(item) == "unittest":
        return item.instance, item.name
    return item, "obj"


def _host(item: pytest.Function) -> str | None:
    """Return the name of the other plugin or framework that makes this test's loop; None if there is none."""
    if item.get_closest_marker("asyncio") is not None and item.config.pluginmanager.has_plugin("asyncio"):
        return "pytest-asyncio"
    if "anyio_backend" in item.funcargs:
        return "anyio"
    import unittest

    if isinstance(item.instance, unittest.IsolatedAsyncioTestCase):
        return "unittest"
    return None


def _in_virtual_time(item: pytest.Function, test: Callable[..., Any], clock: VirtualClock) -> Callable[..., Any]:
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
        pytest.fail(f"virtual_time(loop_factory=...): {host} makes the loop of this test; set it there", pytrace=False)
    if host == "anyio" and "trio" in str(item.funcargs["anyio_backend"]):
        pytest.fail("virtual_time is for asyncio; for trio use trio.testing.MockClock", pytrace=False)

    @functools.wraps(test)
    async def on_their_loop(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        async with clock:
            return await test(*args, **kwargs)

    return on_their_loop


def _fixture_clock(item: pytest.Function) -> VirtualClock | None:
    """Return the clock from the fixture `virtual_time`; None if it is unused, or overridden by one of another type."""
    clock: Any = item.funcargs.get("virtual_time")
    return clock if type(clock).__module__.startswith("abeyant.") else None


def _new_clock(item: pytest.Function) -> VirtualClock:
    from abeyant.aio import VirtualClock
    from abeyant.errors import AbeyantError, did_you_mean

    options = {name: value for name, value in _options(item).items() if name != "loop_factory"}
    known = inspect.signature(VirtualClock).parameters
    for name in options.keys() - known:
        hint = did_you_mean(name, known) or f": it has {', '.join(known)} and loop_factory"
        pytest.fail(f"@pytest.mark.virtual_time has no option {name}{hint}", pytrace=False)
    try:
        return VirtualClock(**options)
    except (TypeError, ValueError, AbeyantError) as error:
        reason = str(error)
    pytest.fail(f"@pytest.mark.virtual_time: {reason}", pytrace=False)


def _options(item: pytest.Function) -> dict[str, Any]:
    marker = item.get_closest_marker("virtual_time")
    if marker is None:
        return {}
    if marker.args:
        pytest.fail(f"@pytest.mark.virtual_time takes only named options, not {marker.args}", pytrace=False)
    return dict(marker.kwargs)
