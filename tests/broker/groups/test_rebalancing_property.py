"""Random members beside a plain model: dicts, a list, and times that are looked at one by one (K5).

The model knows of each member only when it was last heard of and whether it waits. It says who is in the group, in
which state, who has to have been answered, and when. Whatever members do, the group can go on.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from abeyant.broker.groups.classic.member import JoinResponse, SyncResponse
from abeyant.broker.wire.schema import ErrorCode
from broker.groups.desk import NONE, Desk
from seeds import share

SESSION, REBALANCE, NEW = 10.0, 25.0, 300.0
_TICK = 0.002  # seconds: what an expiry may be late


class Known:
    """A member, as the model sees it."""

    def __init__(self, until: float) -> None:
        self.until = until  # when it will have been silent for too long
        self.joins: list[JoinResponse] | None = None  # where the answer to its JoinGroup will be
        self.syncs: list[SyncResponse] | None = None
        self.synced = True

    @property
    def waits(self) -> bool:
        return self.joins is not None or self.syncs is not None


class Groups(RuleBasedStateMachine):
    """The model is `members`, `state`, `generation` and `deadline`."""

    @initialize()
    def begin(self) -> None:
        self.desk = Desk()
        self.now = 0.0
        self.members: dict[str, Known] = {}
        self.newcomers: list[tuple[Known, list[JoinResponse]]] = []  # they wait, and their ids are not known yet
        self.answers: dict[str, JoinResponse] = {}
        self.state = "Empty"
        self.generation = 0
        self.deadline = 0.0  # of the half of the rebalance that is on

    # -- the model

    def _all(self) -> list[Known]:
        return [*self.members.values(), *(known for known, _ in self.newcomers)]

    def _prepare(self) -> None:
        for known in self.members.values():
            if known.syncs is not None:
                assert [one.error for one in known.syncs] == [ErrorCode.rebalance_in_progress]
                known.syncs, known.until = None, self.now + SESSION
        first = self.state == "Empty"
        self.state = "PreparingRebalance"
        self.deadline = self.now if first else self.now + REBALANCE
        self._look(over=first)

    def _look(self, *, over: bool = False) -> None:
        """Whether all have joined."""
        if self.state != "PreparingRebalance" or not (over or all(known.joins is not None for known in self._all())):
            return
        for member, known in list(self.members.items()):
            if known.joins is None:
                del self.members[member]
        self.generation += 1
        for known, told in self.newcomers:
            assert [one.error for one in told] == [NONE]
            self.members[told[0].member_id] = known
        self.newcomers.clear()
        if not self.members:
            self.state = "Empty"
            return
        self.state = "CompletingRebalance"
        self.deadline = self.now + REBALANCE
        for member, known in self.members.items():
            assert known.joins is not None
            (answer,) = known.joins
            assert (answer.error, answer.generation) == (NONE, self.generation)
            self.answers[member] = answer
            known.joins, known.until, known.synced = None, self.now + SESSION, False
        assert sum(bool(self.answers[member].members) for member in self.members) == 1, "one leads, and knows all"

    def _gone(self, *gone: str) -> None:
        for member in gone:
            del self.members[member]
        if self.state in ("Stable", "CompletingRebalance"):
            self._prepare()
        else:
            self._look()

    # -- what members do

    @rule()
    def a_newcomer_joins(self) -> None:
        known = Known(self.now + NEW)
        known.joins = self.desk.join(session=SESSION, rebalance=REBALANCE)
        self.newcomers.append((known, known.joins))
        self._begin_or_look()

    def _begin_or_look(self) -> None:
        if self.state == "PreparingRebalance":
            self._look()
        else:
            self._prepare()

    @rule(data=st.data(), changed=st.booleans())
    def a_member_joins_again(self, data: Any, changed: bool) -> None:
        free = [member for member, known in self.members.items() if not known.waits]
        if not free:
            return
        self._join(data.draw(st.sampled_from(free)), b"%d" % data.draw(st.integers(0, 3)) if changed else b"topics")

    def _join(self, member: str, metadata: bytes) -> None:
        known = self.members[member]
        protocols = (("range", metadata),)
        same = self.desk.group.members[member].protocols == protocols
        leads = self.desk.group.leader == member
        told = self.desk.join(member, session=SESSION, rebalance=REBALANCE, protocols=protocols)
        if self.state == "PreparingRebalance" or not same or (self.state == "Stable" and leads):
            known.joins = told
            self._begin_or_look()
        else:
            assert [(one.error, one.generation) for one in told] == [(NONE, self.generation)]

    @rule(data=st.data())
    def a_member_syncs(self, data: Any) -> None:
        free = [member for member, known in self.members.items() if not known.waits and member in self.answers]
        if not free:
            return
        self._sync(data.draw(st.sampled_from(free)))

    @rule()
    def all_join_and_sync(self) -> None:
        for member, known in list(self.members.items()):
            if self.state == "PreparingRebalance" and not known.waits:
                self._join(member, b"topics")
        for member, known in list(self.members.items()):
            if not known.waits:
                self._sync(member)

    def _sync(self, member: str) -> None:
        known, answer = self.members[member], self.answers[member]
        told = self.desk.sync(answer, **{f"m{place}": b"of %d" % place for place in range(len(answer.members))})
        if answer.generation != self.generation:
            assert [one.error for one in told] == [ErrorCode.illegal_generation]
        elif self.state == "PreparingRebalance":
            assert [one.error for one in told] == [ErrorCode.rebalance_in_progress]
        elif self.state == "Stable":
            known.synced = True
            assert [one.error for one in told] == [NONE]
        else:
            known.synced, known.syncs = True, told
            if self.desk.group.leader == member:
                self.state = "Stable"
                for other in self.members.values():
                    if other.syncs is not None:
                        assert [one.error for one in other.syncs] == [NONE]
                        other.syncs, other.until = None, self.now + SESSION
            else:
                assert told == []

    @rule(data=st.data())
    def a_member_is_alive(self, data: Any) -> None:
        free = [member for member, known in self.members.items() if not known.waits and member in self.answers]
        if not free:
            return
        member = data.draw(st.sampled_from(free))
        error = self.desk.heartbeat(self.answers[member])
        if self.answers[member].generation != self.generation:
            assert error is ErrorCode.illegal_generation
        else:
            self.members[member].until = self.now + SESSION
            assert error is (NONE if self.state != "PreparingRebalance" else ErrorCode.rebalance_in_progress)

    @rule(data=st.data())
    def a_member_leaves(self, data: Any) -> None:
        free = [member for member, known in self.members.items() if not known.waits and member in self.answers]
        if not free:
            return
        member = data.draw(st.sampled_from(free))
        assert self.desk.leave(self.answers[member]) == [NONE]
        self._gone(member)

    @rule()
    def somebody_strange_asks(self) -> None:
        strange = JoinResponse(NONE, "strange", self.generation)
        assert self.desk.heartbeat(strange) is ErrorCode.unknown_member_id
        assert [one.error for one in self.desk.sync(strange)] == [ErrorCode.unknown_member_id]
        assert self.desk.leave(strange) == [ErrorCode.unknown_member_id]

    @rule(seconds=st.sampled_from([0.5, 4.0, 9.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        target = self.now + seconds
        while True:
            ends = [known.until for known in self.members.values() if not known.waits]
            halves = [self.deadline] if self._half_is_on() else []
            upcoming = min([*ends, *halves], default=target + 1.0)
            if upcoming > target:
                break
            self._advance_to(upcoming + _TICK)
            if halves and self.deadline <= upcoming:
                self._half_is_over()
                continue
            silent = [member for member, known in self.members.items() if not known.waits and known.until <= upcoming]
            for member in silent:
                if member in self.members:
                    self._gone(member)
        self._advance_to(max(target, self.now))

    def _half_is_on(self) -> bool:
        if self.state == "PreparingRebalance":
            return True
        return self.state in ("CompletingRebalance", "Stable") and not all(
            known.synced for known in self.members.values()
        )

    def _half_is_over(self) -> None:
        if self.state == "PreparingRebalance":
            self._look(over=True)
        else:
            late = [member for member, known in self.members.items() if not known.synced]
            for member in late:
                del self.members[member]
            self._prepare()

    def _advance_to(self, time: float) -> None:
        self.desk.timer.advance(time - self.now)
        self.now = time

    # -- what has to hold

    @invariant()
    def it_is_as_the_model_says(self) -> None:
        group = self.desk.group
        assert group.state.value == self.state
        assert group.generation == self.generation
        assert set(self.members) <= set(group.members)
        assert len(group.members) == len(self.members) + len(self.newcomers)
        assert group.awaiting_join == sum(known.joins is not None for known in self._all())
        for known in self._all():
            assert not known.joins
            assert not known.syncs

    @invariant()
    def nothing_waits_but_what_should(self) -> None:
        group = self.desk.group
        assert len(self.desk.rebalances.pending()) == self._half_is_on()
        running = [operation.member_id for operation in self.desk.sessions.pending()]
        assert len(running) == len(set(running))
        waiting = {one.id for one in group.members.values() if one.joining is not None or one.syncing is not None}
        assert set(group.members) - waiting <= set(running) <= set(group.members)

    def teardown(self) -> None:
        """Whatever has happened, the group can go on."""
        if not hasattr(self, "desk"):
            return
        desk = self.desk
        told = desk.join(session=SESSION, rebalance=REBALANCE)
        desk.timer.advance(NEW + REBALANCE)
        assert told[0].error in (NONE, ErrorCode.unknown_member_id)
        (last,) = desk.join(session=SESSION, rebalance=REBALANCE)
        assert [one.error for one in desk.sync(last)] == [NONE]
        assert list(desk.group.members) == [last.member_id]


TestGroups = Groups.TestCase
TestGroups.settings = settings(
    max_examples=share(60), stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
