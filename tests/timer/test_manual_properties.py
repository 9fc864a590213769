"""Laws T1, T3, T5, T6, T7, T8, T9 of a timer against the sorted list, callbacks that use the timer included."""

from __future__ import annotations

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from abeyant import ManualTimer, TimerTask
from oracle import Oracle


class OnPurposeError(Exception):
    pass


class Start(NamedTuple):
    delay: int  # in nanoseconds, as all times here
    script: list[Action]  # what its callback does


class Cancel(NamedTuple):
    which: int


class Refresh(NamedTuple):
    which: int


class Advance(NamedTuple):
    by: int


class AdvanceToNext(NamedTuple):
    pass


class Raise(NamedTuple):
    pass


Action = Start | Cancel | Refresh | Advance | AdvanceToNext | Raise

delays = st.one_of(
    st.integers(-3, 12),
    st.sampled_from([0, 1, 15, 16, 17, 63, 64, 65, 255, 256, 257, 4095, 4096, 4097]),
    st.integers(0, 10**15),
)
steps = st.one_of(st.integers(0, 12), st.sampled_from([63, 64, 65, 4096, 10**6]), st.integers(0, 10**15))
tasks_by_number = st.integers(0, 30)
plain: st.SearchStrategy[Action] = st.one_of(
    st.builds(Cancel, tasks_by_number), st.builds(Refresh, tasks_by_number), st.builds(Advance, steps),
    st.builds(AdvanceToNext), st.builds(Raise),
)  # fmt: skip
actions: st.SearchStrategy[Action] = st.recursive(
    st.one_of(plain, st.builds(Start, delays, st.just([]))),
    lambda inner: st.one_of(plain, st.builds(Start, delays, st.lists(inner, max_size=4))),
    max_leaves=12,
)


class Trial:
    """Does everything to a timer and to the oracle alike; the callbacks do so, too."""

    def __init__(self, tick: int, wheel_size: int, start: int) -> None:
        self.timer = ManualTimer(tick=tick / 1e9, wheel_size=wheel_size, start=start / 1e9, on_error=self.failed)
        self.oracle = Oracle(tick)
        self.now = start
        self.tasks: list[TimerTask] = []
        self.delays: list[int] = []
        self.ran = 0
        self.raised = 0
        self.errors: list[BaseException] = []
        self.adding = False

    def do(self, action: Action) -> None:
        match action:
            case Start(delay, script):
                self.start(delay, script)
            case Cancel(which) if self.tasks:
                key = which % len(self.tasks)
                assert self.tasks[key].cancel() == self.oracle.remove(key), "T3"
            case Refresh(which) if self.tasks:
                key = which % len(self.tasks)
                pending = self.oracle.refresh(key, self.now + self.delays[key])
                assert self.tasks[key].refresh() == pending
            case Advance(by):
                self.advance(by)
            case AdvanceToNext():
                self.advance_to_next()
            case Raise():
                self.raised += 1
                raise OnPurposeError

    def start(self, delay: int, script: list[Action]) -> None:
        key = len(self.tasks)
        self.oracle.add(key, self.now + delay)
        self.delays.append(delay)
        self.adding = True
        self.tasks.append(self.timer.call_later(delay / 1e9, self.callback, key, script))
        self.adding = False

    def callback(self, key: int, script: list[Action]) -> None:
        assert not self.adding, "T5: not inside the call that starts it"
        deadline = self.oracle.deadline(key)
        assert deadline is not None, "T3: it was still pending"
        self.now = max(self.now, deadline)
        assert self.nanoseconds() == self.now, "T1, T2: it runs at its deadline, or as soon after as it could"
        self.oracle.hand_out(key, self.now)
        self.ran += 1
        assert len(self.timer) == len(self.oracle), "T9"
        for action in script:
            self.do(action)

    def advance(self, by: int) -> None:
        target = self.now + by
        before = self.ran
        assert self.timer.advance(by / 1e9) <= self.ran - before
        self.now = max(self.now, target)
        assert self.nanoseconds() == self.now
        assert not self.oracle.due(target), "T2: all that was due has run"

    def advance_to_next(self) -> None:
        first, before, began = self.oracle.first_deadline(), self.ran, self.now
        ran = self.timer.advance_to_next()
        if first is None:
            assert (ran, self.nanoseconds()) == (0, began)
        else:
            self.now = max(self.now, first)
            assert 1 <= ran <= self.ran - before
            assert self.nanoseconds() == self.now, "not beyond it"
            # A callback may have advanced further: what it started there waits, as after `advance`.
            assert not self.oracle.due(max(first, began)), "T2: all that was due has run"

    def nanoseconds(self) -> int:
        return round(self.timer.time() * 1e9)

    def failed(self, error: BaseException, callback: object) -> None:
        assert callback == self.callback
        self.errors.append(error)

    def compare(self) -> None:
        for error in self.errors:
            if not isinstance(error, OnPurposeError):
                raise error  # a complaint of the callback's, which the timer reported as it should
        assert len(self.timer) == len(self.oracle), "T9"
        for key, task in enumerate(self.tasks):
            assert task.pending == (key in self.oracle), "T3"
        first = self.oracle.first_deadline()
        upcoming = self.timer.next_expiration()
        assert (upcoming is None) == (first is None)
        if upcoming is not None and first is not None:
            assert round(upcoming * 1e9) <= max(first, self.now)
        exact = self.timer.next_deadline()
        assert (None if exact is None else round(exact * 1e9)) == first


@settings(max_examples=10 * settings().max_examples)
@given(
    tick=st.sampled_from([1, 1, 1, 2, 10, 1000]),
    wheel_size=st.sampled_from([2, 3, 4, 16, 64]),
    start=st.sampled_from([0, 0, 1, 1234]),
    program=st.lists(actions, max_size=30),
)
def test_a_timer_and_a_sorted_list_agree_whatever_is_done_to_them(
    tick: int, wheel_size: int, start: int, program: list[Action]
) -> None:
    trial = Trial(tick, wheel_size, start)
    for action in program:
        try:
            trial.do(action)
        except OnPurposeError:
            trial.raised -= 1  # this one was raised out here, and not in a callback
        trial.compare()
    assert len(trial.errors) == trial.raised, "T8: each error was reported, once"
    pending = trial.timer.close()
    trial.oracle.drain([task.args[0] for task in pending])
