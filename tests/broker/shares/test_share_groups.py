"""Share groups (KIP-932): locks, deliveries, acknowledgements, and what survives leaders and coordinators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.broker.shares.partition import Phase
from abeyant.errors import AbeyantError
from broker.clients import PATIENCE, producing, send
from broker.shares.member import ACCEPT, GAP, HEARTBEAT, REJECT, RELEASE, RENEW, ShareMember, acquired, join
from broker.wire import WireClient
from waiting import wait_until

MINUTE = timedelta(minutes=1)
SMALL = {"offsets.topic.num.partitions": 1, "share.coordinator.state.topic.num.partitions": 3}


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(3, clock="held", settings=SMALL) as cluster:
        cluster.create_topic("work", partitions=1, replicas=3)
        cluster.seed("work", [b"%d" % n for n in range(10)])
        set_group(cluster, **{"share.auto.offset.reset": "earliest"})
        join(cluster, "group", "work")
        yield cluster


def set_group(kafka: Cluster, **settings: str) -> None:
    """Change the group's settings."""
    groups = kafka.controller.groups
    kafka._settled(lambda: groups.change("group", {**groups.own("group"), **settings}))


def open_share(kafka: Cluster, member: ShareMember) -> None:
    """Have the share partition loaded."""
    topic = kafka.controller.topics["work"].id
    shares = kafka.brokers[member.leader].shares
    if shares.get("group", topic, 0) is None:
        assert member.get() == []
        wait_until(lambda: (found := shares.get("group", topic, 0)) and found.phase is Phase.ACTIVE)


def coordinator_client(kafka: Cluster) -> WireClient:
    """A connection to the group's coordinator."""
    return WireClient(f"127.0.0.1:{kafka.brokers[kafka.leader('__consumer_offsets') or 0].port}")


def locks(kafka: Cluster) -> list[str]:
    """The offsets that are locked."""
    return [str(dict(one.keys)["offsets"]) for one in kafka.waiting("ShareLock")]


@pytest.fixture
def one(kafka: Cluster) -> Iterator[ShareMember]:
    member = ShareMember(kafka, "group", "work")
    open_share(kafka, member)
    yield member
    member.close()


@pytest.fixture
def other(kafka: Cluster) -> Iterator[ShareMember]:
    member = ShareMember(kafka, "group", "work", "other")
    open_share(kafka, member)
    yield member
    member.close()


def test_what_nobody_acknowledges_is_delivered_again_when_its_lock_ends(
    kafka: Cluster, one: ShareMember, other: ShareMember
) -> None:
    assert one.get() == [(0, 9, 1)]
    assert other.get() == []
    kafka.clock.advance(29.9)
    assert other.get() == []
    kafka.clock.advance(0.2)
    assert other.get() == [(0, 9, 2)]
    assert one.acknowledge((0, 9, ACCEPT)) is ErrorCode.invalid_record_state  # it is the other's now


@pytest.mark.parametrize("size", [0, -1, -(1 << 31)])
def test_no_batch_of_no_records_is_acquired(kafka: Cluster, one: ShareMember, size: int) -> None:
    """Whatever batch size a client asks for: such a batch could be acknowledged by nobody, and the start would stay."""
    for _ in range(2):
        kafka.seed("work", [b"more"] * 5)
    assert one.get(batch_size=size) == [(0, 9, 1), (10, 14, 1), (15, 19, 1)]
    assert one.acknowledge((0, 19, ACCEPT)) is ErrorCode.none
    [share] = kafka.brokers[one.leader].shares.all()
    assert (share.start, len(share.spans)) == (20, 0)


def test_a_lock_can_be_ended(kafka: Cluster, one: ShareMember, other: ShareMember) -> None:
    assert one.get() == [(0, 9, 1)]
    with pytest.raises(AbeyantError, match="'other' has no lock on 'work'"):
        kafka.expire_lock("group", "work", member="other")
    assert kafka.expire_lock("group", "work", 0, member="one") == 1
    assert other.get() == [(0, 9, 2)]


def test_offsets_are_described_altered_and_deleted(kafka: Cluster, one: ShareMember) -> None:
    assert one.get() == [(0, 9, 1)]
    assert one.acknowledge((0, 2, ACCEPT), (4, 4, ACCEPT)) is ErrorCode.none
    topics = [{"topic_name": "work", "partitions": [{"partition_index": 0, "start_offset": 7}]}]
    with coordinator_client(kafka) as client:

        def described() -> tuple[int, int]:
            (group,) = client.ask(90, 1, groups=[{"group_id": "group", "topics": None}]).groups
            (row,) = group.topics[0].partitions
            assert group.error_code is row.error_code is ErrorCode.none
            return row.start_offset, row.lag

        assert described() == (0, 6)
        assert client.ask(91, 0, group_id="group", topics=topics).error_code is ErrorCode.non_empty_group
        one.close()
        kafka.expire_member("group", "one")
        altered = client.ask(91, 0, group_id="group", topics=topics)
        assert altered.responses[0].partitions[0].error_code is ErrorCode.none
        assert described() == (7, 3)
        deleted = client.ask(92, 0, group_id="group", topics=[{"topic_name": "work"}, {"topic_name": "absent"}])
        assert [row.error_code for row in deleted.responses] == [
            ErrorCode.none, ErrorCode.unknown_topic_or_partition,
        ]  # fmt: skip
        assert client.ask(90, 1, groups=[{"group_id": "group", "topics": None}]).groups[0].topics == ()
        assert client.ask(42, 2, groups_names=["group"]).results[0].error_code is ErrorCode.none
    assert kafka.groups() == []


def test_a_topic_may_be_deleted_while_its_offsets_are_described(kafka: Cluster) -> None:
    """Some partitions' states have been read by then, and others, which another broker has, have not."""
    kafka.create_topic("wide", partitions=12, replicas=1)
    rows = [{"partition_index": index, "start_offset": 0} for index in range(12)]
    with coordinator_client(kafka) as client:
        altered = client.ask(91, 0, group_id="empty", topics=[{"topic_name": "wide", "partitions": rows}])
        assert {row.error_code for row in altered.responses[0].partitions} == {ErrorCode.none}
        kafka.delay("ReadShareGroupStateSummary", seconds=5.0, times=1)
        asked = client.send(90, 1, groups=[{"group_id": "empty", "topics": None}])
        kafka.until_waiting("ReadShareGroupStateSummary")
        kafka.delete_topic("wide")
        kafka.clock.advance(5.0)
        described = client.receive(90, 1, asked).groups[0].topics[0].partitions
    assert ErrorCode.unknown_topic_or_partition in {row.error_code for row in described}


def test_a_fetch_waits_for_a_lock_that_ends(kafka: Cluster, one: ShareMember, other: ShareMember) -> None:
    assert one.get() == [(0, 9, 1)]
    other.send_fetch(wait=MINUTE)
    kafka.until_waiting("ShareFetch")
    kafka.clock.advance(31)
    assert acquired(other.receive_fetch()) == [(0, 9, 2)]


def test_each_record_may_get_its_own_acknowledgement(kafka: Cluster, one: ShareMember, other: ShareMember) -> None:
    assert one.get() == [(0, 9, 1)]
    assert one.acknowledge((0, 4, [ACCEPT, RELEASE, REJECT, ACCEPT, RELEASE])) is ErrorCode.none
    assert locks(kafka) == ["0-9"], "one lock a batch"
    assert other.get() == [(1, 1, 2), (4, 4, 2)]
    assert one.acknowledge((2, 2, ACCEPT)) is ErrorCode.invalid_record_state, "it is rejected"
    assert one.acknowledge((0, 0, ACCEPT)) is ErrorCode.none, "all before it are done: as in Kafka"
    assert one.acknowledge((5, 9, ACCEPT)) is ErrorCode.none
    assert locks(kafka) == ["1-4"]


def test_a_record_is_delivered_no_more_often_than_its_limit(kafka: Cluster, one: ShareMember) -> None:
    set_group(kafka, **{"share.delivery.count.limit": "3"})
    seen: Counter[int] = Counter()
    while found := one.get():
        for first, last, count in found:
            for offset in range(first, last + 1):
                seen[offset] += 1
                assert count == seen[offset] <= 3
        if any(count == 3 for *_, count in found):
            assert len(found) == 1
            assert found[0][0] == found[0][1], "the last delivery of a record is alone"
        assert one.acknowledge(*[(first, last, RELEASE) for first, last, _ in found]) is ErrorCode.none
    assert seen == dict.fromkeys(range(10), 3)


def test_a_lock_can_be_renewed(kafka: Cluster, one: ShareMember, other: ShareMember) -> None:
    assert one.get() == [(0, 9, 1)]
    kafka.clock.advance(20)
    assert one.acknowledge((2, 5, RENEW)) is ErrorCode.invalid_request, "it has to say that it renews"
    assert one.acknowledge((2, 5, RENEW), is_renew_ack=True) is ErrorCode.none
    kafka.clock.advance(15)
    assert other.get() == [(0, 1, 2), (6, 9, 2)]
    assert one.acknowledge((2, 5, ACCEPT)) is ErrorCode.none
    set_group(kafka, **{"share.renew.acknowledge.enable": "false"})
    assert other.acknowledge((0, 0, RENEW), is_renew_ack=True) is ErrorCode.invalid_record_state


def test_the_limit_of_records_is_strict_if_wanted(one: ShareMember, other: ShareMember) -> None:
    assert one.get(records=3, share_acquire_mode=1) == [(0, 2, 1)]
    assert other.get(records=3) == [(3, 9, 1)], "else a batch is acquired whole"


def test_what_a_member_has_is_released_with_its_connection(
    kafka: Cluster, one: ShareMember, other: ShareMember
) -> None:
    assert one.get() == [(0, 9, 1)]
    other.send_fetch(wait=MINUTE)
    kafka.until_waiting("ShareFetch")
    one.close()
    assert acquired(other.receive_fetch()) == [(0, 9, 2)]


def test_only_so_many_records_may_be_in_flight(kafka: Cluster, one: ShareMember, other: ShareMember) -> None:
    set_group(kafka, **{"share.partition.max.record.locks": "100"})
    kafka.seed("work", [b"more"] * 200)
    taken = one.get(records=400)
    assert taken[-1][1] >= 99, "whole batches"
    assert other.get() == []
    assert one.acknowledge((0, taken[-1][1], ACCEPT)) is ErrorCode.none
    kafka.seed("work", [b"last"])
    assert other.get() != []


def test_a_new_leader_goes_on_with_what_is_stored(kafka: Cluster, one: ShareMember) -> None:
    assert one.get() == [(0, 9, 1)]
    assert one.acknowledge((0, 3, ACCEPT), (5, 5, REJECT)) is ErrorCode.none
    kafka.stop(one.leader)
    wait_until(lambda: kafka.leader("work") not in (None, one.leader))
    member = ShareMember(kafka, "group", "work")
    found = member.get(wait=MINUTE)
    assert [offset for first, last, _ in found for offset in range(first, last + 1)] == [4, 6, 7, 8, 9]
    member.close()


def test_every_coordinator_may_stop(kafka: Cluster, one: ShareMember) -> None:
    assert one.get() == [(0, 9, 1)]
    for offset, broker in enumerate(sorted(kafka.brokers)):
        if broker != one.leader:
            kafka.stop(broker)
            assert one.acknowledge((offset, offset, ACCEPT)) is ErrorCode.none
            kafka.start(broker)
            wait_until(lambda: len(kafka.in_sync("work")) == 3)


def test_read_committed_passes_over_what_was_aborted(kafka: Cluster, one: ShareMember) -> None:
    set_group(kafka, **{"share.isolation.level": "read_committed"})
    with producing(kafka, transactional_id="till", retries=9) as producer:
        producer.init_transactions(PATIENCE)
        for ends, before in ((producer.abort_transaction, [(0, 9, 1)]), (producer.commit_transaction, [(11, 11, 1)])):
            producer.begin_transaction()
            send(producer, "work", b"in a transaction")
            producer.flush(PATIENCE)
            assert one.get() == before
            ends(PATIENCE)
    assert one.get() == [(12, 13, 1)], "10 was aborted; 11 and 13 are markers"
    assert one.acknowledge((11, 13, [GAP, ACCEPT, GAP])) is ErrorCode.none


def test_deleted_records_are_not_delivered(kafka: Cluster, one: ShareMember, other: ShareMember) -> None:
    assert one.get(records=3, share_acquire_mode=1) == [(0, 2, 1)]
    replica = kafka.brokers[one.leader].partitions["work", 0]
    kafka._settled(replica.delete_records, 6)
    assert locks(kafka) == []
    assert other.get() == [(6, 9, 1)]
    assert one.acknowledge((0, 2, ACCEPT)) is ErrorCode.none, "as in Kafka"


def test_a_target_is_kept_for_the_assignment_interval() -> None:
    """Those who come meanwhile get nothing; the first heartbeat after it brings the next one."""
    with Cluster(clock="held", settings=SMALL | {"group.share.assignment.interval.ms": 5000}) as kafka:
        kafka.create_topic("work", partitions=2)
        with WireClient(kafka.bootstrap) as client:
            client.ask(10, 6, key_type=0, coordinator_keys=["g"])  # FindCoordinator makes the topic of groups

            def beat(member: str, epoch: int = 0) -> tuple[int, int]:
                """Its epoch, and how many partitions it has."""
                said = client.ask(
                    HEARTBEAT, 1, group_id="g", member_id=member, member_epoch=epoch, subscribed_topic_names=["work"]
                )
                assert said.error_code is ErrorCode.none, said
                return said.member_epoch, sum(len(topic.partitions) for topic in said.assignment.topic_partitions)

            epoch, count = beat("one")
            while not count:  # the partitions' states are being made; then there is a new target
                kafka.clock.advance(5.0)
                epoch, count = beat("one", epoch)
            assert count == 2
            assert beat("two")[1] == 0
            kafka.clock.advance(4.9)
            assert beat("three")[1] == 0
            kafka.clock.advance(0.2)
            assert beat("four")[1] > 0
