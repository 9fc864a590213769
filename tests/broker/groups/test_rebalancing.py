"""The classic protocol, without a broker: who is told what, when, and that a group can always go on (K5)."""

from __future__ import annotations

import pytest

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.classic.member import JoinResponse
from abeyant.broker.wire.schema import ErrorCode
from broker.groups.desk import NONE, Desk

REBALANCE = ErrorCode.rebalance_in_progress
UNKNOWN = ErrorCode.unknown_member_id


def errors(*answers: list[JoinResponse]) -> list[list[ErrorCode]]:
    return [[one.error for one in answer] for answer in answers]


def test_the_first_member_joins_at_once_and_leads() -> None:
    desk = Desk()
    ((joined),) = desk.join()
    assert (joined.error, joined.generation, joined.protocol, joined.leader) == (NONE, 1, "range", joined.member_id)
    assert joined.members == ((joined.member_id, None, b"topics"),)
    assert desk.group.state.value == "CompletingRebalance"
    (synced,) = desk.sync(joined, m0=b"all")
    assert (synced.error, synced.assignment, synced.protocol) == (NONE, b"all", "range")
    assert desk.stored == [{joined.member_id: b"all"}]


def test_a_member_is_given_an_id_before_it_joins() -> None:
    desk = Desk()
    (first,) = desk.join(needs_id=True)
    assert first.error is ErrorCode.member_id_required
    assert not desk.group.members
    (joined,) = desk.join(first.member_id, needs_id=True)
    assert (joined.error, joined.member_id) == (NONE, first.member_id)


def test_an_id_that_is_not_used_is_forgotten_after_a_session() -> None:
    desk = Desk()
    (first,) = desk.join(needs_id=True)
    desk.timer.advance(44.9)
    assert list(desk.group.pending) == [first.member_id]
    desk.timer.advance(0.2)
    assert not desk.group.pending
    assert errors(desk.join(first.member_id, needs_id=True)) == [[UNKNOWN]]


def test_k5_a_join_is_answered_once_all_have_joined() -> None:
    desk = Desk()
    one, two = desk.stable(2)
    three = desk.join()
    assert desk.heartbeat(one) is desk.heartbeat(two) is REBALANCE
    again_one = desk.join(one.member_id)
    assert errors(three, again_one) == [[], []]
    again_two = desk.join(two.member_id)
    assert errors(three, again_one, again_two) == [[NONE], [NONE], [NONE]]
    assert {answer[0].generation for answer in (three, again_one, again_two)} == {one.generation + 1}
    assert [len(answer[0].members) for answer in (again_one, again_two, three)] == [3, 0, 0]


def test_k5_a_join_is_answered_at_the_rebalance_time_out_without_those_that_have_not() -> None:
    desk = Desk()
    one, two = desk.stable(2, session=300.0)
    three = desk.join(session=300.0)
    again = desk.join(one.member_id, session=300.0)
    desk.timer.advance(59.9)
    assert errors(three, again) == [[], []]
    desk.timer.advance(0.2)
    assert errors(three, again) == [[NONE], [NONE]]
    assert desk.heartbeat(two) is UNKNOWN


def test_a_session_ends_at_its_end_and_not_before() -> None:
    desk = Desk()
    one, two = desk.stable(2)
    desk.timer.advance(30.0)
    assert desk.heartbeat(one) is NONE
    desk.timer.advance(14.9)
    assert set(desk.group.members) == {one.member_id, two.member_id}
    desk.timer.advance(0.101)
    assert set(desk.group.members) == {one.member_id}
    assert desk.heartbeat(one) is REBALANCE
    assert errors(desk.join(one.member_id)) == [[NONE]]


def test_a_heartbeat_is_a_store() -> None:
    """However many are sent, one operation waits for each member, and it is the same one until its time is over."""
    desk = Desk()
    (one,) = desk.stable(1)
    (operation,) = desk.sessions.pending()
    for _ in range(100):
        desk.timer.advance(0.4)
        assert desk.heartbeat(one) is NONE
    assert desk.sessions.pending() == [operation]
    desk.timer.advance(10.0)  # its time is over, and another waits for what is left since the last heartbeat
    (following,) = desk.sessions.pending()
    assert following is not operation
    assert following.describe(1).deadline == pytest.approx(85.0)
    desk.timer.advance(34.9)
    assert len(desk.group.members) == 1
    desk.timer.advance(0.2)
    assert not desk.group.members


def test_a_shorter_session_counts_at_once() -> None:
    desk = Desk()
    (one,) = desk.stable(1, session=1000.0)
    (joined,) = desk.join(one.member_id, session=10.0)
    desk.sync(joined)
    desk.timer.advance(10.1)
    assert not desk.group.members


def test_who_waits_for_an_answer_is_not_silent() -> None:
    desk = Desk()
    one, two = desk.stable(2, session=10.0)
    three = desk.join(session=10.0)
    again = desk.join(one.member_id, session=10.0)
    desk.timer.advance(9.0)
    desk.heartbeat(two)  # it is alive, and does not join
    desk.timer.advance(9.0)
    desk.heartbeat(two)
    assert set(desk.group.members) >= {one.member_id, two.member_id}
    assert errors(again, three) == [[], []]
    desk.leave(two)
    assert errors(again, three) == [[NONE], [NONE]]


def test_members_that_never_sync_are_put_out_after_the_rebalance_time_out() -> None:
    desk = Desk()
    one, two = desk.stable(2, session=1000.0)
    desk.join(one.member_id, session=1000.0)
    ((again),) = desk.join(two.member_id, session=1000.0)
    assert desk.group.state.value == "CompletingRebalance"
    waiting = desk.sync(again)
    desk.timer.advance(59.9)
    assert waiting == []
    desk.timer.advance(0.2)  # the leader has said nothing
    assert [one.error for one in waiting] == [REBALANCE]
    assert set(desk.group.members) == {two.member_id}
    assert errors(desk.join(two.member_id)) == [[NONE]]


def test_the_leader_that_leaves_in_the_middle_of_a_rebalance() -> None:
    desk = Desk()
    one, two = desk.stable(2)
    joining = desk.join(one.member_id)
    (joined,) = desk.join(two.member_id)
    assert joining[0].leader == one.member_id
    waiting = desk.sync(joined)
    assert desk.leave(joining[0]) == [NONE]
    assert [answer.error for answer in waiting] == [REBALANCE]
    (joined,) = desk.join(two.member_id)
    assert joined.leader == two.member_id
    assert [answer.error for answer in desk.sync(joined)] == [NONE]


def test_the_log_is_slow_and_another_rebalance_begins() -> None:
    desk = Desk()
    (one,) = desk.stable(1)
    (joined,) = desk.join(one.member_id)
    desk.held = []
    waiting = desk.sync(joined)
    assert waiting == []
    newcomer = desk.join()
    assert [answer.error for answer in waiting] == [REBALANCE]
    desk.held[0](NONE)  # too late: nothing comes of it
    assert desk.group.state.value == "PreparingRebalance"
    desk.held = None
    desk.join(one.member_id)
    assert errors(newcomer) == [[NONE]]


def test_an_assignment_that_cannot_be_written_is_begun_anew() -> None:
    desk = Desk()
    (joined,) = desk.join()
    desk.held = []
    waiting = desk.sync(joined)
    desk.held[0](ErrorCode.coordinator_not_available)
    assert [answer.error for answer in waiting] == [ErrorCode.coordinator_not_available]
    assert desk.group.state.value == "PreparingRebalance"
    desk.held = None
    (joined,) = desk.join(joined.member_id)
    assert [answer.error for answer in desk.sync(joined)] == [NONE]


def test_the_first_members_wait_for_others() -> None:
    desk = Desk(initial_delay=3.0)
    one = desk.join()
    desk.timer.advance(2.0)
    two = desk.join()
    desk.timer.advance(3.9)
    assert errors(one, two) == [[], []]
    desk.timer.advance(0.2)  # one has come meanwhile: 3 s more
    assert errors(one, two) == [[NONE], [NONE]]


def test_a_static_member_that_comes_back_goes_on_with_what_it_had() -> None:
    desk = Desk()
    (first,) = desk.join(instance="pod-1")
    assert [answer.assignment for answer in desk.sync(first, m0=b"mine")] == [b"mine"]
    (back,) = desk.join(instance="pod-1")
    assert back.error is NONE
    assert back.member_id != first.member_id
    assert (back.generation, back.skip_assignment) == (first.generation, True)
    assert desk.group.state.value == "Stable"
    assert [answer.assignment for answer in desk.sync(back)] == [b"mine"]
    with pytest.raises(ApiError) as fenced:
        desk.protocol.heartbeat(desk.group, first.member_id, "pod-1", first.generation)
    assert fenced.value.code is ErrorCode.fenced_instance_id
    desk.timer.advance(45.1)
    assert not desk.group.members  # as any other, it may not be silent for ever


def test_a_static_member_whose_place_cannot_be_written_down_gets_it_not() -> None:
    desk = Desk()
    (first,) = desk.join(instance="pod-1")
    desk.sync(first)
    desk.held = []
    waiting = desk.join(instance="pod-1")
    desk.held[0](ErrorCode.not_coordinator)
    assert errors(waiting) == [[ErrorCode.not_coordinator]]
    assert list(desk.group.members) == [first.member_id]
    desk.protocol.heartbeat(desk.group, first.member_id, "pod-1", first.generation)


def test_the_process_that_is_replaced_is_told_so() -> None:
    desk = Desk()
    (first,) = desk.join(instance="pod-1")
    desk.sync(first)
    desk.join()
    desk.join(first.member_id, instance="pod-1")
    desk.join()  # a rebalance, which the second member does not take part in
    waiting = desk.join(first.member_id, instance="pod-1")
    assert errors(waiting) == [[]]
    desk.join(instance="pod-1")
    assert errors(waiting) == [[ErrorCode.fenced_instance_id]]


def test_static_members_that_do_not_join_stay_until_their_sessions_end() -> None:
    desk = Desk()
    (leader,) = desk.join(instance="pod-1", session=100.0)
    desk.sync(leader)
    desk.join("", session=100.0, rebalance=10.0)
    desk.timer.advance(60.1)  # the longest of the rebalance time-outs
    assert desk.group.state.value == "CompletingRebalance"
    assert desk.group.static == {"pod-1": leader.member_id}
    desk.timer.advance(60.1)
    assert leader.member_id not in desk.group.members


def test_a_group_that_is_full() -> None:
    desk = Desk(max_size=2)
    one, _ = desk.stable(2)
    assert errors(desk.join()) == [[ErrorCode.group_max_size_reached]]
    assert desk.heartbeat(one) is NONE


def test_protocols_that_do_not_fit() -> None:
    desk = Desk()
    wrong = [[ErrorCode.inconsistent_group_protocol]]
    assert errors(desk.join(protocols=())) == wrong
    assert errors(desk.join(kind="")) == wrong
    desk.stable(1)
    assert errors(desk.join(kind="connect")) == wrong
    assert errors(desk.join(protocols=(("sticky", b""),))) == wrong


def test_the_protocol_that_most_like_best_is_taken() -> None:
    desk = Desk()
    (one,) = desk.join(protocols=(("a", b"1"), ("b", b"2")))
    joining = desk.join(protocols=(("b", b"3"), ("c", b"4")))
    (again,) = desk.join(one.member_id, protocols=(("a", b"1"), ("b", b"2")))
    assert again.protocol == joining[0].protocol == "b"
    assert {member: metadata for member, _, metadata in again.members} == {
        one.member_id: b"2", joining[0].member_id: b"3",
    }  # fmt: skip


def test_hostile_members_harm_nobody() -> None:
    desk = Desk()
    one, two = desk.stable(2)
    stale = one._replace(generation=one.generation - 1)
    assert desk.heartbeat(stale) is ErrorCode.illegal_generation
    assert [answer.error for answer in desk.sync(stale)] == [ErrorCode.illegal_generation]
    stranger = one._replace(member_id="stranger")
    assert desk.heartbeat(stranger) is UNKNOWN
    assert desk.leave(stranger) == [UNKNOWN]
    assert errors(desk.join("stranger")) == [[UNKNOWN]]
    assert desk.heartbeat(one) is desk.heartbeat(two) is NONE
    # Two processes with one id: the first one's request is forgotten, and the rebalance goes on with the other.
    lost = desk.join(two.member_id, protocols=(("range", b"other"),))
    other = desk.join(two.member_id, protocols=(("range", b"third"),))
    desk.join(one.member_id)
    assert errors(lost, other) == [[], [NONE]]
    assert desk.group.awaiting_join == 0


def test_a_storm_of_members_that_come_and_go() -> None:
    desk = Desk()
    one, two = desk.stable(2)
    for _ in range(200):
        desk.join(session=6.0)  # each begins a rebalance, and is never heard of again
    members = [desk.join(one.member_id), desk.join(two.member_id)]
    assert errors(*members) == [[NONE], [NONE]]
    desk.sync(members[0][0])
    desk.timer.advance(6.1)
    assert set(desk.group.members) == {one.member_id, two.member_id}
    assert desk.heartbeat(members[1][0]) is REBALANCE


def test_the_coordinator_moves_in_the_middle_of_a_rebalance() -> None:
    desk = Desk()
    (one,) = desk.stable(1)
    joining = desk.join()
    desk.protocol.end(desk.group)
    assert errors(joining) == [[ErrorCode.not_coordinator]]
    assert desk.heartbeat(one) is ErrorCode.coordinator_not_available
    assert desk.rebalances.pending() == desk.sessions.pending() == []
    assert len(desk.timer) == 0
