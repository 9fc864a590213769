"""Without `clocks=True`, a test that only the machine's clocks could end says so, and names the call."""

import asyncio
import time

import pytest

from abeyant import aio
from aio.virtual.loops import RunVirtual


async def polls(moves: int) -> None:
    deadline = time.monotonic() + 3600
    for _ in range(moves):
        if time.monotonic() > deadline:
            return
        await asyncio.sleep(1)
    raise AssertionError("it went on")


def test_it_is_warned_of_and_then_ended(run_virtual: RunVirtual) -> None:
    with pytest.warns(RuntimeWarning, match=r"test_real_clocks.py:\d+ reads time.monotonic\(\) .*clocks=True"):  # noqa: SIM117
        with pytest.raises(aio.DeadlockError, match=r"test_real_clocks.py:\d+ reads time.monotonic\(\)"):
            run_virtual(polls(200_000))
    assert time.monotonic.__self__ is time  # type: ignore[attr-defined]


def test_a_simulation_that_reads_them_now_and_then_is_let_be(run_virtual: RunVirtual) -> None:
    async def main() -> None:
        for number in range(12_000):
            if number % 2:
                time.monotonic()
            await asyncio.sleep(1)

    run_virtual(main())
