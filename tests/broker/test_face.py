"""What a test sees of a cluster: what waits, what was written, who leads."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from abeyant.broker import Cluster
from abeyant.broker.transactions.transaction import BUMPS_SINCE, State
from abeyant.broker.transactions.transaction import Producer as Writer
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle
from broker.conformance.bodies import list_offsets
from broker.conformance.client import Connection
from broker.conformance.scenario import Topic

TOPIC = "orders"


def test_what_waits_is_told_with_its_keys_its_client_and_its_deadline() -> None:
    with Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        with producing(kafka, acks="all", request_timeout_ms=4000, client_id="shop") as producer, kafka.paused(2):
            late = send(producer, TOPIC, b"late")
            [waiting] = kafka.until_waiting("Produce", client_id="shop")
            assert waiting.broker == kafka.leader(TOPIC) == 1
            assert (waiting.kind, waiting.keys, waiting.client_id) == ("Produce", ((TOPIC, 0),), "shop")
            assert waiting.since == kafka.clock.now()
            assert waiting.deadline - waiting.since == pytest.approx(4.0)
            kafka.clock.advance(4.1)
            assert settle(producer, late) == ["REQUEST_TIMED_OUT"]
            assert kafka.waiting("Produce") == []
        followers = kafka.waiting("Fetch", client_id="broker-3-fetcher-0")
        assert [(one.broker, one.keys) for one in followers] == [(1, ((TOPIC, 0),))]


def test_a_consumers_long_poll_waits_on_its_partitions() -> None:
    with Cluster() as kafka:
        kafka.create_topic(TOPIC, partitions=2)
        with consuming(kafka, (TOPIC, 0), (TOPIC, 1), client_id="reader", fetch_wait_max_ms=20_000) as consumer:
            consumer.poll(0)
            [waiting] = kafka.until_waiting("Fetch", client_id="reader")
            assert sorted(waiting.keys) == [(TOPIC, 0), (TOPIC, 1)]
            assert waiting.deadline - waiting.since == pytest.approx(20.0)


def test_nothing_that_waits_in_time_is_an_error_that_says_how_many_and_what_waits() -> None:
    said = r"after 0\.01 s 0 of 1 requests are pending in Produce"
    with Cluster() as kafka:
        with pytest.raises(TimeoutError, match=f"{said}; no request is pending"):
            kafka.until_waiting("Produce", timeout=0.01)
        kafka.create_topic(TOPIC)
        with consuming(kafka, (TOPIC, 0), client_id="reader", fetch_wait_max_ms=20_000) as consumer:
            consumer.poll(0)
            kafka.until_waiting("Fetch")
            with pytest.raises(TimeoutError, match=f"{said} of client 'x'; pending are 1 Fetch of 'reader'"):
                kafka.until_waiting("Produce", client_id="x", timeout=0.01)


def test_until_waiting_is_refused_in_a_loop() -> None:
    async def wait() -> None:
        async with Cluster() as kafka:
            with pytest.raises(AbeyantError, match="cannot be called in an event loop"):
                kafka.until_waiting("Produce")
            assert kafka.waiting() == []

    asyncio.run(wait())


def test_records_are_decoded_in_every_codec() -> None:
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    with Cluster() as kafka:
        kafka.create_topic(TOPIC)
        for number, codec in enumerate(codecs):
            with producing(kafka, compression_codec=codec) as producer:
                more: dict[str, Any] = {"key": codec.encode(), "headers": [("n", b"%d" % number), ("null", None)]}
                delivery = send(producer, TOPIC, codec.encode() * 100, timestamp=1_700_000_000_000 + number, **more)
                assert settle(producer, delivery) == [None]
        found = kafka.records(TOPIC)
        assert [record.key for record in found] == [codec.encode() for codec in codecs]
        assert [record.value for record in found] == [codec.encode() * 100 for codec in codecs]
        assert [record.timestamp - 1_700_000_000_000 for record in found] == [0, 1, 2, 3, 4]
        assert [record.headers for record in found] == [(("n", b"%d" % n), ("null", None)) for n in range(5)]
        assert kafka.records(TOPIC, 0) == found


def test_k4_records_are_what_a_consumer_would_see_unless_asked_for_more() -> None:
    with Cluster(brokers=2, clock="held") as kafka, producing(kafka, acks=1) as producer:
        kafka.create_topic(TOPIC, replicas=2)
        # The client knows the leader before a broker stands still, which else it might ask.
        assert settle(producer, send(producer, TOPIC, b"first")) == [None]
        kafka.clock.advance(1)
        with kafka.paused(2):
            assert settle(producer, send(producer, TOPIC, b"ahead")) == [None]
            assert [record.value for record in kafka.records(TOPIC)] == [b"first"]
            assert [record.value for record in kafka.records(TOPIC, beyond_high_watermark=True)] == [b"first", b"ahead"]
        kafka.clock.advance(1)
        assert [record.value for record in kafka.records(TOPIC)] == [b"first", b"ahead"]


def test_leaders_and_in_sync_replicas_move_as_brokers_stop_and_start() -> None:
    with Cluster(brokers=3, clock="held") as kafka:
        kafka.create_topic(TOPIC)
        assert (kafka.leader(TOPIC), kafka.in_sync(TOPIC)) == (1, (1, 2, 3))
        with kafka.stopped(1):
            assert (kafka.leader(TOPIC), kafka.in_sync(TOPIC)) == (2, (2, 3))
        kafka.clock.advance(1)
        assert (kafka.leader(TOPIC), kafka.in_sync(TOPIC)) == (2, (1, 2, 3))
        kafka.delete_topic(TOPIC)
        assert kafka.topics() == []


def test_a_block_that_names_a_broker_that_is_not_there_leaves_none_paused_or_stopped() -> None:
    with Cluster(brokers=2) as kafka:
        for block in (kafka.paused, kafka.stopped):
            with pytest.raises(AbeyantError, match="there is no broker 9: there are brokers 1 to 2"), block(2, 9):
                pytest.fail("the block was entered")
            assert not kafka.brokers[2].paused
            assert not kafka.brokers[2].stopped


def test_a_broker_that_is_stopped_while_it_stands_still_does_not_come_back_to_life() -> None:
    with Cluster(brokers=2) as kafka:
        with kafka.paused(2):
            kafka.stop(2)
        kafka.create_topic("orders", partitions=2, replicas=1)
        assert [kafka.leader("orders", index) for index in range(2)] == [1, 1]
        kafka.start(2)
        kafka.create_topic("payments", partitions=2, replicas=1)
        assert [kafka.leader("payments", index) for index in range(2)] == [1, 2]


def test_brokers_are_numbered_from_node_id(tmp_path: Path) -> None:
    for expected in (1, 2):  # the second time with what the first has kept
        with Cluster(2, settings={"node.id": 0}, data=tmp_path) as kafka:
            if expected == 1:
                kafka.create_topic("orders", partitions=1, replicas=2)
            with producing(kafka, acks="all") as producer:
                assert settle(producer, send(producer, "orders", b"tea")) == [None]
                assert set(kafka.in_sync("orders")) == {0, 1}
            with kafka.stopped(0):
                assert kafka.leader("orders") == 1
            assert len(kafka.records("orders")) == expected
            with pytest.raises(AbeyantError, match="there is no broker 2: there are brokers 0 to 1"):
                kafka.stop(2)


def test_k8_a_request_that_a_fault_delays_waits_until_then() -> None:
    with Cluster(clock="held") as kafka, producing(kafka, client_id="shop", retries=0) as producer:
        kafka.create_topic(TOPIC)
        kafka.delay("Produce", seconds=5.0, times=1)
        late = send(producer, TOPIC, b"late")
        [waiting] = kafka.until_waiting("Produce", client_id="shop")
        now = kafka.clock.now()
        assert waiting == (1, "Produce", ((TOPIC, 0),), "shop", now, now + 5.0, "delay")
        assert kafka.waiting() == [waiting]
        kafka.clock.advance(4.9)
        assert not late.done
        kafka.clock.advance(0.1)
        assert settle(producer, late) == [None]
        assert kafka.waiting() == []


def test_a_delayed_request_that_waits_nowhere_else_is_called_by_its_api() -> None:
    with Cluster(clock="held") as kafka:
        kafka.create_topic(TOPIC)
        topic = Topic(TOPIC, str(kafka.controller.topics[TOPIC].id))
        with Connection("127.0.0.1", int(kafka.bootstrap.rpartition(":")[2]), "shop") as connection:
            with kafka.delay(seconds=1.0):
                connection.send("ListOffsets", 9, list_offsets(topic, -2))
                [waiting] = kafka.until_waiting("ListOffsets", client_id="shop")
                assert (waiting.keys, waiting.held_by) == (((TOPIC, 0),), "delay")
                kafka.clock.advance(1.0)
                assert connection.receive()["topics"][0]["partitions"][0]["offset"] == 0
                connection.send("Heartbeat", 4, {"group_id": "till", "member_id": "one", "generation_id": 1})
                [waiting] = kafka.until_waiting("Heartbeat", client_id="shop")
                assert waiting.keys == (("till", "one"),)
            kafka.stop(1)
            assert kafka.waiting() == []  # it is lost with its broker


def test_requests_that_have_come_to_a_paused_broker_wait() -> None:
    with Cluster(clock="held") as kafka, producing(kafka, client_id="shop") as producer:
        kafka.create_topic(TOPIC)
        assert settle(producer, send(producer, TOPIC, b"first")) == [None]
        with kafka.paused(1):
            kafka.clock.advance(1.0)
            late = send(producer, TOPIC, b"late")
            [waiting] = kafka.until_waiting("Produce")
            assert (waiting.keys, waiting.client_id, waiting.held_by) == (((TOPIC, 0),), "shop", "pause")
            assert waiting.since == kafka.clock.now()
            assert waiting.deadline == math.inf
        assert settle(producer, late) == [None]
        assert kafka.waiting("Produce") == []


def test_what_a_client_has_been_answered_is_seen_at_once() -> None:
    """A commit is answered before its markers are on their way: `records` is what a reader is told next."""
    with Cluster() as kafka:
        kafka.create_topic(TOPIC)
        till = {"bootstrap.servers": kafka.bootstrap, "transactional.id": "till", "linger.ms": 0}
        producer = Producer(till)
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce(TOPIC, b"tea")
        producer.flush(10)

        def commit_and_look() -> list[bytes | None]:
            [shard] = [one for one in kafka.brokers[1].transaction_coordinator.loaded() if "till" in one.transactions]
            now = shard.transactions["till"].now
            shard.finish("till", Writer(now.producer_id, now.epoch), True, BUMPS_SINCE, lambda *_: None)
            assert shard.transactions["till"].now.state is State.PREPARE_COMMIT  # so it is answered
            return [record.value for record in kafka.records(TOPIC, isolation="read_committed")]

        assert kafka._on_loop(commit_and_look) == [b"tea"]


def test_an_option_that_is_a_setting_is_told_where_to_go() -> None:
    with pytest.raises(TypeError, match=r'write settings=\{"min.insync.replicas": ...\}'):
        Cluster(min_insync_replicas=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Cluster has no option broker; did you mean brokers"):
        Cluster(broker=2)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"no option min_insync_replica; did you mean min\.insync\.replicas"):
        Cluster(min_insync_replica=2)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"brokers must be from 1 to 1000, not 1\.5"):
        Cluster(1.5)  # type: ignore[arg-type]


def test_settings_are_written_with_dots_or_with_underscores() -> None:
    with Cluster(settings={"min_insync_replicas": 2, "log.roll.ms": 5}) as kafka:
        assert (kafka.settings["min.insync.replicas"], kafka.settings["log.roll.ms"]) == (2, 5)
        kafka.create_topic(TOPIC, config={"retention_ms": 7})
        assert kafka.controller.topics[TOPIC].settings["retention.ms"] == 7
    with pytest.raises(AbeyantError, match=r"given twice, with dots and with underscores"):
        Cluster(settings={"min_insync_replicas": 2, "min.insync.replicas": 1})
    with pytest.raises(AbeyantError, match=r"node\.id is None: leave it out for its default"):
        Cluster(settings={"node.id": None})


def test_a_broker_that_is_started_or_resumed_within_its_block_is_left_alone_at_its_end() -> None:
    with Cluster(brokers=2) as kafka:
        with kafka.paused(2):
            kafka.resume(2)
        with kafka.stopped(2):
            kafka.start(2)
        assert not kafka.brokers[2].paused
        assert not kafka.is_stopped(2)
