"""The pytest plugin, in pytest runs of its own, with and without the other plugins that run async tests."""

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

ROOT = Path(__file__).parents[3]
T = TypeVar("T")

pytest_plugins = ["pytester"]

ALONE = ("-p", "pytest_abeyant", "-p", "no:asyncio", "-p", "no:anyio", "-p", "no:cacheprovider", "--strict-markers")
WITH_OTHERS = ("-p", "pytest_abeyant", "-p", "no:cacheprovider", "--strict-markers")

HEAD = """
import asyncio, unittest
import pytest

HOUR = 3600.0

def now():
    return asyncio.get_running_loop().time()
"""


def run(pytester: pytest.Pytester, tests: str, *options: str) -> pytest.RunResult:
    pytester.makepyfile(HEAD + tests)
    # Whoever imported the lab before, in this process: an editable installation names it beside the plugin.
    known = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
    return pytester.runpytest_inprocess(*(options or ALONE), "-Werror", "-W", known)


@pytest.mark.slow
def test_a_thousand_tests_that_sleep_an_hour_each(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.virtual_time
@pytest.mark.parametrize("number", range(1000))
async def test_hour(number):
    await asyncio.sleep(HOUR)
    assert now() == HOUR
"""
    run(pytester, tests).assert_outcomes(passed=1000)


def test_the_ways_to_ask_for_it(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.virtual_time
async def test_marker():
    assert now() == 0
    await asyncio.sleep(HOUR)
    assert now() == HOUR

async def test_fixture(virtual_time, tmp_path):
    await asyncio.sleep(HOUR)
    assert virtual_time.time() == now() == HOUR

@pytest.fixture
def clock(virtual_time):
    return virtual_time

async def test_fixture_of_a_fixture(clock):
    await asyncio.sleep(HOUR)
    assert clock.time() == now() == HOUR

class TestOverridden:
    @pytest.fixture
    def virtual_time(self):
        from abeyant import aio
        return aio.VirtualClock(start=HOUR)

    async def test_own_clock(self, virtual_time):
        await asyncio.sleep(HOUR)
        assert now() == 2 * HOUR

class TestNamesake:
    @pytest.fixture
    def virtual_time(self):
        return 12

    @pytest.mark.virtual_time
    async def test_marked(self, virtual_time):
        await asyncio.sleep(HOUR)
        assert virtual_time == 12

    def test_sync(self, virtual_time):
        assert virtual_time == 12

@pytest.mark.virtual_time
class TestClass:
    async def test_method(self):
        await asyncio.sleep(HOUR)

    @staticmethod
    async def test_static():
        await asyncio.sleep(HOUR)

    def test_sync(self):
        pass

class TestIsolated(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.real = asyncio.get_running_loop().time()

    @pytest.mark.virtual_time
    async def test_method(self):
        await asyncio.sleep(HOUR)
        self.assertGreater(now(), self.real + HOUR)

class TestUnit(unittest.TestCase):
    @pytest.mark.virtual_time
    async def test_method(self):
        await asyncio.sleep(HOUR)
        self.assertEqual(now(), HOUR)
"""
    run(pytester, tests).assert_outcomes(passed=11)


def test_options(pytester: pytest.Pytester) -> None:
    tests = """
pytestmark = pytest.mark.virtual_time(start=10, autojump=False)

async def test_by_hand(virtual_time):
    task = asyncio.create_task(asyncio.sleep(5))
    await virtual_time.advance(4.5)
    assert not task.done()
    await virtual_time.advance(0.5)
    assert task.done()
    assert now() == 15

@pytest.mark.virtual_time(start=20)
async def test_the_closest_marker_counts():
    await asyncio.sleep(HOUR)
    assert now() == HOUR + 20

class Loop(asyncio.SelectorEventLoop):
    pass

@pytest.mark.virtual_time(loop_factory=Loop)
async def test_loop():
    assert type(asyncio.get_running_loop()) is Loop
    await asyncio.sleep(HOUR)
"""
    run(pytester, tests).assert_outcomes(passed=3)


def test_each_example_of_hypothesis_has_a_new_loop(pytester: pytest.Pytester) -> None:
    tests = """
from hypothesis import given, settings, strategies as st

@pytest.mark.virtual_time
@settings(max_examples=20, database=None)
@given(st.integers(0, 10**6))
async def test_hypothesis(length):
    assert now() == 0
    await asyncio.sleep(length)
    assert now() == length
"""
    run(pytester, tests).assert_outcomes(passed=1)


def test_mistakes_are_told(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.virtual_time(speed=2)
async def test_unknown(): pass

@pytest.mark.virtual_time(start="now")
async def test_wrong(virtual_time): pass

@pytest.mark.virtual_time(5)
async def test_positional(): pass

@pytest.mark.virtual_time
def test_sync(): pass

def test_sync_fixture(virtual_time): pass

async def test_unmarked(): pass
"""
    result = run(pytester, tests)
    result.assert_outcomes(failed=4, errors=2)
    output = result.stdout.str()
    assert "@pytest.mark.virtual_time has no option speed: it has start, autojump, " in output
    assert "During handling" not in output
    assert "@pytest.mark.virtual_time: start must be seconds (a number or a timedelta), not 'now'" in output
    assert "@pytest.mark.virtual_time takes only named options, not (5,)" in output
    assert "@pytest.mark.virtual_time is for `async def` tests: this one has no loop" in output
    assert "the fixture virtual_time is for `async def` tests: others have no loop" in output
    assert "async def functions are not natively supported" in output  # as without the plugin


def test_failures_and_deadlocks_are_shown_at_the_tests_line(pytester: pytest.Pytester) -> None:
    tests = """
@pytest.mark.virtual_time
async def test_failure():
    await asyncio.sleep(HOUR)
    assert 1 == 2

@pytest.mark.virtual_time
async def test_deadlock():
    other = asyncio.create_task(asyncio.Event().wait(), name="other")
    await asyncio.sleep(HOUR)
    await asyncio.Lock().acquire()
    await asyncio.Queue().get()  # never

@pytest.mark.virtual_time
async def test_skip():
    await asyncio.sleep(HOUR)
    pytest.skip("after an hour")
"""
    result = run(pytester, tests)
    result.assert_outcomes(failed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            ">       assert 1 == 2",
            ">       await asyncio.Queue().get()  # never",
            "E *DeadlockError: nothing can run any more at 3600 s: *. 2 tasks wait:",
            "E * Task-*, test_deadlock",
            "E *   at *.py:*: await asyncio.Queue().get()  # never",
            "E *   waits for Queue.get of <Queue at *",
            "E * other, Event.wait",
        ]
    )
    assert "runner.run(" not in result.stdout.str()


def test_a_failure_says_which_clocks_have_not_moved(pytester: pytest.Pytester) -> None:
    tests = """
import time

@pytest.mark.virtual_time
async def test_a_cache_forgets():
    until = time.monotonic() + HOUR
    await asyncio.sleep(HOUR)
    assert time.monotonic() >= until

@pytest.mark.virtual_time
async def test_before_anything_moved():
    assert now() == HOUR

@pytest.mark.virtual_time(clocks=True)
async def test_they_move():
    await asyncio.sleep(HOUR)
    assert time.monotonic() < 0
"""
    result = run(pytester, tests)
    result.assert_outcomes(failed=3)
    assert result.stdout.str().count("Only the loop's clock has moved: time.monotonic(), ") == 1


def test_with_pytest_asyncio(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_asyncio", reason="pytest-asyncio is not installed")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\nasyncio_mode = auto\n")
    tests = """
import pytest_asyncio

@pytest_asyncio.fixture
async def loop():
    yield asyncio.get_running_loop()

@pytest.mark.virtual_time
async def test_marker(loop):
    assert asyncio.get_running_loop() is loop
    began = now()
    await asyncio.sleep(HOUR)
    assert now() == began + HOUR

async def test_fixture(virtual_time):
    began = now()
    await asyncio.sleep(HOUR)
    assert now() == began + HOUR == virtual_time.time()

@pytest.mark.virtual_time(start=5)
async def test_start():
    assert now() == 5

async def test_real():
    began = now()
    await asyncio.sleep(0.01)
    assert began + 0.01 <= now() < began + 60

@pytest.mark.virtual_time
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("number", range(3))
async def test_of_a_longer_loop(number):
    await asyncio.sleep(HOUR)

@pytest.mark.virtual_time
async def test_deadlock():
    await asyncio.Event().wait()  # never

@pytest.mark.virtual_time(loop_factory=asyncio.new_event_loop)
async def test_factory(): pass

from abeyant import aio

@pytest_asyncio.fixture
async def clock():
    async with aio.virtual_time() as clock:
        yield clock

@pytest_asyncio.fixture
async def hour(clock):
    began = clock.time()
    await asyncio.sleep(HOUR)
    yield clock.time() - began
    await asyncio.sleep(HOUR)

async def test_fixture_in_virtual_time(hour, clock):
    await asyncio.sleep(HOUR)
    assert hour == HOUR

async def test_deadlock_under_a_fixture(hour):
    await asyncio.Event().wait()
"""
    result = run(pytester, tests, *WITH_OTHERS)
    result.assert_outcomes(passed=8, failed=3)
    result.stdout.fnmatch_lines(
        ["*DeadlockError: nothing can run any more*", "*pytest-asyncio makes the loop of this test; set it there*"]
    )


def test_with_pytest_asyncio_in_strict_mode_unclaimed_tests_get_a_loop_of_their_own(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_asyncio", reason="pytest-asyncio is not installed")
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    tests = """
from hypothesis import given, settings, strategies as st

@pytest.mark.virtual_time
async def test_ours():
    assert now() == 0
    await asyncio.sleep(HOUR)

@pytest.mark.asyncio
@pytest.mark.virtual_time
async def test_theirs():
    assert now() > 0
    await asyncio.sleep(HOUR)

@pytest.mark.asyncio
@pytest.mark.virtual_time
@settings(max_examples=5, database=None)
@given(st.integers(0, 10**6))
async def test_hypothesis(length):
    await asyncio.sleep(length)
"""
    run(pytester, tests, *WITH_OTHERS).assert_outcomes(passed=3)


def test_with_anyio(pytester: pytest.Pytester) -> None:
    pytest.importorskip("anyio", reason="anyio is not installed")
    tests = """
import anyio

pytestmark = [pytest.mark.anyio, pytest.mark.virtual_time]

@pytest.fixture(params=["asyncio"])
def anyio_backend(request):
    return request.param

async def test_sleeps(virtual_time):
    began = now()
    with anyio.move_on_after(60) as scope:
        await anyio.sleep(HOUR)
    assert scope.cancelled_caught
    assert now() == began + 60 == virtual_time.time()

async def test_deadlock():
    await anyio.Event().wait()  # never

@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_trio(): pass
"""
    result = run(pytester, tests, *WITH_OTHERS, "-p", "no:asyncio")
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*DeadlockError: nothing can run any more*", "*for trio use trio.testing.MockClock"])


def test_on_uvloop_it_is_told_why_not(pytester: pytest.Pytester) -> None:
    pytest.importorskip("uvloop", reason="uvloop is not installed")
    tests = """
import uvloop

@pytest.mark.virtual_time(loop_factory=uvloop.new_event_loop)
async def test_uvloop():
    await asyncio.sleep(HOUR)
"""
    result = run(pytester, tests)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        ["*virtual time needs a loop that waits in a Python selector, and uvloop.Loop has none*"]
    )


def test_it_is_in_the_list_of_markers_and_fixtures(pytester: pytest.Pytester) -> None:
    markers = pytester.runpytest_inprocess(*ALONE, "--markers").stdout.str()
    assert "@pytest.mark.virtual_time(start=None, autojump=True, io_grace=0.1, patience=30.0, limit=inf," in markers
    fixtures = pytester.runpytest_inprocess(*ALONE, "--fixtures").stdout.str()
    assert "virtual_time -- " in fixtures


def test_who_does_not_use_it_pays_for_next_to_nothing() -> None:
    code = "import sys, pytest; before = set(sys.modules); import pytest_abeyant; print(set(sys.modules) - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert loaded == "{'pytest_abeyant'}\n"


@pytest.mark.parametrize("plugin", ["pytest_abeyant", "pytest_abeyant_kafka"])
def test_a_pluggy_of_before_1_2_can_load_it(plugin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """pytest 7 takes one as old. Where a plugin cannot be loaded no test runs, and these are loaded unasked."""

    def hookimpl(*, hookwrapper: bool = False, tryfirst: bool = False, trylast: bool = False) -> Callable[[T], T]:
        return lambda function: function

    monkeypatch.setattr(pytest, "hookimpl", hookimpl)
    runpy.run_path(str(ROOT / "src" / f"{plugin}.py"))


def test_pythons_clocks_go_with_the_loop_where_the_marker_asks_for_them(pytester: pytest.Pytester) -> None:
    tests = """
import time
from datetime import datetime, timedelta
from time import monotonic

@pytest.mark.virtual_time(clocks=True)
async def test_marker():
    began = datetime.now()
    await asyncio.sleep(HOUR)
    assert datetime.now() - began == timedelta(hours=1)
    assert monotonic() == time.monotonic() == now() == HOUR

@pytest.mark.virtual_time(clocks=True)
async def test_fixture(virtual_time):
    await virtual_time.advance(HOUR)
    assert monotonic() == virtual_time.time()

def test_real_again():
    assert monotonic() != HOUR

@pytest.mark.virtual_time(clocks="yes")
async def test_mistake():
    pass
"""
    pytest.importorskip("time_machine")
    result = run(pytester, tests, *ALONE, "--durations=0", "-vv")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.virtual_time: clocks must be True or False, not 'yes'"])
    result.stdout.no_fnmatch_line("*3600.*s call*")
