"""`clocks=True`: what programs read besides `loop.time()` shows the loop's time, wherever it was bound."""

import asyncio
import datetime
import functools
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from datetime import datetime as moment
from time import gmtime, localtime, monotonic, monotonic_ns, perf_counter, strftime, time_ns
from time import time as wall

import pytest

from abeyant import SystemTimer, aio
from abeyant.aio.virtual.python_clocks import nanoseconds
from abeyant.errors import AbeyantError
from abeyant.timer.units import machine_time
from aio.virtual.loops import HOUR, RunReal, RunVirtual

time_machine = pytest.importorskip("time_machine")
freezegun = pytest.importorskip("freezegun")

DAY = 24 * HOUR
WALL = ("time.time", "its early binding", "time.time_ns", "its own early binding", "datetime.now")


class Cache:
    """One with its clock as a default, as many have."""

    clock = staticmethod(monotonic)

    def __init__(self, timer: Callable[[], float] = monotonic) -> None:
        self.timer = timer


def virtual() -> aio.VirtualClock:
    return aio.VirtualClock(clocks=True)


def shown() -> dict[str, float]:
    """Seconds, by every way to read a clock that is to go with the loop."""
    cache = Cache()
    return {
        "time.time": time.time(),
        "its early binding": wall(),
        "time.time_ns": time.time_ns() / 1e9,
        "its own early binding": time_ns() / 1e9,
        "datetime.now": moment.now(datetime.UTC).timestamp(),
        "datetime.datetime.now": datetime.datetime.now().timestamp(),
        "time.monotonic": time.monotonic(),
        "from time import monotonic": monotonic(),
        "a default argument": cache.timer(),
        "a class attribute": cache.clock(),
        "a partial": functools.partial(monotonic)(),
        "time.monotonic_ns": time.monotonic_ns() / 1e9,
        "from time import monotonic_ns": monotonic_ns() / 1e9,
    }


def test_all_clocks_go_with_the_loop_and_are_given_back(run: RunReal) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        real = perf_counter()
        async with aio.virtual_time(clocks=True) as clock:
            assert time.monotonic() == loop.time() == clock.time()
            before, today = shown(), date.today()
            await asyncio.sleep(DAY)
            after = shown()
            assert {name: pytest.approx(DAY, abs=1e-5) for name in before} == {
                name: after[name] - before[name] for name in before
            }
            assert date.today() - today == datetime.timedelta(days=1)
            stamp = gmtime(int(wall()))
            assert gmtime() == stamp
            assert localtime() == localtime(int(wall()))
            assert strftime("%Y-%m-%dT%H:%M:%SZ") == strftime("%Y-%m-%dT%H:%M:%SZ", localtime(int(wall())))
            assert time.monotonic() == loop.time()
            assert time.monotonic_ns() == nanoseconds(loop.time())
        assert perf_counter() - real < 60, "it is real"
        left = shown()
        assert {name: pytest.approx(before[name], abs=60) for name in WALL} == {name: left[name] for name in WALL}
        assert abs(time.monotonic() - machine_time()) < 60

    run(main())


def test_they_are_given_back_whatever_is_raised(run: RunReal, run_virtual: RunVirtual) -> None:
    async def fails() -> None:
        async with aio.virtual_time(clocks=True):
            await asyncio.sleep(DAY)
            raise KeyError("it")

    async def stuck() -> None:
        await asyncio.Event().wait()

    real, began = time.time(), time.monotonic()
    with pytest.raises(KeyError):
        run(fails())
    with pytest.raises(aio.DeadlockError):
        run_virtual(stuck(), virtual())
    assert real <= time.time() < real + 60
    assert began <= time.monotonic() < began + 60


def test_one_loop_at_a_time_has_them(run: RunReal) -> None:
    async def main() -> None:
        async with aio.virtual_time(clocks=True):
            with pytest.raises(RuntimeError, match="only one loop at a time can have them"):
                await asyncio.to_thread(aio.run_virtual, asyncio.sleep(1), clock=virtual())
            await asyncio.to_thread(aio.run_virtual, asyncio.sleep(HOUR))  # without them it may
            began = time.time()
            await asyncio.sleep(HOUR)
            assert time.time() == began + HOUR

    run(main())


def test_threads_beside_sleep_and_wait_really(run_virtual: RunVirtual) -> None:
    def sleeps() -> tuple[float, float]:
        began, real = time.monotonic(), perf_counter()
        time.sleep(0.05)
        with pytest.raises(queue.Empty):
            queue.Queue[int]().get(timeout=0.05)
        return time.monotonic() - began, perf_counter() - real

    async def main() -> None:
        await asyncio.sleep(DAY)
        virtual, real = await asyncio.to_thread(sleeps)
        assert virtual == pytest.approx(real, abs=0.04)
        # In the loop's own thread Python's modules wait really, too.
        with pytest.raises(queue.Empty):
            queue.Queue[int]().get(timeout=0.02)
        condition = threading.Condition()
        with condition:
            assert not condition.wait_for(lambda: False, timeout=0.02)
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run([sys.executable, "-c", "import time; time.sleep(30)"], timeout=0.05, capture_output=True)
        ran = threading.Event()
        with SystemTimer() as timer:
            timer.call_later(0.02, ran.set)
            assert ran.wait(30)

    run_virtual(main(), virtual())


def test_stamps_of_one_moment_are_the_same_in_every_thread(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        await asyncio.sleep(DAY)
        assert await asyncio.to_thread(time.time) == time.time()

    run_virtual(main(), virtual())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_the_child_of_a_fork_has_the_machines(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        await asyncio.sleep(DAY)
        child = os.fork()
        if child == 0:
            began = time.monotonic()
            time.sleep(0.01)
            os._exit(0 if time.monotonic() > began else 1)
        assert os.waitpid(child, 0)[1] == 0

    run_virtual(main(), virtual())


def test_who_waits_for_the_clock_to_move_sees_it_move(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        deadline = time.monotonic() + 5
        await asyncio.sleep(5)
        assert time.monotonic() == deadline
        while not time.monotonic() > deadline:  # as aiokafka does
            await asyncio.sleep(0)
        assert deadline < time.monotonic() < deadline + 0.001
        while time.monotonic() < deadline + 1:  # the loop does not even turn
            pass
        assert time.monotonic() < deadline + 3

    run_virtual(main(), virtual())


# -- beside those who patch clocks themselves


def test_it_is_refused_in_one_line_while_freezegun_holds_them(run: RunReal) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with freezegun.freeze_time("2030-01-01", tick=True):
            with pytest.raises(RuntimeError) as refused:
                async with aio.virtual_time(clocks=True):
                    pass
            assert str(refused.value) == (
                "clocks=True: freezegun patches time.monotonic at this moment: enter virtual time before it does, or "
                "use only one of the two"
            )
        assert "VirtualSelector" not in type(loop._selector).__name__  # type: ignore[attr-defined]
        await asyncio.sleep(0)

    run(main())


@pytest.mark.parametrize("ends", ["within", "after"])
def test_freezegun_within_holds_them_until_it_ends(run: RunReal, ends: str) -> None:
    async def main() -> None:
        real, frozen = time.time(), freezegun.freeze_time("2030-01-01")
        async with aio.virtual_time(clocks=True):
            began = time.time()
            frozen.start()
            assert time.time() == 1893456000
            await asyncio.sleep(HOUR)
            assert time.time() == 1893456000
            if ends == "within":
                frozen.stop()
                assert time.time() == began + HOUR
        if ends == "after":
            frozen.stop()
        assert real <= time.time() < real + 60
        await asyncio.wait_for(asyncio.sleep(0.01), 30)

    run(main())


def test_time_machine_without_sets_the_date_from_which_they_go_on(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        assert time.time() == 1893456000
        await asyncio.sleep(HOUR)
        assert time.time() == 1893456000 + HOUR

    with time_machine.travel(1893456000, tick=False):
        run_virtual(main(), virtual())
        assert time.time() == 1893456000


@pytest.mark.parametrize("ends", ["within", "after"])
def test_time_machine_within_holds_the_wall_clock_until_it_ends(run: RunReal, ends: str) -> None:
    async def main() -> None:
        real, travel = time.time(), time_machine.travel(1893456000, tick=False)
        async with aio.virtual_time(clocks=True):
            began = time.time()
            travel.start()
            await asyncio.sleep(HOUR)
            assert time.time() == 1893456000
            if ends == "within":
                travel.stop()
                assert time.time() == began + HOUR
        if ends == "after":
            assert time.time() == 1893456000
            travel.stop()
        assert real <= time.time() < real + 60
        assert not time_machine.traveller_stack

    run(main())


def test_without_time_machine_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "time_machine", None)
    with pytest.raises(AbeyantError, match=r"^virtual_time\(clocks=True\) needs time_machine: pip install .*clocks"):
        aio.VirtualClock(clocks=True)
    aio.VirtualClock()
    with pytest.raises(TypeError, match="clocks must be True or False, not 1"):
        aio.VirtualClock(clocks=1)  # type: ignore[arg-type]
