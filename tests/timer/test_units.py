"""Seconds outside, nanoseconds inside."""

from __future__ import annotations

import asyncio
import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abeyant import DelayedOperation, IdleDetector, ManualTimer
from abeyant.aio import Purgatory, run_virtual, virtual_time
from abeyant.timer.units import NEVER, to_nanoseconds, to_seconds


@pytest.mark.parametrize(
    ("seconds", "nanoseconds"),
    [
        (0, 0),
        (1, 10**9),
        (-1, -(10**9)),
        (0.1, 10**8),
        (1e-9, 1),
        (0.4e-9, 0),
        (0.6e-9, 1),
        (-1.5, -1_500_000_000),
        (0.1 + 0.2, 300_000_000),
        (Decimal("0.25"), 250_000_000),
        (Fraction(1, 4), 250_000_000),
        (np.float64(0.25), 250_000_000),
        (np.float32(0.25), 250_000_000),
        (np.int64(3), 3 * 10**9),
        (timedelta(milliseconds=1), 10**6),
        (timedelta(microseconds=-1), -1000),
        (timedelta(days=365), 365 * 86_400 * 10**9),
    ],
)
def test_seconds_become_whole_nanoseconds_to_the_nearest(seconds: float, nanoseconds: int) -> None:
    assert to_nanoseconds(seconds, "delay") == nanoseconds


@pytest.mark.parametrize(
    "huge",
    [
        pytest.param(math.inf, id="infinite"),
        pytest.param(1e300, id="float"),
        pytest.param(5e9, id="158 years"),
        pytest.param(2**63, id="machine integer"),
        pytest.param(10**400, id="beyond any float"),
        pytest.param(timedelta(days=999_999_999), id="timedelta"),
        pytest.param(Decimal("1e30"), id="decimal"),
    ],
)
def test_infinite_and_huge_times_become_never_of_either_sign(huge: float) -> None:
    assert to_nanoseconds(huge, "delay") == NEVER
    assert to_nanoseconds(-huge, "delay") == -NEVER


def test_never_is_infinity_again() -> None:
    assert to_seconds(NEVER) == math.inf
    assert to_seconds(NEVER + 1) == math.inf
    assert to_seconds(1_500_000_000) == 1.5


@pytest.mark.parametrize("nan", [math.nan, Decimal("nan"), np.float64("nan")])
def test_nan_is_refused_by_name(nan: float) -> None:
    with pytest.raises(ValueError, match=r"delay must be .* not NaN"):
        to_nanoseconds(nan, "delay")


@pytest.mark.parametrize(
    "bad", [None, "5", b"5", "soon", [], (), {}, 1j, object, bytearray(b"5"), np.datetime64(5, "ns")]
)
def test_what_is_no_time_is_refused_by_name_and_value(bad: object) -> None:
    with pytest.raises(TypeError, match="tick must be seconds") as refusal:
        to_nanoseconds(bad, "tick")  # type: ignore[arg-type]
    assert repr(bad) in str(refusal.value)


@given(seconds=st.floats(-3.9e9, 3.9e9))
def test_it_is_the_nearest_nanosecond_as_far_as_a_float_can_tell(seconds: float) -> None:
    exact = Fraction(seconds) * 10**9
    off = abs(to_nanoseconds(seconds, "delay") - exact)
    assert off <= Fraction(1, 2) + abs(exact) / 2**52


@given(microseconds=st.integers(-(10**15), 10**15))
def test_a_timedelta_is_exact(microseconds: int) -> None:
    assert to_nanoseconds(timedelta(microseconds=microseconds), "delay") == microseconds * 1000


@given(nanoseconds=st.integers(0, 2**52))  # 52 days, to which a float of seconds tells nanoseconds apart
@example(nanoseconds=4_503_599_627_370_495)
def test_a_float_of_seconds_comes_back_as_the_same_nanosecond(nanoseconds: int) -> None:
    assert to_nanoseconds(to_seconds(nanoseconds), "time") in range(nanoseconds - 1, nanoseconds + 2)
    if nanoseconds < 2**50:
        assert to_nanoseconds(to_seconds(nanoseconds), "time") == nanoseconds


@pytest.mark.parametrize("bad", [0, -1, 1e-10, math.inf, 1e300])
def test_a_tick_must_be_a_nanosecond_or_more_and_finite(bad: float) -> None:
    with pytest.raises(ValueError, match=r"tick must be at least a nanosecond"):
        ManualTimer(tick=bad)


@pytest.mark.parametrize("take", ["timer", "detector", "operation", "virtual time", "aio purgatory"])
def test_what_is_a_time_is_the_same_everywhere(take: str) -> None:
    def taken(time: Any) -> float:
        if take == "timer":
            return ManualTimer().call_later(time, int).deadline
        if take == "detector":
            return IdleDetector(time, print, ManualTimer()).timeout
        if take == "operation":
            return DelayedOperation(time).timeout
        if take == "virtual time":
            return virtual_time(limit=time)._limit

        async def wait() -> float:
            began = asyncio.get_running_loop().time()
            assert not await Purgatory("p").wait(["k"], timeout=time)
            return asyncio.get_running_loop().time() - began

        return run_virtual(wait())

    for time in (1.5, Decimal("1.5"), Fraction(3, 2), np.float32(1.5), timedelta(seconds=1.5)):
        assert taken(time) == 1.5
    for mistake in (True, "1.5", None, 1.5j, np.True_, np.timedelta64(5, "s"), np.timedelta64(5_000_000_000, "ns")):
        with pytest.raises(TypeError, match=r"must be seconds \(a number or a timedelta\), not "):
            taken(mistake)


def test_t1_nanoseconds_of_a_timedelta_that_has_them_are_kept() -> None:
    pandas = pytest.importorskip("pandas")
    assert to_nanoseconds(pandas.Timedelta(-1, "ns"), "delay") == -1
    assert to_nanoseconds(pandas.Timedelta(365, "D") + pandas.Timedelta(1, "ns"), "delay") == 365 * 86_400 * 10**9 + 1
    assert DelayedOperation(pandas.Timedelta(1500, "ns")).timeout == 1500e-9
    timer = ManualTimer()
    ran: list[float] = []
    timer.call_later(pandas.Timedelta(1500, "ns"), lambda: ran.append(timer.time()))
    timer.advance(1499e-9)
    assert ran == []
    timer.advance(1e-9)
    assert ran == [1500e-9]
