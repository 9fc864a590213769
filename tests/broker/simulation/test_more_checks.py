"""Checks of commits, order, fencing, groups and state over histories made by hand: what they find, and allow."""

from __future__ import annotations

from typing import Any

import pytest

from abeyant.broker import checks
from abeyant.broker.checks.check import complaint
from abeyant.broker.checks.history import (
    Committed,
    Ended,
    Event,
    Found,
    Group,
    Handed,
    History,
    Initialized,
    Item,
    Joined,
    Membership,
    Produced,
    Replica,
    Sent,
    Sought,
    Stored,
    Transaction,
)

PLACE = "orders", 0
OWNER = 7, 1
ZOMBIE = 7, 0


def said(check: checks.Check, **history: Any) -> str:
    """What a check says; "" where all is well."""
    return complaint(check, check(History(**history))) or ""


def handed(offset: int, at: float = 1.0) -> Handed:
    return Handed(at, "c", "", "work", 1, *PLACE, offset, Item(b"1", b"%d" % offset), False)


def committed(offset: int, at: float, **other: Any) -> Committed:
    return Committed(
        at, "c", "", "work", other.pop("generation", 1), *PLACE, offset, other.pop("error", "NONE"),
        other.pop("transactional_id", None), since=at, **other,
    )  # fmt: skip


def produced(offset: int, at: float, producer: tuple[int, int] = OWNER, **other: Any) -> Produced:
    items = (Item(b"1", b"%d" % offset),)
    given = {"acks": -1, "error": "NONE", "producer": producer, "transactional_id": "t", "since": at, **other}
    return Produced(at, "p", "", *PLACE, offset, items, **given)


def ended(at: float, producer: tuple[int, int] = OWNER, **other: Any) -> Ended:
    return Ended(at, "p", "", "t", producer, **{"committed": True, "error": "NONE", "since": at, **other})


def initialized(at: float, producer: tuple[int, int]) -> Initialized:
    return Initialized(at, "p", "", "t", producer, "NONE")


def member(at: float, api: str, error: str = "NONE", generation: int = 1, name: str = "m") -> Membership:
    return Membership(at, api, "work", name, generation, error, at, 10.0 if api == "JoinGroup" else 0.0)


def stored(*offsets: int) -> list[Stored]:
    return [Stored(*PLACE, offset, 0, Item(b"1", b"%d" % offset)) for offset in offsets]


# -- commits


def test_commits_are_not_ahead() -> None:
    check = checks.commits_are_not_ahead("work", "orders")
    three = {"stored": stored(0, 1, 2)}
    assert not said(check, handed=[handed(0)], committed=[committed(1, 2.0)], **three)
    wrong = said(check, handed=[handed(0)], committed=[committed(3, 2.0)], **three)
    assert "orders-0 offset 3 was committed, and no member was handed offset 1" in wrong
    assert "offset 0" in said(
        check, handed=[handed(0, at=3.0)], committed=[committed(1, 2.0), committed(1, 4.0)], **three
    )
    gap = [handed(0), handed(2)]
    assert "handed offset 1" in said(check, handed=gap, committed=[committed(3, 2.0)], **three)
    assert "saw no commit of work" in said(check, handed=gap)


def test_what_may_be_committed_without_being_handed() -> None:
    check = checks.commits_are_not_ahead("work", "orders")
    refused = committed(9, 2.0, error="ILLEGAL_GENERATION")
    assert not said(check, handed=[handed(0)], committed=[committed(1, 2.0), refused], stored=stored(0, 1))
    gap = {"handed": [handed(0), handed(2)], "committed": [committed(3, 2.0)]}
    assert not said(check, stored=stored(0, 2), **gap)  # 1 is a marker
    joined = [Joined(0.0, "c", "", "work", 1, (PLACE,))]
    for to in (2, -1):
        sought = [Sought(1.0, "c", "", 1, *PLACE, to, after=1)]
        assert not said(check, stored=stored(0, 1, 2), joined=joined, sought=sought, **gap)
    late = {"handed": [handed(2)], "committed": [committed(2, 0.5), committed(3, 2.0)]}  # it began at the end
    assert not said(check, stored=stored(0, 1, 2), **late)


def test_commits_follow_the_work() -> None:
    now = 1.0
    done = checks.Ledger(lambda: now)
    done.append(b"0")
    now = 3.0
    done.extend([b"1"])
    check = checks.commits_follow_the_work("work", "orders", done, dead_letters="dead")
    there: dict[str, Any] = {"stored_committed": stored(0, 1, 2), "handed": [handed(0)]}
    assert not said(check, committed=[committed(1, 2.0), committed(2, 3.0)], **there)
    assert "offset 2 was committed, and offset 1 was processed only later" in said(
        check, committed=[committed(2, 2.0)], **there
    )
    assert "offset 2 was never processed" in said(check, committed=[committed(3, 4.0)], **there)
    dead = Produced(3.5, "p", "", "dead", 0, 0, (Item(None, b"2"),), -1, "NONE", (-1, -1), None)
    assert not said(check, committed=[committed(3, 4.0)], produced=[dead], **there)
    assert not said(check, committed=[committed(1, 2.0)], **{**there, "handed": [handed(1)]})  # it began at 1
    assert "saw no commit" in said(check, **there)


def test_commits_never_go_back() -> None:
    check = checks.commits_never_go_back("work", "orders")
    assert not said(check, committed=[committed(1, 1.0), committed(1, 2.0), committed(2, 3.0)])
    back = [committed(2, 1.0), committed(1, 2.0)]
    assert "offset 1 was committed, after 2" in said(check, committed=back)
    sought = [Sought(1.5, "c", "", 1, *PLACE, 0)]
    assert not said(check, committed=back, sought=sought, handed=[handed(0)])


def test_commits_are_kept() -> None:
    check = checks.commits_are_kept("work")
    commits = {"committed": [committed(2, 1.0)]}
    assert not said(check, offsets={("work", *PLACE): 2}, **commits)
    assert not said(check, offsets={("work", *PLACE): 3}, **commits)  # a commit whose answer was lost
    assert "offset 2 was committed, and 1 is there" in said(check, offsets={("work", *PLACE): 1}, **commits)
    assert "and nothing is there" in said(check, **commits)
    assert "saw no partition with a commit" in said(check)


def test_commits_are_kept_from_then_on() -> None:
    check = checks.commits_are_kept("work")
    given: dict[str, Any] = {"committed": [committed(1, 1.0), committed(2, 2.0)], "offsets": {("work", *PLACE): 2}}
    assert not said(
        check, found=[Found(3.0, "work", *PLACE, 1, since=2.0), Found(3.0, "work", *PLACE, 2, 2.5)], **given
    )
    assert "work fetched the offset -1 of orders-0, but 1 was committed" in said(
        check, found=[Found(3.0, "work", *PLACE, -1, since=1.5)], **given
    )


def test_commits_of_transactions_are_kept_once_these_are_committed() -> None:
    check = checks.commits_are_kept("work")
    commits = [committed(1, 0.5), committed(2, 1.0, transactional_id="t", producer=OWNER)]
    now = {("work", *PLACE): 1}
    assert not said(check, committed=commits, offsets=now)
    assert not said(check, committed=commits, ended=[ended(2.0, committed=False)], offsets=now)
    assert "offset 2 was committed" in said(check, committed=commits, ended=[ended(2.0)], offsets=now)


# -- order


def sent(value: int, offset: int | None, producer: str = "p", key: bytes = b"1") -> Sent:
    return Sent(1.0, producer, "orders", Item(key, b"%d" % value), lambda: None if offset is None else (0, offset))


def test_order_per_key() -> None:
    check = checks.order_per_key("orders")
    assert not said(check, sent=[sent(0, 0), sent(1, 1)])
    assert "'1' was sent after '0', and is at orders-0 offset 2, before offset 5" in said(
        check, sent=[sent(0, 5), sent(1, 2)]
    )
    for allowed in (sent(1, 2, producer="q"), sent(1, 2, key=b"2"), sent(1, None)):
        assert not said(check, sent=[sent(0, 5), allowed])
    assert "saw no acknowledged record" in said(check, sent=[sent(0, None)])


def test_effects_in_order() -> None:
    def of(*effects: str) -> str:
        return said(checks.effects_in_order(lambda: effects, lambda: ["a1", "b1", "a2"], key=lambda one: str(one)[0]))

    assert not of("a1", "a2", "b1")
    assert not of("a1", "a2", "a1", "a2")  # again, as at least once may
    assert "'a1' took effect after 'a2'" in of("a2", "a1")
    assert "saw no effect" in of()


# -- zombies


@pytest.mark.parametrize(
    "write",
    [{"produced": [produced(0, 3.0, ZOMBIE)]}, {"ended": [ended(3.0, ZOMBIE)]},
     {"committed": [committed(1, 3.0, transactional_id="t", producer=ZOMBIE)]}],
)  # fmt: skip
def test_a_zombie_producer_writes_nothing(write: dict[str, list[Any]]) -> None:
    check = checks.no_zombie_writes()
    before, fence = initialized(1.0, ZOMBIE), initialized(2.0, OWNER)
    assert "epoch 0 of t, which was fenced at 2.000 s" in said(check, initialized=[before, fence], **write)
    assert not said(check, initialized=[before], **write)
    (one,) = next(iter(write.values()))
    allowed = {name: [one._replace(since=1.5)] for name in write}  # it came before, and was answered after
    assert not said(check, initialized=[before, fence], **allowed)
    refused = {name: [one._replace(error="INVALID_PRODUCER_EPOCH")] for name in write}
    assert "saw no write" in said(check, initialized=[before, fence], **refused)


def test_a_zombie_member_commits_nothing() -> None:
    check = checks.no_zombie_writes()
    first, second = member(1.0, "SyncGroup"), member(2.0, "SyncGroup", generation=2, name="n")
    late = committed(5, 3.0)
    wrong = said(check, memberships=[first, second], committed=[late])
    assert "took the commit of offset 5 of a member of work in generation 1, which was fenced at 2.000 s" in wrong
    joining = member(2.0, "JoinGroup", generation=2, name="n")  # until it has assignments, the generation may be undone
    assert not said(check, memberships=[first, joining], committed=[late])
    assert "saw no write" in said(check, memberships=[first, second], committed=[committed(5, 3.0, generation=-1)])


def heartbeat(
    at: float, name: str, epoch: int, partitions: tuple[int, ...] | None = None, error: str = "NONE"
) -> Membership:
    assigned = None if partitions is None else frozenset(("orders", one) for one in partitions)
    return Membership(at, "ConsumerGroupHeartbeat", "work", name, epoch, error, at, assigned=assigned)


def test_a_zombie_of_the_consumer_protocol_commits_nothing() -> None:
    check = checks.no_zombie_writes()
    has_it = heartbeat(1.0, "a", 1, (0, 1))
    late = committed(5, 9.0, member="a")

    def of(*later: Membership, commit: Committed = late) -> str:
        return said(check, memberships=[has_it, *later], committed=[commit])

    assert not of()
    fenced = "took the commit of offset 5 of a of work in epoch 1, which was fenced at"
    for gone in (
        heartbeat(2.0, "a", -1),  # it leaves
        heartbeat(2.0, "a", 1, error="UNKNOWN_MEMBER_ID"),
        heartbeat(2.0, "b", 2, (0, 1)),  # another has its partitions, which were never revoked from it
    ):
        assert f"{fenced} 2.000 s" in of(gone)
        assert not of(gone, commit=late._replace(since=1.5))  # it came before, and was answered after
        assert not of(gone, heartbeat(3.0, "a", 3, (0,)), commit=late._replace(generation=3))  # it has joined again
    revoked, given = heartbeat(2.0, "a", 2, (1,)), heartbeat(3.0, "b", 2, (0,))
    assert f"{fenced} 2.000 s" in of(revoked, given)  # an older epoch, of a partition that it has no more
    assert not of(revoked, given, commit=late._replace(partition=1))  # it has had this one since epoch 1
    assert not of(revoked, given, commit=late._replace(generation=2))  # Kafka takes a member's own epoch for any
    assert "saw no write" in of(commit=late._replace(error="STALE_MEMBER_EPOCH"))


# -- groups


def group(*members: tuple[int, ...], state: str = "Stable", topics: str = "orders") -> dict[str, Group]:
    rows = {
        f"m{number}": (frozenset({topics}), tuple(("orders", one) for one in places))
        for number, places in enumerate(members)
    }
    return {"work": Group(state, (1,), rows)}


def test_every_member_has_its_share() -> None:
    check = checks.every_member_has_its_share("work", members=2)
    two = {"partitions": {"orders": 2}}
    assert not said(check, groups=group((0,), (1,)), **two)
    assert "work is in PreparingRebalance" in said(check, groups=group((0,), (1,), state="PreparingRebalance"), **two)
    assert "orders-1 has none of the members" in said(check, groups=group((0,), ()), **two)
    assert "orders-0 has 2 of the members" in said(check, groups=group((0,), (0, 1)), **two)
    assert "m1 has no partition of orders" in said(check, groups=group((0, 1), ()), **two)
    assert "work has 1 of 2 members" in said(check, groups=group((0, 1)), **two)
    assert "saw no member of work" in said(check, **two)
    assert not said(check, groups=group((0,), ()), partitions={"orders": 1})  # more members than partitions


def test_heartbeats_keep_members() -> None:
    check = checks.heartbeats_keep_members("work")
    joined = [member(0.0, "JoinGroup"), member(0.1, "SyncGroup"), member(3.0, "Heartbeat")]
    unknown = member(12.0, "Heartbeat", "UNKNOWN_MEMBER_ID")
    assert not said(check, memberships=joined)
    assert "m was unknown to work, 9.0 s after its heartbeat" in said(check, memberships=[*joined, unknown])
    assert not said(check, memberships=[*joined, unknown._replace(since=13.1)])
    assert not said(check, memberships=[*joined, unknown], events=[Event(5.0, "a session expires", "work")])
    for between in (member(5.0, "LeaveGroup"), member(5.0, "SyncGroup", generation=2, name="n")):
        assert not said(check, memberships=[*joined, between, unknown])
    assert "saw no heartbeat" in said(check, memberships=joined[:2])


# -- state


def test_transactions_are_atomic() -> None:
    check = checks.transactions_are_atomic()
    two = [produced(0, 1.0), produced(1, 1.5)]
    assert not said(check, produced=two, ended=[ended(2.0)], stored_committed=stored(0, 1))
    assert "t committed orders-0 offset 1, which cannot be read" in said(
        check, produced=two, ended=[ended(2.0)], stored_committed=stored(0)
    )
    aborted = [ended(2.0, committed=False)]
    assert not said(check, produced=two, ended=aborted)
    assert "t aborted orders-0 offset 0, which can be read" in said(
        check, produced=two, ended=aborted, stored_committed=stored(0, 1)
    )
    for whole in (stored(), stored(0, 1)):  # the answer to its end was lost
        assert not said(check, produced=two, stored_committed=whole)
    assert "offset 1, which cannot be read" in said(check, produced=two, stored_committed=stored(0))
    assert "saw no transaction" in said(check, produced=[produced(0, 1.0, transactional_id=None)])


def replica(broker: int, *batches: tuple[int, int, int], leads: bool = False, in_sync: bool = True) -> Replica:
    return Replica(broker, leads, in_sync, len(batches), batches)


def test_replicas_agree() -> None:
    check = checks.replicas_agree()
    first, second, other = (0, 0, 11), (1, 0, 12), (1, 1, 13)
    leader = replica(1, first, second, leads=True)
    assert not said(check, replicas={PLACE: (leader, replica(2, first, second))})
    assert not said(check, replicas={PLACE: (leader, replica(2, first))})  # its high watermark is behind
    wrong = said(check, replicas={PLACE: (leader, replica(2, first, other))})
    assert "broker 2 has another orders-0 than its leader, broker 1: at offset 1, of leader epoch 1" in wrong
    assert "broker 2 is not in sync" in said(check, replicas={PLACE: (leader, replica(2, first, in_sync=False))})
    assert "orders-0 has no leader" in said(check, replicas={PLACE: (replica(2, first),)})
    assert "saw no batch of a follower" in said(check, replicas={PLACE: (leader,)})


def test_state_is_consistent() -> None:
    check = checks.state_is_consistent()
    assert not said(check, groups=group((0,), (1,)))
    assert "group work is in CompletingRebalance" in said(check, groups=group((0,), state="CompletingRebalance"))
    assert "two members with orders-0" in said(check, groups=group((0,), (0,)))
    two = {"work": group((0,))["work"]._replace(coordinators=(1, 2))}
    assert "has the coordinators (1, 2)" in said(check, groups=two)
    at_rest = Transaction("Ongoing", (1,), OWNER, 4.0)
    assert not said(check, transactions={"t": at_rest})
    assert "is in PrepareCommit" in said(check, transactions={"t": at_rest._replace(state="PrepareCommit", left=None)})
    assert "open for 60 s too long" in said(check, transactions={"t": at_rest._replace(left=-60.0)})
    ends = {PLACE: (replica(1, (0, 0, 11), leads=True),)}
    beyond = said(check, groups=group((0,)), replicas=ends, offsets={("work", *PLACE): 2})
    assert "work has committed orders-0 up to 2, and it ends at 1" in beyond
    assert "saw no group or transactional id" in said(check)
