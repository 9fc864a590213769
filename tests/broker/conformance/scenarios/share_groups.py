"""Share groups (KIP-932): members, fetches that acquire, acknowledgements, offsets."""

from __future__ import annotations

from collections.abc import Iterable

from ..bodies import produce
from ..client import Connection
from ..grouped import Group
from ..messages import Plain
from ..records import Batch
from ..scenario import Stage, Topic, scenario, table
from .group_settings import setting

HEARTBEAT, FETCH, ACKNOWLEDGE = "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge"
UNKNOWN_ID = "11111111-2222-3333-4444-555555555555"
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
_FIRST_EPOCH = 2
Row = dict[str, Plain]


def beat(topics: Iterable[str] | None = None, member: str = "one", epoch: int = 0, **more: Plain) -> Row:
    """A heartbeat."""
    names = None if topics is None else list(topics)
    return {"member_id": member, "member_epoch": epoch, "subscribed_topic_names": names, **more}


def sharing(stage: Stage, **settings: str) -> Group:
    """A group that begins at the first record, and assigns at once."""
    group = Group(stage)
    setting(stage, group, share_auto_offset_reset="earliest", share_assignment_interval_ms="0", **settings)
    return group


def given(said: Row) -> int:
    """How many partitions an answer has."""
    return sum(len(row["partitions"]) for row in (said["assignment"] or {"topic_partitions": []})["topic_partitions"])


def await_given(stage: Stage, group: Group, count: int, member: str = "one", epoch: int = 1) -> Row:
    """Heartbeats until a member has so many partitions."""
    answers: list[Row] = []

    def told() -> bool:
        said = group.do(HEARTBEAT, beat(None, member, answers[-1]["member_epoch"] if answers else epoch))
        answers.append(said)
        return said["error_code"] != "NONE" or (said["assignment"] is not None and given(said) == count)

    stage.until(told, "what it has")
    return answers[-1]


def described(group: Group) -> Row:
    found: Row = group.do("ShareGroupDescribe", {"group_ids": [group.id]})["groups"][0]
    return found


def joined(stage: Stage, topic: Topic, partitions: int = 1, **settings: str) -> Group:
    """A group with one member that has all of a topic."""
    group = sharing(stage, **settings)
    said = group.do(HEARTBEAT, beat([topic.name]))
    if given(said) != partitions:
        await_given(stage, group, partitions, epoch=said["member_epoch"])
    return group


@table(
    HEARTBEAT,
    no_group=({"group_id": ""},), no_member=({"member_id": ""},), long_member=({"member_id": "x" * 37},),
    empty_rack=({"rack_id": ""},), no_topics=({"subscribed_topic_names": None},),
    empty_topics=({"subscribed_topic_names": []},), no_such_epoch=({"member_epoch": -2},), later=({"member_epoch": 1},),
    leaves=({"member_epoch": -1},),
)  # fmt: skip
def heartbeat_that_cannot_be(stage: Stage, more: Row) -> None:
    topic, group = stage.topic(), sharing(stage)
    group.ask(HEARTBEAT, {**beat([topic.name]), **more})


@table(
    HEARTBEAT,
    same=({},), larger=({"member_epoch": 50},), smaller=({"member_epoch": -1, "member_id": "two"},),
    unknown_member=({"member_id": "two"},), other_group=({"group_id": "a group that nobody has"},),
    leaves=({"member_epoch": -1},), leaves_where_nobody_is=({"member_epoch": -1, "group_id": "a group of nobody"},),
    joins_again=({"member_epoch": 0, "subscribed_topic_names": ["x"]},),
)  # fmt: skip
def next_heartbeat(stage: Stage, more: Row) -> None:
    topic = stage.topic(partitions=2)
    group = joined(stage, topic, 2)
    epoch = described(group)["members"][0]["member_epoch"]
    said = group.do(HEARTBEAT, {**beat(epoch=epoch), **more})
    moved = said["member_epoch"] - epoch if said["member_epoch"] > 0 else said["member_epoch"]
    message = (said["error_message"] or "").replace(f"({epoch})", "(the epoch)")
    stage.note("said", [said["error_code"], message, said["member_id"], moved, said["heartbeat_interval"]])


@scenario(HEARTBEAT)
def members_come_and_go(stage: Stage) -> None:
    topic = stage.topic(partitions=4)
    group = joined(stage, topic, 4)
    epoch = described(group)["members"][0]["member_epoch"]
    two = group.do(HEARTBEAT, beat([topic.name], "two"))
    stage.note("two joins", [two["error_code"], given(two)])
    one = await_given(stage, group, 2, epoch=epoch)
    stage.note("one", [one["error_code"], given(one)])
    left = group.do(HEARTBEAT, beat(None, "two", -1))
    stage.note("two leaves", [left["error_code"], left["member_epoch"], left["assignment"]])
    stage.note("one has all", given(await_given(stage, group, 4, epoch=one["member_epoch"])))


@scenario(HEARTBEAT)
def more_members_than_partitions(stage: Stage) -> None:
    topic = stage.topic(partitions=2)
    group = joined(stage, topic, 2)
    epoch = described(group)["members"][0]["member_epoch"]
    for member in ("two", "three", "four"):
        group.do(HEARTBEAT, beat([topic.name], member))
    stage.note("state", described(group)["group_state"])
    stage.note("one", given(await_given(stage, group, 1, epoch=epoch)))


@scenario("ShareGroupDescribe")
def members_described(stage: Stage) -> None:
    topic = stage.topic()
    group = joined(stage, topic)
    found = described(group)
    (member,) = found["members"]
    stage.note("group", {**found, "members": [], "group_epoch": 0, "assignment_epoch": 0})
    stage.note("member", {**member, "member_epoch": 0})
    stage.note("epochs", [found["group_epoch"] == found["assignment_epoch"] == member["member_epoch"]])
    asked = {"group_ids": ["none", ""], "include_authorized_operations": True}
    group.ask("ShareGroupDescribe", asked)
    group.do(HEARTBEAT, beat(epoch=-1))
    stage.note("empty", {**described(group), "group_epoch": 0, "assignment_epoch": 0})


@scenario()
def described_as_what_it_is_not(stage: Stage) -> None:
    group = joined(stage, stage.topic())
    classic = Group(stage, "classic")
    classic.stable()
    classic.await_known()
    group.ask("DescribeGroups", {"groups": [group.id]})
    group.ask("ConsumerGroupDescribe", {"group_ids": [group.id]})
    stage.note("classic", described(classic))
    for kinds in (["share"], ["classic"]):
        said = group.do("ListGroups", {"types_filter": kinds})
        stage.note("listed", [row for row in said["groups"] if row["group_id"] in (group.id, classic.id)])
    said = group.do("JoinGroup", group.joining("two"))
    stage.note("joins as a classic member", said["error_code"])


class Member:
    """A member's share session with broker 1, which leads."""

    def __init__(self, stage: Stage, group: Group, topic: Topic, name: str = "one") -> None:
        self.stage, self._group, self._topic, self.name = stage, group, topic, name
        self.epoch = 0
        self._connection: Connection = stage.connect(1)

    def rows(self, batches: Plain = (), partition: int = 0) -> list[Row]:
        """A topic with one partition."""
        found = [
            {
                "first_offset": first,
                "last_offset": last,
                "acknowledge_types": kind if isinstance(kind, list) else [kind],
            }
            for first, last, kind in batches
        ]
        return [
            {
                "topic_id": self._topic.id,
                "partitions": [{"partition_index": partition, "acknowledgement_batches": found}],
            }
        ]

    def fetching(self, *batches: Plain, **more: Plain) -> Row:
        """A fetch that does not wait."""
        topics = self.rows(batches) if batches or not self.epoch else []
        return {
            "group_id": self._group.id, "member_id": self.name, "share_session_epoch": self.epoch, "max_wait": 0,
            "min_bytes": 1, "max_bytes": 1 << 20, "max_records": 500, "batch_size": 500, "topics": topics, **more,
        }  # fmt: skip

    def do(self, *batches: Plain, **more: Plain) -> Row:
        """Fetch; nothing is written down."""
        version = self.stage.version(FETCH)
        said = self._connection.ask(FETCH, version, self.fetching(*batches, **more))
        if said["error_code"] == "NONE":
            self.epoch += 1
        return said

    def acquires(self, **more: Plain) -> list[list[int]]:
        """Fetches until something is acquired: first offset, last offset, delivery count."""
        found: list[list[int]] = []

        def some() -> bool:
            nonlocal found
            found = acquired(self.do(**more))
            return bool(found)

        self.stage.until(some, "records")
        self.stage.note(f"{self.name} acquires", found)
        return found

    def gets(self, *batches: Plain, **more: Plain) -> None:
        """Fetch once, and write down what was acquired."""
        said = self.do(*batches, **more)
        errors = [
            [row["error_code"], row["acknowledge_error_code"]]
            for topic in said["responses"] for row in topic["partitions"]
        ]  # fmt: skip
        self.stage.note(f"{self.name} gets", [said["error_code"], said["error_message"], acquired(said), errors])

    def begins(self) -> None:
        """Begin a session with a fetch that acquires nothing."""
        self.stage.until(lambda: self.do()["error_code"] == "NONE", "a session")

    def waits(self) -> None:
        """Fetch with a long wait, without an answer."""
        self._connection.send(FETCH, self.stage.version(FETCH), self.fetching(max_wait=60_000))
        self.stage.brokers.await_read(1)
        self.stage.brokers.elapse(1.0)  # a busy genuine broker handles it later than it reads it

    def disconnects(self) -> None:
        """Close the connection."""
        self._connection.close()

    def leaves(self) -> None:
        """Leave the group."""
        self._group.do(HEARTBEAT, beat(None, self.name, -1))

    def acknowledges(self, *batches: Plain, **more: Plain) -> None:
        """Acknowledge, and write down the answer."""
        version = self.stage.version(ACKNOWLEDGE)
        body = {
            "group_id": self._group.id, "member_id": self.name, "share_session_epoch": self.epoch,
            "topics": self.rows(batches), **more,
        }  # fmt: skip
        said = self._connection.ask(ACKNOWLEDGE, version, body)
        if said["error_code"] == "NONE":
            self.epoch += 1
        self.stage.note(f"{self.name} acknowledges", said)


def acquired(said: Row) -> list[list[int]]:
    return [
        [row["first_offset"], row["last_offset"], row["delivery_count"]]
        for topic in said["responses"] for one in topic["partitions"] for row in one["acquired_records"]
    ]  # fmt: skip


def consuming(stage: Stage, *batches: int, **settings: str) -> tuple[Member, Group, Topic]:
    """A member of a group, and a topic with batches of so many records."""
    topic = stage.topic()
    for size in batches:
        stage.do("Produce", produce(topic, Batch(tuple(b"%d" % n for n in range(size)), at=stage.base_time)))
    group = joined(stage, topic, 1, **settings)
    return Member(stage, group, topic), group, topic


@scenario(FETCH)
def all_that_there_is(stage: Stage) -> None:
    member, _, _ = consuming(stage, 3, 2)
    member.acquires()
    member.gets()
    Member(stage, member._group, member._topic, "two").gets()


@table(
    FETCH, at=(2,),
    one_record=({"max_records": 1},), two_records=({"max_records": 4},), of_bytes=({"max_bytes": 80},),
    strictly=({"max_records": 4, "share_acquire_mode": 1},), batches_of_two=({"batch_size": 2},),
    strict_batches_of_two=({"max_records": 4, "batch_size": 2, "share_acquire_mode": 1},),
    unknown_mode=({"share_acquire_mode": 7},), none=({"max_records": 0},), no_bytes=({"max_bytes": 0},),
)  # fmt: skip
def limits(stage: Stage, more: Row) -> None:
    member, _, _ = consuming(stage, 3, 3, 3)
    member.acquires(max_records=1)
    member.acknowledges((0, 2, RELEASE))
    member.gets(**more)


@table(
    ACKNOWLEDGE,
    accept=((0, 4, ACCEPT),), release=((0, 4, RELEASE),), reject=((0, 4, REJECT),), gap=((0, 4, GAP),),
    of_each=((0, 4, [ACCEPT, RELEASE, REJECT, GAP, RELEASE]),), part=((1, 2, ACCEPT),), renew=((0, 4, RENEW),),
    unknown_kind=((0, 4, 9),), negative_kind=((0, 4, -1),), no_kinds=((0, 4, []),), few_kinds=((0, 4, [1, 1]),),
    many_kinds=((0, 1, [1, 1, 1]),), backwards=((4, 0, ACCEPT),), not_there=((5, 9, ACCEPT),),
    too_far=((0, 9, ACCEPT),),
    negative=((-1, 2, ACCEPT),),
)  # fmt: skip
def acknowledged(stage: Stage, batch: Plain) -> None:
    member, _, _ = consuming(stage, 5)
    member.acquires()
    member.acknowledges(batch)
    member.gets()


@table(
    ACKNOWLEDGE,
    no_group=({"group_id": None},), other_group=({"group_id": "a group that nobody has"},),
    no_member=({"member_id": None},), empty_member=({"member_id": ""},), long_member=({"member_id": "x" * 37},),
    unknown_member=({"member_id": "two"},), first_epoch=({"share_session_epoch": 0},),
    other_epoch=({"share_session_epoch": 50},), unknown_topic=({"topics": [{"topic_id": UNKNOWN_ID, "partitions": [
        {"partition_index": 0, "acknowledgement_batches": [
            {"first_offset": 0, "last_offset": 1, "acknowledge_types": [1]}]}]}]},),
    nothing=({"topics": []},), renews=({"is_renew_ack": True},),
)  # fmt: skip
def acknowledgement_that_cannot_be(stage: Stage, more: Row) -> None:
    member, _, _ = consuming(stage, 5)
    member.acquires()
    member.acknowledges((0, 4, ACCEPT), **more)


@scenario(ACKNOWLEDGE)
def acknowledged_in_steps(stage: Stage) -> None:
    member, _, topic = consuming(stage, 6)
    member.acquires()
    member.acknowledges((0, 1, ACCEPT), (3, 3, REJECT))
    member.acknowledges((0, 1, ACCEPT))
    member.acknowledges((3, 5, ACCEPT), (2, 2, ACCEPT))
    member.acknowledges((2, 2, RELEASE), (4, 5, RELEASE))
    member.gets()
    stage.do("Produce", produce(topic, Batch((b"more",), at=stage.base_time)))
    member.acquires()


@scenario(ACKNOWLEDGE)
def what_another_has(stage: Stage) -> None:
    member, group, topic = consuming(stage, 3)
    other = Member(stage, group, topic, "two")
    other.do()
    member.acquires()
    other.acknowledges((0, 2, ACCEPT))
    member.acknowledges((0, 2, RELEASE))
    other.acquires()
    member.acknowledges((0, 2, ACCEPT))


@table(
    FETCH,
    no_group=({"group_id": None},), no_member=({"member_id": None},), empty_member=({"member_id": ""},),
    long_member=({"member_id": "x" * 37},), unknown_session=({"share_session_epoch": 4},),
    of_nothing=({"topics": []},), final=({"share_session_epoch": -1},),
    unknown_topic=({"topics": [{"topic_id": UNKNOWN_ID, "partitions": [{"partition_index": 0}]}]},),
    acknowledges_first=({"topics": None},),
)  # fmt: skip
def first_fetch_that_cannot_be(stage: Stage, more: Row) -> None:
    member, _, _ = consuming(stage, 3)
    if more == {"topics": None}:
        more = {"topics": member.rows([(0, 1, ACCEPT)])}
    said = stage.do(FETCH, member.fetching(**more), version=stage.version(FETCH))
    rows = [[row["error_code"], row["error_message"]] for topic in said["responses"] for row in topic["partitions"]]
    stage.note("said", [said["error_code"], said["error_message"], rows])


@scenario(FETCH)
def partition_that_is_not_there(stage: Stage) -> None:
    member, _, _ = consuming(stage, 3)
    said = stage.do(FETCH, member.fetching(topics=member.rows(partition=7)), version=stage.version(FETCH))
    stage.note("said", said)


@scenario(FETCH)
def fetched_from_another_broker(stage: Stage) -> None:
    member, _, _ = consuming(stage, 3)
    said = stage.do(FETCH, member.fetching(), to=2, version=stage.version(FETCH))
    rows = [row for topic in said["responses"] for row in topic["partitions"]]
    stage.note("said", [said["error_code"], [[row["error_code"], row["current_leader"]] for row in rows],
                        [row["node_id"] for row in said["node_endpoints"]]])  # fmt: skip


@scenario(FETCH)
def acknowledged_with_the_next_fetch(stage: Stage) -> None:
    member, _, _ = consuming(stage, 2, 2)
    member.acquires(max_records=1)
    member.gets((0, 1, ACCEPT))
    member.gets((0, 0, ACCEPT), (2, 3, RELEASE))
    member.gets()


@scenario(FETCH)
def the_session_ends(stage: Stage) -> None:
    """What its member has comes back."""
    member, group, topic = consuming(stage, 3)
    other = Member(stage, group, topic, "two")
    other.do()
    member.acquires()
    said = member.do(share_session_epoch=-1, topics=member.rows([(0, 0, ACCEPT)]))
    stage.note("the end", [said["error_code"], said["responses"]])
    other.acquires()
    member.gets()


@scenario(ACKNOWLEDGE)
def the_session_ends_with_an_acknowledgement(stage: Stage) -> None:
    member, group, topic = consuming(stage, 3)
    other = Member(stage, group, topic, "two")
    other.do()
    member.acquires()
    member.acknowledges((0, 0, ACCEPT), share_session_epoch=-1)
    other.acquires()
    member.acknowledges((1, 2, ACCEPT))


@scenario(FETCH, at=(2,))
def delivered_until_the_limit(stage: Stage) -> None:
    member, _, topic = consuming(stage, 2, share_delivery_count_limit="2")
    for _ in range(2):
        member.acquires()
        member.acknowledges((0, 1, RELEASE))
    member.gets()
    stage.do("Produce", produce(topic, Batch((b"more",), at=stage.base_time)))
    member.acquires()


@scenario(ACKNOWLEDGE, at=(2,))
def renewed(stage: Stage) -> None:
    member, _, _ = consuming(stage, 3)
    member.acquires()
    member.acknowledges((0, 2, RENEW), is_renew_ack=True)
    member.acknowledges((0, 0, ACCEPT), (1, 2, RENEW), is_renew_ack=True)
    member.acknowledges((1, 2, ACCEPT))


@table(
    FETCH, at=(2,),
    with_bytes=({"max_records": 0, "min_bytes": 0},), with_records=({"max_bytes": 0, "min_bytes": 0},),
    with_wait=({"max_bytes": 0, "min_bytes": 0, "max_records": 0, "max_wait": 5},), with_all=({"max_wait": 5},),
    alone=({"max_bytes": 0, "min_bytes": 0, "max_records": 0},),
)  # fmt: skip
def renewed_with_a_fetch(stage: Stage, more: Row) -> None:
    member, _, _ = consuming(stage, 3)
    member.acquires()
    member.gets((0, 2, RENEW), is_renew_ack=True, **more)


@scenario(FETCH, at=(2,))
def a_lock_ends(stage: Stage) -> None:
    member, group, topic = consuming(stage, 3, share_record_lock_duration_ms="15000")
    other = Member(stage, group, topic, "two")
    member.acquires()
    other.gets()
    stage.brokers.elapse(14.0)
    other.gets()
    stage.brokers.elapse(1.5)
    other.acquires()
    member.acknowledges((0, 2, ACCEPT))


@scenario(FETCH, at=(2,))
def a_connection_is_lost_in_a_long_poll(stage: Stage) -> None:
    """It still acquires, and gives back what cannot be sent."""
    member, other, topic = _one_waits(stage)
    member.disconnects()
    stage.brokers.elapse(1.0)
    stage.do("Produce", produce(topic, Batch((b"new",), at=stage.base_time)))
    stage.brokers.elapse(1.0)
    other.acquires()


@scenario(FETCH, at=(2,))
def a_member_leaves_in_a_long_poll(stage: Stage) -> None:
    """It still acquires, so another gets the record only once that lock has ended."""
    member, other, topic = _one_waits(stage)
    member.leaves()
    stage.brokers.elapse(1.0)
    stage.do("Produce", produce(topic, Batch((b"new",), at=stage.base_time)))
    stage.brokers.elapse(1.0)
    other.gets()
    stage.brokers.elapse(15.5)
    other.acquires()


def _one_waits(stage: Stage) -> tuple[Member, Member, Topic]:
    """A member with a long poll, and another."""
    member, group, topic = consuming(stage, share_record_lock_duration_ms="15000")
    other = Member(stage, group, topic, "two")
    member.begins()
    other.begins()
    member.waits()
    return member, other, topic


@table(
    ACKNOWLEDGE, at=(2,),
    earliest=("earliest",), by_duration=("by_duration:PT2H",),
)  # fmt: skip
def where_a_group_begins(stage: Stage, reset: str) -> None:
    member, group, _ = consuming(stage, 3)
    setting(stage, group, share_auto_offset_reset=reset)
    member.acquires()


def describing(group: Group, *topics: Topic | str) -> Row:
    rows = [{"topic_name": getattr(one, "name", one), "partitions": [0]} for one in topics]
    return {"groups": [{"group_id": group.id, "topics": rows or None}]}


@scenario("DescribeShareGroupOffsets")
def offsets_described(stage: Stage) -> None:
    member, group, topic = consuming(stage, 5)
    member.acquires()
    member.acknowledges((0, 1, ACCEPT))
    group.ask("DescribeShareGroupOffsets", describing(group))
    group.ask("DescribeShareGroupOffsets", describing(group, topic, "absent"))
    group.ask("DescribeShareGroupOffsets", {"groups": [{"group_id": stage.name("none"), "topics": None}]})
    group.ask("DescribeShareGroupOffsets", {"groups": []})


def emptied(stage: Stage) -> tuple[Group, Topic]:
    """A group without members, which has acquired and accepted two records."""
    member, group, topic = consuming(stage, 5)
    member.acquires()
    member.acknowledges((0, 1, ACCEPT))
    member.do(share_session_epoch=-1, topics=[])
    group.do(HEARTBEAT, beat(epoch=-1))
    stage.until(lambda: described(group)["group_state"] == "Empty", "an empty group")
    return group, topic


def altering(topic: str, offset: int, partition: int = 0) -> Row:
    return {"topics": [{"topic_name": topic, "partitions": [{"partition_index": partition, "start_offset": offset}]}]}


@table(
    "AlterShareGroupOffsets",
    back=(0, 0), forward=(4, 0), beyond=(99, 0), negative=(-1, 0), no_such_partition=(0, 7),
)  # fmt: skip
def offsets_altered(stage: Stage, offset: int, partition: int) -> None:
    group, topic = emptied(stage)
    group.ask("AlterShareGroupOffsets", altering(topic.name, offset, partition))
    group.ask("DescribeShareGroupOffsets", describing(group, topic))


@scenario("AlterShareGroupOffsets")
def offsets_that_cannot_be_altered(stage: Stage) -> None:
    member, group, topic = consuming(stage, 5)
    member.acquires()
    group.ask("AlterShareGroupOffsets", altering(topic.name, 1))
    group.ask("AlterShareGroupOffsets", {**altering(topic.name, 1), "group_id": stage.name("none")})
    group.ask("AlterShareGroupOffsets", {**altering(topic.name, 1), "group_id": ""})
    group.ask("AlterShareGroupOffsets", altering("absent", 1))


@scenario("DeleteShareGroupOffsets")
def offsets_deleted(stage: Stage) -> None:
    member, group, topic = consuming(stage, 5)
    member.acquires()
    body = {"topics": [{"topic_name": topic.name}, {"topic_name": "absent"}]}
    group.ask("DeleteShareGroupOffsets", body)
    member.do(share_session_epoch=-1, topics=[])
    group.do(HEARTBEAT, beat(epoch=-1))
    stage.until(lambda: described(group)["group_state"] == "Empty", "an empty group")
    group.ask("DeleteShareGroupOffsets", body)
    group.ask("DeleteShareGroupOffsets", {**body, "group_id": stage.name("none")})
    group.ask("DescribeShareGroupOffsets", describing(group))


@scenario("DeleteGroups", at=(2,))
def deleted(stage: Stage) -> None:
    member, group, _ = consuming(stage, 5)
    member.acquires()
    group.ask("DeleteGroups", {"groups_names": [group.id]})
    member.do(share_session_epoch=-1, topics=[])
    group.do(HEARTBEAT, beat(epoch=-1))
    stage.until(lambda: described(group)["group_state"] == "Empty", "an empty group")
    group.ask("DeleteGroups", {"groups_names": [group.id]})
    stage.note("described", described(group))
