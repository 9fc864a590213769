"""Racks: brokers in them, replicas spread over them, and consumers that read from a replica of their own (KIP-392)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.broker.placement import place_replicas
from abeyant.broker.settings import REPLICA_SELECTOR
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle, take
from broker.wire import WireClient

ON: dict[str, object] = {"replica.selector.class": REPLICA_SELECTOR}
RACKS = ["east", "west"]
FETCH, METADATA, DESCRIBE_CLUSTER = 1, 3, 60
NOBODY = -1


def fetched(kafka: Cluster, broker: int, rack: str, offset: int = 0, version: int = 12, **more: Any) -> Any:
    """What a broker answers to a fetch of the topic's first partition."""
    part = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1 << 20, "current_leader_epoch": -1}
    part |= {"last_fetched_epoch": -1, "log_start_offset": -1}
    wanted = {
        "replica_id": -1, "max_wait": timedelta(0), "min_bytes": 0, "max_bytes": 1 << 24, "session_epoch": -1,
        "rack_id": rack, "topics": [{"topic": "orders", "partitions": [part]}], **more,
    }  # fmt: skip
    with WireClient(kafka.bootstrap.split(",")[broker - 1]) as client:
        [topic] = client.ask(FETCH, version, **wanted).responses
    return topic.partitions[0]


def written(kafka: Cluster, count: int = 1) -> None:
    with producing(kafka, acks="all") as producer:
        assert set(settle(producer, *(send(producer, "orders", b"tea") for _ in range(count)))) == {None}


def test_clients_are_told_the_rack_of_each_broker() -> None:
    with Cluster(3, racks=RACKS) as kafka, WireClient(kafka.bootstrap) as client:
        for key, version in ((METADATA, 12), (DESCRIBE_CLUSTER, 1)):
            more = {"topics": None} if key == METADATA else {"endpoint_type": 1}
            assert [node.rack for node in client.ask(key, version, **more).brokers] == ["east", "west", "east"]


def test_a_consumer_is_sent_to_a_replica_of_its_rack() -> None:
    with Cluster(3, racks=RACKS, settings=ON) as kafka:
        kafka.create_topic("orders", replicas=3)
        written(kafka)
        sent = fetched(kafka, 1, "west")
        assert (sent.preferred_read_replica, sent.records, sent.high_watermark) == (2, b"", 1)
        for rack in ("east", "north", ""):
            read = fetched(kafka, 1, rack)
            assert (read.preferred_read_replica, bool(read.records)) == (NOBODY, True)
        assert not hasattr(fetched(kafka, 1, "west", version=10), "preferred_read_replica")
        follower = fetched(kafka, 2, "west")
        assert (follower.preferred_read_replica, bool(follower.records), follower.high_watermark) == (NOBODY, True, 1)


def test_no_consumer_is_sent_away_without_a_selector() -> None:
    with Cluster(3, racks=RACKS) as kafka:
        kafka.create_topic("orders", replicas=3)
        assert fetched(kafka, 1, "west").preferred_read_replica == NOBODY


def test_a_replica_that_lacks_the_record_or_is_not_in_sync_is_not_preferred() -> None:
    with Cluster(3, clock="held", racks=RACKS, settings={**ON, "broker.session.timeout.ms": 100_000}) as kafka:
        kafka.create_topic("orders", replicas=3)
        written(kafka)
        with kafka.paused(2), producing(kafka, acks=1) as producer:
            assert settle(producer, send(producer, "orders", b"tea")) == [None]
            assert fetched(kafka, 1, "west", offset=1).preferred_read_replica == 2
            assert fetched(kafka, 1, "west", offset=2).preferred_read_replica == NOBODY, "it has no record 1 yet"
            kafka.clock.advance(60)
            assert kafka.in_sync("orders") == (1, 3)
            assert fetched(kafka, 1, "west").preferred_read_replica == NOBODY


def test_a_follower_serves_up_to_the_high_watermark_that_it_knows() -> None:
    with Cluster(3, clock="held", racks=RACKS, settings=ON) as kafka:
        kafka.create_topic("orders", replicas=3)
        written(kafka)
        kafka.pause(3)  # it is in sync, and holds the high watermark
        with producing(kafka, acks=1) as producer:
            assert settle(producer, send(producer, "orders", b"tea")) == [None]
        kafka.waiting()  # the follower has copied it
        beyond = fetched(kafka, 2, "west", offset=1)
        assert (beyond.error_code, beyond.records, beyond.high_watermark) == (ErrorCode.none, b"", 1)
        assert fetched(kafka, 2, "west", offset=3).error_code == ErrorCode.offset_out_of_range
        newer = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 100, "current_leader_epoch": 9}
        newer |= {"last_fetched_epoch": -1, "log_start_offset": -1}
        topics = [{"topic": "orders", "partitions": [newer]}]
        assert fetched(kafka, 2, "west", topics=topics).error_code == ErrorCode.unknown_leader_epoch
        kafka.resume(3)
        kafka.waiting()
        assert fetched(kafka, 2, "west", offset=1).high_watermark == 2


@pytest.mark.parametrize("clock", ["real", "held"])
def test_confluents_consumer_reads_from_its_rack(clock: Any) -> None:
    settings: dict[str, Any] = {"client_rack": "west", "client_id": "reader", "fetch_wait_max_ms": 60_000}
    with Cluster(3, clock=clock, racks=RACKS, settings=ON) as kafka:
        kafka.create_topic("orders", replicas=3)
        written(kafka)
        with consuming(kafka, ("orders", 0), **settings) as consumer:
            take(consumer, 1)
            [waiting] = kafka.until_waiting("Fetch", client_id="reader", timeout=30)
            assert (waiting.broker, waiting.keys) == (2, (("orders", 0),))
            written(kafka)  # the follower copies it, and answers the fetch
            take(consumer, 1)


def test_confluents_consumer_goes_back_to_the_leader_when_its_follower_stops() -> None:
    with Cluster(3, racks=RACKS, settings=ON) as kafka:
        kafka.create_topic("orders", replicas=3)
        written(kafka)
        with consuming(kafka, ("orders", 0), client_rack="west", client_id="reader") as consumer:
            take(consumer, 1)
            kafka.until_waiting("Fetch", client_id="reader", timeout=30)
            with kafka.stopped(2):
                written(kafka)
                take(consumer, 1)


def test_groups_are_told_the_racks_of_their_members() -> None:
    with Cluster(1, racks=RACKS) as kafka:
        kafka.create_topic("orders")
        config = {"bootstrap.servers": kafka.bootstrap, "group.id": "shop", "group.protocol": "consumer"}
        consumer = Consumer({**config, "client.rack": "west"})
        consumer.subscribe(["orders"])
        while not consumer.assignment():
            consumer.poll(0.1)
        with WireClient(kafka.bootstrap) as client:
            [group] = client.ask(69, 0, group_ids=["shop"]).groups  # ConsumerGroupDescribe
        consumer.close()
        assert [member.rack_id for member in group.members] == ["west"]


@given(
    st.integers(1, 9), st.integers(1, 9), st.lists(st.sampled_from(["a", "b", "c", None]), min_size=9, max_size=9),
    st.integers(0, 20),
)  # fmt: skip
def test_replicas_are_spread_over_racks(partitions: int, replication: int, racks: list[str | None], first: int) -> None:
    brokers = range(1, 10)
    known = dict(zip(brokers, racks, strict=True))
    sizes = {rack: racks.count(rack) for rack in racks}
    for index, placed in enumerate(place_replicas(first, partitions, replication, brokers, known), first):
        assert len(set(placed)) == replication
        assert placed[0] == brokers[index % 9]
        used = [known[broker] for broker in placed]
        most = max(map(used.count, used))
        assert all(used.count(rack) in (most, most - 1) or used.count(rack) == sizes[rack] for rack in sizes)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"racks must be a list of names, for instance \[.*\], not 'east'"):
        Cluster(racks="east")
    nonsense: Any
    for nonsense in ([""], [], 2, {"east": 1}):
        with pytest.raises(ValueError, match="racks must be a list of names"):
            Cluster(racks=nonsense)
    with pytest.raises(AbeyantError, match=r"broker\.rack sets one rack for all brokers, racks= one for each broker"):
        Cluster(racks=RACKS, settings={"broker.rack": "north"})
    with pytest.raises(AbeyantError, match=r"replica\.selector\.class=a\.Selector is not supported"):
        Cluster(settings={"replica.selector.class": "a.Selector"})
