"""Random runs against a plain model, dicts and sets without links, locks or wheel; re-entrant operations too."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from abeyant.purgatory import Purgatory, PurgatoryClosedError
from abeyant.timer import ManualTimer
from purgatory.waits import Wait

KEYS = st.sampled_from(["a", "b", "c", -1, -2, ("p", 1)])  # -1 and -2 have the same hash


class PlannedError(Exception):
    """What an operation of the model's raises."""


class Planned(Wait):
    """Completes when its level is reached; at its end it may check keys, raise levels, cancel, submit."""

    def __init__(self, machine: PurgatoryMachine, level: int, timeout: float, plan: str, key: object) -> None:
        super().__init__(timeout)
        self.machine = machine
        self.level = level
        self.plan = plan
        self.key = key

    def try_complete(self) -> bool:
        self.calls.append("try")
        if self.plan == "raise" and self.machine.level < self.level:
            raise PlannedError
        return self.machine.level >= self.level and self.force_complete()

    def on_complete(self) -> None:
        super().on_complete()
        self.machine.ended(self)


class PurgatoryMachine(RuleBasedStateMachine):
    """The model: for every operation its keys and deadline; an operation is pending as long as it has an entry."""

    waits = Bundle("waits")

    def __init__(self) -> None:
        super().__init__()
        self.timer = ManualTimer()
        self.errors = 0
        self.purgatory: Purgatory[Planned] = Purgatory("model", self.timer, on_error=self.on_error)
        self.level = 0
        self.closed = False
        self.pending: dict[Planned, set[object]] = {}
        self.deadlines: dict[Planned, float] = {}
        self.outcomes: dict[Planned, str] = {}
        self.submitted: list[Planned] = []

    def on_error(self, error: Exception, wait: Planned) -> None:
        assert isinstance(error, PlannedError)
        self.errors += 1

    # -- what operations do at their end, in the model and for real

    def ended(self, wait: Planned) -> None:
        assert wait.outcome is not None
        self.pending.pop(wait, None)
        if self.outcomes.get(wait) != "cancelled":
            assert wait not in self.outcomes
        self.outcomes[wait] = wait.outcome
        if wait.plan == "check":
            self.level += 1
            self.purgatory.check_and_complete(wait.key)
        elif wait.plan == "cancel":
            self._cancel_for_key(wait.key)
        elif wait.plan == "submit" and not self.closed:
            self._submit(Planned(self, self.level + 1, 3.0, "none", wait.key), [wait.key])

    def _submit(self, wait: Planned, keys: list[object]) -> bool:
        self.submitted.append(wait)
        before = self.level
        self.pending[wait] = set(keys)
        self.deadlines[wait] = self.timer.time() + wait.timeout
        try:
            done = self.purgatory.try_complete_else_watch(wait, keys)
        except PlannedError:
            assert wait.plan == "raise"
            return False
        if before >= wait.level:
            assert done
        assert done == (wait not in self.pending)
        return done

    def _cancel_for_key(self, key: object) -> None:
        expected = [wait for wait, keys in self.pending.items() if key in keys]
        cancelled = self.purgatory.cancel_for_key(key)
        assert cancelled == expected  # a dict keeps the order of arrival
        for wait in cancelled:
            del self.pending[wait]
            self.outcomes[wait] = "cancelled"

    # -- the steps

    @rule(
        target=waits,
        ahead=st.integers(0, 3),
        timeout=st.sampled_from([0.0, 0.5, 1.0, 2.0, 64.0, 1e6]),
        plan=st.sampled_from(["none", "none", "check", "cancel", "submit", "raise"]),
        keys=st.lists(KEYS, min_size=1, max_size=8),
    )
    def submit(self, ahead: int, timeout: float, plan: str, keys: list[object]) -> Planned:
        wait = Planned(self, self.level + ahead, timeout, plan, keys[0])
        if self.closed:
            try:
                self.purgatory.try_complete_else_watch(wait, keys)
            except PurgatoryClosedError:
                return wait
            raise AssertionError("accepted after close")
        self._submit(wait, keys)
        return wait

    @rule(by=st.integers(0, 2), key=KEYS)
    def advance_level(self, by: int, key: object) -> None:
        """A change, then a check: everything that waits on the key and is due must be gone (P2)."""
        self.level += by
        waiting = [wait for wait, keys in self.pending.items() if key in keys]
        due = [wait for wait in waiting if wait.level <= self.level]
        raising = [wait for wait in waiting if wait not in due and wait.plan == "raise"]
        simple = all(wait.plan in ("none", "raise") for wait in due)
        errors = self.errors
        count = self.purgatory.check_and_complete(key)
        assert all(self.outcomes[wait] in ("completed", "cancelled") for wait in due)
        if simple:  # no operation did more than end
            assert count == len(due)
            assert self.errors == errors + len(raising)

    @rule(seconds=st.sampled_from([0.0, 0.25, 1.0, 2.0, 63.5, 1e6]))
    def let_time_pass(self, seconds: float) -> None:
        self.timer.advance(seconds)
        for wait in self.pending:
            assert self.deadlines[wait] > self.timer.time()

    @rule(wait=waits)
    def force(self, wait: Planned) -> None:
        before = self.outcomes.get(wait)
        assert wait.force_complete() is (before in (None, "cancelled"))

    @rule(wait=waits)
    def cancel(self, wait: Planned) -> None:
        pending = wait in self.pending
        assert self.purgatory.cancel(wait) is pending
        if pending:
            del self.pending[wait]
            self.outcomes[wait] = "cancelled"

    @rule(key=KEYS)
    def cancel_for_key(self, key: object) -> None:
        self._cancel_for_key(key)

    @rule(wait=consumes(waits))
    def submit_again(self, wait: Planned) -> None:
        try:
            self.purgatory.try_complete_else_watch(wait, ["a"])
        except RuntimeError:
            return
        raise AssertionError("accepted twice, or after close")

    @rule(how=st.sampled_from(["expire", "cancel"]), dice=st.integers(0, 9))
    def close(self, how: str, dice: int) -> None:
        if dice:  # seldom: little happens after it
            return
        self.closed = True
        pending = set(self.pending)
        ended = self.purgatory.close(how)  # type: ignore[arg-type]
        assert set(ended) <= pending
        if how == "cancel":
            assert set(ended) == pending
            for wait in ended:
                del self.pending[wait]
                self.outcomes[wait] = "cancelled"
        assert not self.pending

    # -- what holds after every step

    @invariant()
    def counts_agree(self) -> None:
        self.purgatory._check()
        assert self.purgatory.watched == sum(len(keys) for keys in self.pending.values())
        assert self.purgatory.watched_keys == len(set().union(*self.pending.values()))
        assert self.purgatory.delayed == len(self.pending) == len(self.timer)

    @invariant()
    def every_operation_ends_once(self) -> None:
        for wait in self.submitted:
            outcome = self.outcomes.get(wait)
            ends = {"completed": ["complete"], "expired": ["complete", "expire"]}.get(outcome or "", [])
            assert wait.ends == ends
            assert wait.outcome == outcome
        stats = self.purgatory.stats()
        assert stats.expired == sum(outcome == "expired" for outcome in self.outcomes.values())
        assert stats.errors == self.errors


PurgatoryMachine.TestCase.settings = settings(
    max_examples=2 * settings().max_examples, stateful_step_count=40, deadline=None
)
TestPurgatoryAgainstTheModel = PurgatoryMachine.TestCase
