"""`Resolver` as its users see it: one operation after the other, errors, closing, forgetting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

import abeyant
from abeyant import Calendar, ManualTimer, Resolution, Resolver, SystemTimer, Watch
from abeyant.resolver import Decided, ResolverClosedError
from abeyant.timer import TimerClosedError


@pytest.fixture
def timer() -> Iterator[ManualTimer]:
    with ManualTimer() as timer:
        yield timer


@pytest.fixture
def ended() -> list[Resolution]:
    return []


def outcomes(ended: list[Resolution]) -> list[tuple[Any, str, float | None]]:
    return [(one.op_id, one.outcome, one.at) for one in ended]


def test_it_completes_is_cancelled_or_expires(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer, details=True)
    for number in range(3):
        watches = [Watch(f"paid/{number}", 10), Watch(f"withdrawn/{number}", role="cancel")]
        assert not resolver.start(number, watches, timeout=timedelta(minutes=1), on_end=ended.append)
    timer.advance(7)
    assert resolver.event("paid/0", 9) == 0
    assert resolver.event("paid/0", 10) == 1
    assert resolver.event("withdrawn/1") == 1
    assert resolver.event("paid/1", 10) == 0
    assert len(resolver) == len(timer) == 1
    timer.advance(60)
    assert ended == [
        Resolution(0, "completed", 7.0, 7.0, Decided("paid/0", 7.0), None, 2),
        Resolution(1, "cancelled", 7.0, 7.0, None, Decided("withdrawn/1", 7.0), 0),
        Resolution(2, "expired", 60.0, 60.0, None, None, 0),
    ]
    assert len(resolver) == len(timer) == 0


def test_what_came_before_completes_it_at_once(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer)
    resolver.event("high watermark", 4)
    assert resolver.start(1, [Watch("high watermark", 4)], timeout=30, on_end=ended.append)
    assert outcomes(ended) == [(1, "completed", 0.0)]
    assert not len(timer)
    assert not Resolver(timer, count="after_start").start(1, [Watch("high watermark", 4)], timeout=30)


@pytest.mark.parametrize(("deadline", "outcome"), [("inclusive", "completed"), ("exclusive", "expired")])
def test_an_event_at_the_deadline_comes_before_the_expiry_o3(
    deadline: Any, outcome: str, timer: ManualTimer, ended: list[Resolution]
) -> None:
    resolver = Resolver(timer, deadline=deadline)
    resolver.start(1, [Watch("key")], timeout=5, on_end=ended.append)
    timer.advance_to(5)
    resolver.event("key")
    assert outcomes(ended) == [(1, outcome, 5.0)]


def test_calls_are_instants_of_their_own_but_within_instant_o3(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer, combine="sum", count="after_start")
    resolver.start("paid once", [Watch("balance", 10)], timeout=5, on_end=ended.append)
    with resolver.instant() as now:
        assert now.event("balance", 10) == 0
        assert not now.start("late", [Watch("balance", 0)], timeout=0, on_end=ended.append)
        now.event("balance", -1)
    assert outcomes(ended) == [("late", "completed", 0.0)]
    resolver.event("balance", 1)
    resolver.event("balance", -1)
    assert [one.op_id for one in ended] == ["late", "paid once"]


def test_an_instant_that_raises_does_not_count(timer: ManualTimer) -> None:
    resolver = Resolver(timer)

    def feed() -> None:
        with resolver.instant() as now:
            now.event("key", 5)
            now.start(1, [Watch("key", 9)], timeout=5)
            now.event("key", 1 // 0)

    with pytest.raises(ZeroDivisionError):
        feed()
    assert len(resolver) == 0
    assert not resolver.start(1, [Watch("key", 5)], timeout=5)


def _block(timer: SystemTimer, until: threading.Event) -> None:
    """Keep the timer's thread busy."""
    busy = threading.Event()

    def block() -> None:
        busy.set()
        until.wait(30)

    timer.call_later(0, block)
    assert busy.wait(30)


def test_a_late_timer_changes_no_outcome_t1_o2() -> None:
    """The deadline has passed when the event comes, though the timer has not got to it."""
    ended: list[Resolution] = []
    hold = threading.Event()
    with SystemTimer() as timer:
        resolver = Resolver(timer)
        _block(timer, hold)
        resolver.start(1, [Watch("key")], timeout=0.01, on_end=ended.append)
        time.sleep(0.02)
        assert not ended
        assert resolver.event("key") == 0
        assert resolver.start(2, [Watch("key")], timeout=1), "what came too late for one is there for the next"
        hold.set()
    assert [(one.outcome, one.waited) for one in ended] == [("expired", 0.01)]


def test_an_op_id_is_free_again_when_its_deadline_has_passed() -> None:
    ended: list[Resolution] = []
    hold = threading.Event()
    with SystemTimer() as timer:
        resolver = Resolver(timer)
        _block(timer, hold)
        resolver.start(1, [Watch("key")], timeout=0.01, on_end=ended.append)
        time.sleep(0.02)
        resolver.start(1, [Watch("key")], timeout=30, on_end=ended.append)
        assert [one.outcome for one in ended] == ["expired"]
        assert resolver.event("key") == 1
        hold.set()


def test_what_on_end_raises_is_reported_and_harms_no_other_t8(timer: ManualTimer, ended: list[Resolution]) -> None:
    reported: list[tuple[BaseException, Any]] = []
    resolver = Resolver(timer, on_error=lambda error, on_end: reported.append((error, on_end)))

    def broken(resolution: Resolution) -> None:
        raise ZeroDivisionError(resolution.op_id)

    async def never_awaited() -> None: ...

    for number, on_end in enumerate([broken, lambda _: never_awaited(), ended.append]):
        resolver.start(number, [Watch("key")], timeout=5, on_end=on_end)
    assert resolver.event("key") == 3
    assert outcomes(ended) == [(2, "completed", 0.0)]
    assert [type(error) for error, _ in reported] == [ZeroDivisionError, TypeError]
    assert reported[0][1] is broken
    resolver.forget("key")
    resolver.start(3, [Watch("key")], timeout=5, on_end=broken)
    timer.advance(6)
    assert len(reported) == 3


def test_a_keyboard_interrupt_is_raised_when_all_have_been_called(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer)

    def interrupt(_: Resolution) -> None:
        raise KeyboardInterrupt

    resolver.start(1, [Watch("key")], timeout=5, on_end=interrupt)
    resolver.start(2, [Watch("key")], timeout=5, on_end=ended.append)
    with pytest.raises(KeyboardInterrupt):
        resolver.event("key")
    assert outcomes(ended) == [(2, "completed", 0.0)]
    resolver.start(3, [Watch("key")], timeout=5, on_end=ended.append)
    assert len(ended) == 2


def test_ends_that_end_others_nest_no_deeper(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer)

    def following(resolution: Resolution) -> None:
        assert isinstance(resolution.op_id, int)
        resolver.event(resolution.op_id + 1)
        ended.append(resolution)

    for number in range(5000):
        resolver.start(number, [Watch(number)], timeout=5, on_end=following)
    resolver.event(0)
    assert [one.op_id for one in ended] == list(range(5000))


def test_each_heartbeat_waits_for_the_next(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer, count="after_start")

    def again(resolution: Resolution) -> None:
        ended.append(resolution)
        if resolution.outcome == "completed":
            resolver.start("beat", [Watch("plane")], timeout=10, on_end=again)

    resolver.start("beat", [Watch("plane")], timeout=10, on_end=again)
    for _ in range(3):
        timer.advance(9)
        assert resolver.event("plane") == 1
    timer.advance(11)
    assert outcomes(ended) == [("beat", "completed", 9.0 * n) for n in (1, 2, 3)] + [("beat", "expired", 37.0)]


def test_nothing_is_accepted_that_could_never_expire_p7(ended: list[Resolution]) -> None:
    timer = ManualTimer()
    resolver = Resolver(timer)
    timer.close()
    with pytest.raises(TimerClosedError):
        resolver.start(1, [Watch("key")], timeout=5, on_end=ended.append)
    assert len(resolver) == 0
    assert resolver.event("key") == 0
    assert not ended


def test_close_hands_back_what_is_pending_and_refuses_what_comes_after_p7(
    timer: ManualTimer, ended: list[Resolution]
) -> None:
    with Resolver(timer, forget_after=60) as resolver:
        resolver.event("other")
        resolver.start(1, [Watch("key")], timeout=5, on_end=ended.append)
        timer.advance(2)
        assert resolver.close() == [Resolution(1, "pending", None, None)]
        assert resolver.close() == []
    assert resolver.closed
    assert not len(timer)
    with pytest.raises(ResolverClosedError, match="accepts no operation or event"):
        resolver.start(1, [Watch("key")], timeout=5)
    with pytest.raises(ResolverClosedError, match="accepts no operation or event"):
        resolver.event("key")
    assert not ended


def test_cancel_takes_out_without_an_end(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer)
    resolver.start(1, [Watch("key"), Watch("key", role="cancel")], timeout=5, on_end=ended.append)
    assert 1 in resolver
    assert resolver.cancel(1)
    assert not resolver.cancel(1)
    assert resolver.event("key") == 0
    assert not len(timer)
    assert not ended


def test_keys_without_events_leave_nothing_behind(timer: ManualTimer) -> None:
    resolver = Resolver(timer)
    for number in range(10):
        resolver.start(number, [Watch(("paid", number)), Watch("all", role="cancel")], timeout=5)
    timer.advance(6)
    assert not resolver._keys


def test_forget_and_remember(timer: ManualTimer, ended: list[Resolution]) -> None:
    resolver = Resolver(timer, combine="sum", forget_after=60)
    resolver.event("a", 2)
    resolver.event("b", 2)
    resolver.start(1, [Watch("a", 3)], timeout=1000, on_end=ended.append)
    resolver.forget("a")
    resolver.start(2, [Watch("a", 3)], timeout=1000, on_end=ended.append)
    timer.advance(90)
    assert set(resolver._keys) == {"a"}, "b was forgotten, and somebody waits for a"
    resolver.event("a", 1)
    assert outcomes(ended) == [(1, "completed", 90.0)], "it keeps what came for it"
    assert resolver.cancel(2)
    timer.advance(130)
    assert not resolver._keys
    assert not len(timer)


def test_business_hours(ended: list[Resolution]) -> None:
    """Thursday 16:30 in Berlin; Good Friday is none, Monday begins at 09:00."""
    begin = datetime(2026, 4, 2, 14, 30, tzinfo=UTC).timestamp()
    office = Calendar("Mon-Fri 09:00-17:00", zone="Europe/Berlin", holidays={date(2026, 4, 3)})
    with ManualTimer(start=begin) as timer:
        resolver = Resolver(timer, calendar=office)
        watches = [Watch("answer/7"), Watch("on hold/7", role="pause")]
        resolver.start("plain", watches[:1], timeout=timedelta(hours=8), on_end=ended.append)
        resolver.start("paused", watches, timeout=timedelta(hours=8), on_end=ended.append)
        timer.advance_to(datetime(2026, 4, 6, 8, tzinfo=UTC).timestamp())
        resolver.event("on hold/7")
        timer.advance(3600)
        resolver.event("on hold/7", 0)
        timer.advance(12 * 3600)
    ends = [datetime.fromtimestamp(one.at or 0, UTC).isoformat() for one in ended]
    assert ends == ["2026-04-06T14:30:00+00:00"], "the other has half an hour more on Tuesday"
    assert timer.close() == []
    assert len(resolver) == 1


def test_on_a_machines_clock_the_calendar_has_its_time() -> None:
    ended: list[Resolution] = []
    with SystemTimer() as timer:
        always = Calendar("Mon-Sun 00:00-24:00")
        resolver = Resolver(timer, calendar=always)
        resolver.start(1, [Watch("key")], timeout=0.01, on_end=ended.append)
        give_up = time.monotonic() + 30
        while not ended:
            assert time.monotonic() < give_up
            time.sleep(0.001)
        never = Calendar("Mon 09:00-17:00", holidays=_EveryDay())
        resolver = Resolver(timer, calendar=never)
        with pytest.raises(ValueError, match="calendar: nothing is open"):
            resolver.start(1, [Watch("key")], timeout=1)
        assert len(resolver) == 0
        assert not resolver._keys
    assert ended[0].outcome == "expired"
    assert ended[0].waited == pytest.approx(0.01, abs=1e-5)


class _EveryDay:
    def __contains__(self, day: object) -> bool:
        return True


def test_tasks_that_clocks_round_do_not_spin() -> None:
    """Beyond 2**53 ns a clock in seconds shows no single nanoseconds."""
    ended: list[Resolution] = []
    with ManualTimer(start=1.7e9 + 0.1) as timer:
        resolver = Resolver(timer)
        for number in range(100):
            timer.advance(0.000_001_1)
            resolver.start(number, [Watch("key")], timeout=number / 7e6, on_end=ended.append)
        assert timer.advance(1) < 400
    assert len(ended) == 100


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({}, TypeError, "operation 1 needs either a timeout or a deadline: give"),
        ({"timeout": 1, "deadline": 2}, TypeError, "operation 1 needs either a timeout or a deadline: give"),
        ({"timeout": -1}, ValueError, "timeout must be from 0 seconds to a hundred years, not -1"),
        ({"timeout": float("inf")}, ValueError, "timeout must be from 0 seconds to a hundred years, not inf"),
        (
            {"timeout": 1, "extend": float("nan")},
            ValueError,
            "extend must be from 0 seconds to a hundred years, not nan",
        ),
        ({"timeout": "15 min"}, TypeError, "timeout must be seconds .a number or a timedelta., not '15 min'"),
        ({"timeout": 1, "condition": "one"}, ValueError, "condition must be 'all', 'any' or 'then', not 'one'"),
        ({"timeout": 1, "on_end": 5}, TypeError, "on_end must be callable, not 5"),
        ({"timeout": 1, "watches": []}, ValueError, "operation 1 must watch at least one key"),
        ({"timeout": 1, "watches": ["key"]}, TypeError, r"an abeyant.Watch, such as Watch\(key\), not 'key'"),
        ({"timeout": 1, "watches": "key"}, TypeError, "not 'k'"),
        ({"timeout": 1, "watches": [Watch("key", True)]}, TypeError, "required must be a finite number, not True"),
        ({"timeout": 1, "watches": [Watch("key", 1, "ends")]}, ValueError, "role must be 'complete', .* not 'ends'"),  # type: ignore[arg-type]
        (
            {"timeout": 1, "watches": [Watch("a", role="pause")] * 2},
            ValueError,
            "several watches have role 'pause'; give it only one",
        ),
        (
            {"deadline": 1, "watches": [Watch("a"), Watch("b", role="pause")]},
            ValueError,
            "a deadline cannot be combined with a calendar or a watch with role 'pause': it is a fixed instant",
        ),
    ],
)
def test_mistakes_have_one_clear_error(given: Any, error: type[Exception], message: str, timer: ManualTimer) -> None:
    resolver = Resolver(timer)
    with pytest.raises(error, match=message):
        resolver.start(1, given.pop("watches", [Watch("key")]), **given)
    assert len(resolver) == 0
    assert not resolver._keys


@pytest.mark.parametrize(
    ("rules", "watches", "condition", "message"),
    [
        ({"serves": "oldest"}, "ab", "all", "has several watches with role 'complete', .* serves='oldest'"),
        ({"holds": "at_deadline"}, "ab", "then", "has condition 'then', .* holds='at_deadline'"),
        ({"within": "step"}, "ax", "then", "has condition 'then' and a watch with role .extend., .* within='step'"),
    ],
)
def test_watches_that_contradict_the_rules_are_refused(
    rules: Any, watches: str, condition: Any, message: str, timer: ManualTimer
) -> None:
    with pytest.raises(ValueError, match=message):
        Resolver(timer, **rules).start(
            1,
            [Watch(key, role="extend" if key == "x" else "complete") for key in watches],
            timeout=1,
            condition=condition,
        )


def test_rules_and_numbers_are_checked(timer: ManualTimer) -> None:
    with pytest.raises(ValueError, match="count must be 'always', 'from_start' or 'after_start', not 'later'"):
        Resolver(timer, count="later")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"timer must be a SystemTimer, ManualTimer or aio\.Timer, not <class"):
        Resolver(ManualTimer)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"calendar must be an abeyant\.Calendar, not str"):
        Resolver(timer, calendar="Mon-Fri 09:00-17:00")  # type: ignore[arg-type]
    resolver = Resolver(timer)
    for wrong in (float("nan"), "1", None, True):
        with pytest.raises(TypeError, match="progress must be a finite number, not"):
            resolver.event("key", wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unhashable"):
        resolver.event([])  # type: ignore[arg-type]
    resolver.start(1, [Watch("key")], timeout=5)
    with pytest.raises(ValueError, match="operation 1 is pending: use another op_id, or cancel it first"):
        resolver.start(1, [Watch("key")], timeout=5)
    now = resolver.instant()
    now.start(2, [Watch("key")], timeout=5)
    now.start(2, [Watch("key")], timeout=5)
    with pytest.raises(ValueError, match="two operations of one instant"):
        now.__exit__(None, None, None)
    assert len(resolver) == 1


def test_the_package_has_it_without_importing_it() -> None:
    assert abeyant.Resolver is Resolver
    assert {"Calendar", "Resolution", "Resolver", "Watch"} <= set(dir(abeyant))
    with pytest.raises(AttributeError, match="has no attribute 'Resolvers'"):
        abeyant.Resolvers  # noqa: B018
