"""Random runs beside a plain dict of who was last seen when."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from abeyant import IdleDetector, ManualTimer

PEERS = st.sampled_from([-1, -2, 0, "a", "b", ("host", 1), 2**61 - 1, None])  # -1 and -2, 0 and 2**61-1 share hashes
SECONDS = st.sampled_from([0.0, 0.25, 1.0, 2.75, 3.0, 10.0, 64.0, 1e6])


class IdleMachine(RuleBasedStateMachine):
    """Quarters of a second are exact in binary, and so the model's times are."""

    @initialize(tick=st.sampled_from([1e-9, 0.25, 1.0]), wheel_size=st.sampled_from([2, 5, 64]))
    def make(self, tick: float, wheel_size: int) -> None:
        self.tick = tick
        self.timer = ManualTimer(tick=tick, wheel_size=wheel_size)
        self.idle = IdleDetector(3.0, self.on_idle, self.timer)
        self.last: dict[object, float] = {}
        self.plans: dict[object, tuple[str, object]] = {}

    def on_idle(self, peer: object) -> None:
        now = self.timer.time()
        assert self.last.pop(peer) + 3.0 <= now, "never early (T1), and once (T3)"
        assert peer not in self.idle
        what, other = self.plans.pop(peer, ("nothing", None))
        if what == "see":
            self._see(other)
        elif what == "forget":
            self._forget(other)

    def _see(self, peer: object) -> None:
        self.idle.seen(peer)
        self.last[peer] = self.timer.time()

    def _forget(self, peer: object) -> None:
        assert self.idle.forget(peer) is (self.last.pop(peer, None) is not None)

    @rule(peer=PEERS)
    def seen(self, peer: object) -> None:
        self._see(peer)

    @rule(peer=PEERS)
    def forget(self, peer: object) -> None:
        self._forget(peer)

    @rule(peer=PEERS, what=st.sampled_from(["see", "forget"]), other=PEERS)
    def plan(self, peer: object, what: str, other: object) -> None:
        self.plans[peer] = (what, other)

    @rule(seconds=SECONDS)
    def pass_time(self, seconds: float) -> None:
        self.timer.advance(seconds)

    @rule(dice=st.integers(0, 19))
    def close_and_make_anew(self, dice: int) -> None:
        if dice:
            return
        watched = self.idle.close()
        assert sorted(map(repr, watched)) == sorted(map(repr, self.last))
        assert len(self.timer) == 0
        self.idle = IdleDetector(3.0, self.on_idle, self.timer)
        self.last.clear()

    @invariant()
    def agrees(self) -> None:
        self.idle._check()
        assert len(self.idle) == len(self.last)
        assert len(self.timer) == bool(self.last)
        now = self.timer.time()
        for peer, last in self.last.items():
            assert peer in self.idle
            assert now < last + 3.0 + self.tick, "at most a tick late (T2)"
            silent = self.idle.idle_for(peer)
            assert silent is not None
            assert max(0.0, now - last - self.tick) <= silent <= now - last


TestIdleAgainstTheModel = IdleMachine.TestCase
