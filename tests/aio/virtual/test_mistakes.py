"""Mistakes in the use of virtual time: one clear error, naming the value, the place and the mend."""

import asyncio
import math
from datetime import timedelta

import pytest

from abeyant import aio
from aio.virtual.loops import HOUR, RunReal, RunVirtual


def test_virtual_time_inside_of_virtual_time_is_refused(run: RunReal, run_virtual: RunVirtual) -> None:
    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"this loop is in virtual time already, with <VirtualClock at"):
            await aio.virtual_time().__aenter__()
        await asyncio.sleep(HOUR)

    async def within() -> None:
        async with aio.virtual_time():
            await main()

    run(within())
    run_virtual(main())


def test_a_clock_is_on_one_loop_at_a_time(run: RunReal) -> None:
    clock = aio.VirtualClock()

    async def main() -> None:
        async with clock:
            with pytest.raises(RuntimeError, match="is in use already"):
                await clock.__aenter__()
            await asyncio.to_thread(elsewhere)

    def elsewhere() -> None:
        async def other() -> None:
            async with clock:
                pass

        with pytest.raises(RuntimeError, match="is in use"):
            asyncio.run(other())
        with pytest.raises(RuntimeError, match="is in use"):
            aio.run_virtual(other(), clock=clock)

    run(main())


def test_a_loop_without_a_selector_is_refused_and_the_mend_is_told() -> None:
    uvloop = pytest.importorskip("uvloop", reason="uvloop is not installed")

    async def main() -> None:
        with pytest.raises(RuntimeError, match=r"uvloop\.Loop has none .* run this test on asyncio\.SelectorEventLoop"):
            await aio.virtual_time().__aenter__()
        await asyncio.sleep(0.001)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
    with pytest.raises(RuntimeError, match=r"uvloop\.Loop has none"):
        aio.run_virtual(main(), loop_factory=uvloop.new_event_loop)


def test_advance_outside_of_the_block_is_refused() -> None:
    with pytest.raises(RuntimeError, match="this clock is not in use"):
        asyncio.run(aio.VirtualClock().advance(1))


def test_run_virtual_takes_a_coroutine_and_makes_the_loop() -> None:
    with pytest.raises(TypeError, match=r"run_virtual takes a coroutine, .* not <function"):
        aio.run_virtual(asyncio.sleep)  # type: ignore[arg-type]

    async def main() -> None:
        aio.run_virtual(asyncio.sleep(1))

    with pytest.raises(RuntimeError, match="inside a running one use `async with virtual_time"):
        asyncio.run(main())


@pytest.mark.parametrize("name", ["start", "io_grace", "patience", "limit"])
def test_options_that_are_no_times_are_named(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} must be seconds .*, not 'soon'"):
        aio.virtual_time(**{name: "soon"})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"{name} must be seconds .*, not True"):
        aio.virtual_time(**{name: True})  # type: ignore[arg-type]
    for wrong in (-1, math.nan, timedelta(seconds=-1)):
        with pytest.raises(ValueError, match=f"{name} must be .*0 or more, not "):
            aio.virtual_time(**{name: wrong})  # type: ignore[arg-type]
    if name in ("start", "io_grace"):
        with pytest.raises(ValueError, match=f"{name} must be finite"):
            aio.virtual_time(**{name: math.inf})  # type: ignore[arg-type]


def test_autojump_is_a_truth_value() -> None:
    with pytest.raises(TypeError, match=r"autojump must be True or False, not 0\.1"):
        aio.virtual_time(autojump=0.1)  # type: ignore[arg-type]
