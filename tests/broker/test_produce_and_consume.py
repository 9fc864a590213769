"""Unmodified confluent-kafka through three brokers."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from struct import Struct

import pytest

from abeyant import broker
from abeyant.broker import clock
from abeyant.broker.log.batch import make_batch
from abeyant.broker.log.records import Record, encode
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle, take
from broker.wire import WireClient


def test_what_is_produced_is_consumed() -> None:
    with broker.Cluster(brokers=3) as kafka:
        kafka.create_topic("orders", partitions=3)
        with producing(kafka, acks="all") as producer:
            sent = [
                send(
                    producer, "orders", b"value %d" % number, number % 3, key=b"key %d" % number,
                    headers=[("n", b"%d" % number)], timestamp=1_700_000_000_000 + number,
                )
                for number in range(30)
            ]  # fmt: skip
            assert settle(producer, *sent) == [None] * 30
        with consuming(kafka, ("orders", 0), ("orders", 1), ("orders", 2)) as consumer:
            got = take(consumer, 30)
        seen = {
            (message.partition(), message.offset(), message.key(), message.value(), message.timestamp()[1])
            for message in got
        }
        assert seen == {
            (number % 3, number // 3, b"key %d" % number, b"value %d" % number, 1_700_000_000_000 + number)
            for number in range(30)
        }
        assert [message.headers() for message in got if message.value() == b"value 7"] == [[("n", b"7")]]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec(codec: str) -> None:
    with broker.Cluster(brokers=3) as kafka:
        kafka.create_topic("squeezed")
        values = [b"a" * 1000, None, b"", b"b" * 1000]
        with producing(kafka, compression_type=codec, enable_idempotence=True, retries=5) as producer:
            assert settle(producer, *[send(producer, "squeezed", value) for value in values]) == [None] * 4
        with consuming(kafka, ("squeezed", 0)) as consumer:
            assert [message.value() for message in take(consumer, 4)] == values


def test_a_duplicate_of_whatever_time_gets_its_first_answer_again(tmp_path: Path) -> None:
    """Its time is told (as Kafka does), even where it is microseconds taken for milliseconds: the year 58,692."""
    time = 1_790_000_000_000_000
    batch = make_batch(
        encode([Record(0, time, b"k", b"v")], 0, time), record_count=1, base_timestamp=time, max_timestamp=time,
        producer_id=7, producer_epoch=0, base_sequence=0,
    )  # fmt: skip
    with broker.Cluster(request_log=tmp_path) as kafka, WireClient(kafka.bootstrap) as client:
        kafka.create_topic("orders", config={"message.timestamp.after.max.ms": (1 << 63) - 1})
        for _ in range(2):
            partition = {"index": 0, "records": batch.data}
            topic = {"name": "orders", "partition_data": [partition]}
            client.send(0, 3, transactional_id=None, acks=-1, timeout=timedelta(seconds=9), topic_data=[topic])
            (size,) = Struct(">i").unpack(client.socket.recv(4))
            told = Struct(">hqq").unpack_from(client.socket.recv(size), 4 + 4 + 2 + len("orders") + 4 + 4)
        assert told == (0, 0, time)
        assert len(kafka.records("orders")) == 1


@pytest.mark.parametrize("transactional", [False, True], ids=["a fault", "transactional without an id"])
def test_who_wants_no_answer_gets_none_but_the_end(transactional: bool) -> None:
    """With acks=0 an answer would be taken for that to the next request: so an error ends the connection."""
    records = encode([Record(0, 1, b"k", b"v")], 0, 1)
    batch = make_batch(
        records, record_count=1, base_timestamp=1, max_timestamp=1, attributes=0x10 if transactional else 0
    )
    with broker.Cluster() as kafka, WireClient(kafka.bootstrap) as client:
        kafka.create_topic("orders")
        if not transactional:
            kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER", times=1)
        topic = {"name": "orders", "partition_data": [{"index": 0, "records": batch.data}]}
        client.send(0, 9, transactional_id=None, acks=0, timeout=timedelta(seconds=9), topic_data=[topic])
        assert client.socket.recv(1) == b""
        assert kafka.records("orders") == []


def test_a_topic_that_is_there_is_refused() -> None:
    with broker.Cluster() as kafka:
        kafka.create_topic("orders")
        with pytest.raises(AbeyantError, match="cannot create topic 'orders': Topic 'orders' already exists"):
            kafka.create_topic("orders")


def test_a_port_that_is_taken_is_named() -> None:
    with broker.Cluster() as kafka:
        port = int(kafka.bootstrap.rpartition(":")[2])
        with pytest.raises(AbeyantError, match=rf"broker 1 cannot listen at 127.0.0.1:{port}: Address already in use"):
            broker.Cluster(port=port).open()


def test_more_replicas_than_brokers() -> None:
    with broker.Cluster(brokers=2) as kafka, pytest.raises(AbeyantError, match="only 2 broker"):
        kafka.create_topic("orders", replicas=3)


def test_a_machine_that_slept_takes_records_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    slept = 0
    monkeypatch.setattr(clock, "machine_slept", lambda: slept * 3600.0)
    with broker.Cluster() as kafka, producing(kafka) as producer:
        kafka.create_topic("orders")
        now = time.time()
        for hours, ahead, expected in (
            (0, 0, None),
            (0, 24, "INVALID_TIMESTAMP"),
            (24, 24, None),
            (24, 48, "INVALID_TIMESTAMP"),
        ):
            slept = hours
            sent = send(producer, "orders", b"tea", timestamp=int((now + ahead * 3600) * 1000))
            assert settle(producer, sent) == [expected]
