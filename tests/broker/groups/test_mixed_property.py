"""Members of both protocols come and go as they like, and the coordinator moves: nothing is had by two, all goes on."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from broker.groups.mixed_desk import MixedDesk, New, Old, settle
from seeds import share

_MOST = 6


class Mixed(RuleBasedStateMachine):
    """What a member has it has until it says otherwise; who has been put out does not count."""

    @initialize()
    def begin(self) -> None:
        self.desk = MixedDesk()
        self.members: list[Old | New] = []
        self.named = 0

    def _add(self, member: Old | New) -> None:
        self.members.append(member)
        member.beat()

    @rule(kind=st.sampled_from(["eager", "cooperative", "new"]))
    def one_comes(self, kind: str) -> None:
        if len(self.members) < _MOST:
            self.named += 1
            name = f"member-{self.named}"
            self._add(New(self.desk, name) if kind == "new" else Old(self.desk, name, eager=kind == "eager"))

    @rule(data=st.data(), says=st.booleans())
    def one_goes(self, data: Any, says: bool) -> None:
        """It leaves, or falls silent for ever."""
        free = [member for member in self.members if not member.waits]
        if free:
            gone = data.draw(st.sampled_from(free))
            self.members.remove(gone)
            if says:
                gone.leave()

    @rule(data=st.data())
    def one_beats(self, data: Any) -> None:
        if self.members:
            data.draw(st.sampled_from(self.members)).beat()

    @rule()
    def all_beat(self) -> None:
        for member in self.members:
            member.beat()
            settle(self.members)

    @rule(seconds=st.sampled_from([1.0, 14.0, 29.0, 41.0]))
    def time_passes(self, seconds: float) -> None:
        self.desk.timer.advance(seconds)

    @rule()
    def the_coordinator_moves(self) -> None:
        self.desk.move()

    @rule(data=st.data())
    def an_answer_arrives(self, data: Any) -> None:
        waiting = [member for member in self.members if member.waits]
        if waiting:
            data.draw(st.sampled_from(waiting)).hear()

    @rule()
    def all_answers_arrive(self) -> None:
        settle(self.members)

    @invariant()
    def nothing_is_had_by_two(self) -> None:
        here = self.desk.members
        had = [partition for member in self.members if member.id in here for partition in member.has]
        assert len(had) == len(set(had))

    def teardown(self) -> None:
        """Whatever has been, a group goes on: who wants all gets all, and the last to leave leaves nothing behind."""
        if not hasattr(self, "desk"):
            return
        for _ in range(_MOST * 4):
            self.desk.timer.advance(10.0)
            for member in self.members:
                member.beat()
                settle(self.members)
        if self.members:
            assert {one for member in self.members for one in member.has} == self.desk.all
            assert self.desk.kind == ("consumer" if any(isinstance(one, New) for one in self.members) else "classic")
        for member in self.members:
            member.leave()
        assert not self.desk.members
        last = New(self.desk, "last")
        last.beat()
        assert last.has == self.desk.all


TestMixed = Mixed.TestCase
TestMixed.settings = settings(
    max_examples=share(60), stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)


def test_a_group_that_changes_back_and_forth_knows_what_a_silent_member_has() -> None:
    desk = MixedDesk()
    silent, first, second = Old(desk, "silent", eager=True), New(desk, "first"), New(desk, "second")
    silent.beat()
    settle([silent])
    assert silent.has == desk.all
    first.beat()
    first.leave()
    assert desk.kind == "classic"
    second.beat()
    assert (desk.kind, second.has) == ("consumer", frozenset())
    for _ in range(3):
        for member in silent, second:
            member.beat()
            settle([silent, second])
    assert (len(silent.has), len(second.has)) == (2, 2)


def test_the_rebalance_after_a_change_of_protocol_survives_the_coordinator() -> None:
    desk = MixedDesk()
    members: list[Old | New] = [Old(desk, "one", eager=True), Old(desk, "two", eager=True)]
    first = New(desk, "first")
    for member in (*members, first):
        member.beat()
    settle(members)
    first.leave()
    assert desk.kind == "classic"
    desk.move()
    for _ in range(3):
        for member in members:
            member.beat()
            settle(members)
    assert [len(member.has) for member in members] == [2, 2]


class _Closed(dict[str, Any]):
    """A group's members, of which one can be looked up, and all can not."""

    def _refuse(self, *_: object) -> Any:
        raise AssertionError("all members were looked at")

    __iter__ = keys = values = items = _refuse


def test_a_heartbeat_that_brings_nothing_new_looks_at_no_other_member() -> None:
    desk = MixedDesk()
    members: list[Old | New] = [New(desk, "one"), Old(desk, "two", eager=True)]
    for _ in range(5):
        for member in members:
            member.beat()
            settle(members)
    group = desk.shard.consumers["group"]
    group.members = _Closed(group.members)
    for member in members:
        member.beat()
        settle(members)
    assert [len(member.has) for member in members] == [2, 2]
