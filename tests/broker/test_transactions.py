"""Transactions with unmodified clients: commit, abort, fencing, time-outs, isolation, faults (K4, KIP-98, KIP-890)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiokafka
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition

from abeyant.broker import Cluster
from abeyant.errors import AbeyantError
from broker.clients import PATIENCE, consuming, producing, send, take
from broker.log.invariants import check_log
from broker.wire import WireClient
from waiting import wait_until

TOPIC = "orders"
COORDINATED = {"transaction.state.log.num.partitions": 1}  # broker 1 coordinates, as long as it is there


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, settings=COORDINATED) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        yield cluster


@pytest.fixture
def held() -> Iterator[Cluster]:
    with Cluster(brokers=3, clock="held", settings=COORDINATED) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        yield cluster


def transactional(kafka: Cluster, name: str = "till", **config: Any) -> Producer:
    settings = {"bootstrap.servers": kafka.bootstrap, "transactional.id": name, "linger.ms": 0, "log_level": 0}
    producer = Producer({**settings, **{key.replace("_", "."): value for key, value in config.items()}})
    producer.init_transactions(PATIENCE)
    return producer


def begin(producer: Producer, *values: bytes, partition: int = 0) -> None:
    """A transaction with these records, all of them written."""
    producer.begin_transaction()
    for value in values:
        producer.produce(TOPIC, value, partition=partition)
    assert producer.flush(PATIENCE) == 0


def committed(kafka: Cluster) -> list[bytes | None]:
    return [one.value for one in kafka.records(TOPIC, isolation="read_committed")]


def error_of(action: Callable[..., Any], *arguments: Any) -> str:
    """The name of the error that a client meets."""
    with pytest.raises(KafkaException) as raised:
        action(*arguments)
    name: str = raised.value.args[0].name()
    return name


def test_committed_records_are_seen_and_aborted_ones_only_by_those_who_want_them(kafka: Cluster) -> None:
    producer = transactional(kafka)
    for number, commits in enumerate((True, False, True)):
        begin(producer, b"%d" % number)
        producer.commit_transaction(PATIENCE) if commits else producer.abort_transaction(PATIENCE)
    with consuming(kafka, (TOPIC, 0), isolation_level="read_committed") as consumer:
        assert [message.value() for message in take(consumer, 2)] == [b"0", b"2"]
    with consuming(kafka, (TOPIC, 0), isolation_level="read_uncommitted") as consumer:
        assert [message.value() for message in take(consumer, 3)] == [b"0", b"1", b"2"]
    assert committed(kafka) == [b"0", b"2"]
    assert [one.value for one in kafka.records(TOPIC)] == [b"0", b"1", b"2"]


def test_a_reader_of_committed_data_waits_for_the_end(kafka: Cluster) -> None:
    producer = transactional(kafka)
    with consuming(kafka, (TOPIC, 0), (TOPIC, 1), isolation_level="read_committed") as consumer:
        begin(producer, b"first")
        producer.produce(TOPIC, b"second", partition=1)
        producer.flush(PATIENCE)
        assert committed(kafka) == []
        kafka.until_waiting("Fetch", client_id=None)
        producer.commit_transaction(PATIENCE)
        assert {message.value() for message in take(consumer, 2)} == {b"first", b"second"}


def test_a_producer_that_begins_fences_the_one_before(kafka: Cluster) -> None:
    zombie = transactional(kafka)
    begin(zombie, b"of the zombie")
    producer = transactional(kafka)
    begin(producer, b"of its successor")
    producer.commit_transaction(PATIENCE)
    assert error_of(zombie.commit_transaction, PATIENCE) == "_FENCED"
    assert committed(kafka) == [b"of its successor"]


def test_a_producer_is_fenced_by_order(kafka: Cluster) -> None:
    producer = transactional(kafka)
    begin(producer, b"one")
    kafka.fence("till")
    assert error_of(producer.commit_transaction, PATIENCE) == "_FENCED"
    wait_until(lambda: kafka.records(TOPIC) != [] and committed(kafka) == [])
    with consuming(kafka, (TOPIC, 0), isolation_level="read_uncommitted") as consumer:
        assert [message.value() for message in take(consumer, 1)] == [b"one"]


def test_a_producer_between_two_transactions_is_fenced_by_order(kafka: Cluster) -> None:
    producer = transactional(kafka)
    kafka.fence("till")
    producer.begin_transaction()
    producer.produce(TOPIC, b"one", partition=0)
    assert error_of(producer.commit_transaction, PATIENCE) == "_FENCED"
    assert kafka.records(TOPIC) == []


def test_an_order_to_fence_nobody_names_who_is_there(kafka: Cluster) -> None:
    with pytest.raises(AbeyantError, match="no producer has used a transactional id"):
        kafka.fence("till")
    transactional(kafka)
    with pytest.raises(AbeyantError, match="no transactional id 'tilll'; did you mean till"):
        kafka.fence("tilll")
    with (
        kafka.paused(1),
        pytest.raises(AbeyantError, match="transactional id 'till', broker 1, is paused"),
    ):
        kafka.fence("till")


def test_an_open_transaction_is_aborted_by_the_first_scan_after_its_time_is_over(held: Cluster) -> None:
    producer = transactional(held, transaction_timeout_ms=60_000)
    held.clock.advance(5.0)
    begin(producer, b"one")
    held.clock.advance(64.9)  # scans are 10 s apart, from the start on
    assert held.brokers[1].partitions[TOPIC, 0].log.end_offset == 1
    held.clock.advance(0.2)
    assert held.brokers[1].partitions[TOPIC, 0].log.end_offset == 2  # the marker
    assert held.brokers[1].partitions[TOPIC, 0].last_stable_offset == 2
    assert committed(held) == []
    assert error_of(producer.commit_transaction, PATIENCE) == "_FENCED"


def test_a_transaction_is_committed_after_its_time_where_no_scan_has_come_between(held: Cluster) -> None:
    producer = transactional(held, transaction_timeout_ms=2_000)
    for value in (b"one", b"two"):
        begin(producer, value)
        held.clock.advance(4.5)
        producer.commit_transaction(PATIENCE)
    assert committed(held) == [b"one", b"two"]
    begin(producer, b"three")  # 9 s after the start
    held.clock.advance(2.5)  # the scan after 10 s has come too early for it
    producer.commit_transaction(PATIENCE)
    begin(producer, b"four")
    held.clock.advance(8.5)  # at the next one its time is over
    assert error_of(producer.commit_transaction, PATIENCE) == "_FENCED"
    assert committed(held) == [b"one", b"two", b"three"]


def test_a_transaction_of_a_two_phase_commit_has_no_time_out() -> None:
    longest = (1 << 31) - 1
    with Cluster(clock="held", settings={**COORDINATED, "transaction.max.timeout.ms": longest}) as kafka:
        kafka.create_topic(TOPIC)
        producer = transactional(kafka, transaction_timeout_ms=longest)
        begin(producer, b"one")
        shard = kafka.brokers[1].transaction_coordinator.shards[0]
        assert not kafka._on_loop(lambda: shard._timers)


@pytest.mark.parametrize("pattern", ["(", "(?=a)a", "a{99999999999999999999}", "(" * 5000])
def test_transactional_ids_are_listed_by_patterns_of_re2(kafka: Cluster, pattern: str) -> None:
    with WireClient(kafka.bootstrap) as client:
        said = client.ask(66, 2, transactional_id_pattern=pattern)
        assert said.error_code.name == "invalid_regular_expression"
        assert client.ask(66, 2, transactional_id_pattern="(a+)+b").error_code.name == "none"


def test_a_transactional_id_is_forgotten_by_the_first_scan_after_its_time() -> None:
    interval = {"transaction.remove.expired.transaction.cleanup.interval.ms": 100_000}
    settings = {**COORDINATED, **interval, "transactional.id.expiration.ms": 30_000}
    with Cluster(clock="held", settings=settings) as kafka:
        kafka.create_topic(TOPIC)
        producer = transactional(kafka)
        begin(producer, b"one")
        producer.commit_transaction(PATIENCE)
        kafka.clock.advance(29.0)
        kafka.fence("till")
        kafka.clock.advance(29.0)
        kafka.fence("till")
        kafka.clock.advance(41.0)
        shard = kafka.brokers[1].transaction_coordinator.shards[0]
        assert list(shard.transactions) == ["till"]
        kafka.clock.advance(1.0)
        with pytest.raises(AbeyantError, match="no transactional id 'till'"):
            kafka.fence("till")


def test_an_answer_to_a_commit_that_is_lost_does_not_commit_twice(kafka: Cluster) -> None:
    producer = transactional(kafka)
    for value in (b"one", b"two"):
        begin(producer, value)
        with kafka.drop("EndTxn", response=True, times=1) as fault:
            producer.commit_transaction(PATIENCE)
            assert fault.hits == 1
    assert committed(kafka) == [b"one", b"two"]


def test_a_commit_waits_for_a_coordinator_that_is_paused(kafka: Cluster) -> None:
    producer = transactional(kafka)
    begin(producer, b"one", partition=1)
    kafka.pause(1)
    with ThreadPoolExecutor(1) as pool:
        commit = pool.submit(producer.commit_transaction, PATIENCE)
        kafka.until_waiting("Fetch")
        assert not commit.done()
        kafka.resume(1)
        commit.result(PATIENCE)
    wait_until(lambda: committed(kafka) == [b"one"])


def test_another_coordinator_ends_what_the_last_one_had_begun_to_end(held: Cluster) -> None:
    """It was written down that the transaction is committed, and no marker was."""
    producer = transactional(held)
    begin(producer, b"one", partition=1)  # led by broker 2
    with held.drop("WriteTxnMarkers", broker=2):
        producer.commit_transaction(PATIENCE)
        assert committed(held) == []
        held.stop(1)
    held.clock.advance(1.0)
    assert committed(held) == [b"one"]
    begin(producer, b"two", partition=1)
    producer.commit_transaction(PATIENCE)
    held.clock.advance(1.0)
    assert committed(held) == [b"one", b"two"]


@pytest.mark.parametrize("outage", ["paused", "stopped"])
def test_a_marker_waits_for_the_partitions_leader(outage: str) -> None:
    settings = {**COORDINATED, "transaction.state.log.replication.factor": 1}
    with Cluster(brokers=3, clock="held", settings=settings) as kafka:
        kafka.create_topic(TOPIC, partitions=2)
        producer = transactional(kafka)
        begin(producer, b"one", partition=1)  # led by broker 2
        with getattr(kafka, outage)(2):
            producer.commit_transaction(PATIENCE)
            if outage == "paused":
                assert [waiting.keys for waiting in kafka.waiting("InterBroker")] == [((TOPIC, 1),)]
                assert committed(kafka) == []
            kafka.clock.advance(0.2)
        kafka.clock.advance(0.2)
        assert committed(kafka) == [b"one"]


def test_a_transaction_goes_on_when_its_partition_is_led_by_another_broker(kafka: Cluster) -> None:
    producer = transactional(kafka)
    begin(producer, b"one", partition=1)
    kafka.stop(2)
    producer.produce(TOPIC, b"two", partition=1)
    producer.commit_transaction(PATIENCE)
    wait_until(lambda: committed(kafka) == [b"one", b"two"])


def test_an_error_of_the_coordinator_is_tried_again(kafka: Cluster) -> None:
    producer = transactional(kafka)
    with kafka.fail("AddPartitionsToTxn", error="COORDINATOR_LOAD_IN_PROGRESS", times=2) as fault:
        begin(producer, b"one")
        assert fault.hits == 2
    with kafka.fail("EndTxn", error="COORDINATOR_NOT_AVAILABLE", times=2) as fault:
        producer.commit_transaction(PATIENCE)
        assert fault.hits == 2
    wait_until(lambda: committed(kafka) == [b"one"])


def test_transactions_survive_the_process(tmp_path: Path) -> None:
    """What was committed is; what was open is aborted by the next producer with the same id."""
    with Cluster(brokers=3, data=tmp_path, settings=COORDINATED) as kafka:
        kafka.create_topic(TOPIC)
        producer = transactional(kafka)
        begin(producer, b"one")
        producer.commit_transaction(PATIENCE)
        begin(producer, b"two")
    with Cluster(brokers=3, data=tmp_path, settings=COORDINATED) as kafka:
        assert committed(kafka) == [b"one"]
        successor = transactional(kafka)
        begin(successor, b"three")
        successor.commit_transaction(PATIENCE)
        wait_until(lambda: committed(kafka) == [b"one", b"three"])
        for broker in kafka.brokers.values():
            check_log(broker.partitions[TOPIC, 0].log)


def test_aiokafka(kafka: Cluster) -> None:
    """Which speaks the older protocol."""

    async def through() -> list[bytes | None]:
        async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, transactional_id="till") as producer:
            for number in range(4):
                await producer.begin_transaction()
                await producer.send_and_wait(TOPIC, b"%d" % number, partition=0)
                await (producer.abort_transaction() if number == 1 else producer.commit_transaction())
        async with AIOKafkaConsumer(bootstrap_servers=kafka.bootstrap, isolation_level="read_committed") as consumer:
            partition = aiokafka.TopicPartition(TOPIC, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            return [(await consumer.getone()).value for _ in range(3)]

    assert asyncio.run(asyncio.wait_for(through(), PATIENCE)) == [b"0", b"2", b"3"]
    assert committed(kafka) == [b"0", b"2", b"3"]


def test_offsets_are_committed_with_the_transaction(kafka: Cluster) -> None:
    """Consume, transform, produce: what was read counts as read only where what was written counts."""
    kafka.create_topic("read", partitions=2)
    with producing(kafka) as plain:
        for number in range(6):
            send(plain, "read", b"%d" % number, partition=number % 2)
        plain.flush(PATIENCE)
    for generation, commits in enumerate((False, True)):
        reader = Consumer(
            {"bootstrap.servers": kafka.bootstrap, "group.id": "copy", "auto.offset.reset": "earliest",
             "enable.auto.commit": False, "log_level": 0}
        )  # fmt: skip
        reader.subscribe(["read"])
        producer = transactional(kafka)
        got = take(reader, 6)
        assert {message.value() for message in got} == {b"%d" % number for number in range(6)}, generation
        producer.begin_transaction()
        for message in got:
            producer.produce(TOPIC, message.value(), partition=0)
        places = reader.position(reader.assignment())
        producer.send_offsets_to_transaction(places, reader.consumer_group_metadata(), PATIENCE)
        unread = [TopicPartition("read", 0), TopicPartition("read", 1)]
        if not commits:
            producer.abort_transaction(PATIENCE)
        else:
            producer.commit_transaction(PATIENCE)
        expected = 3 if commits else OFFSET_INVALID
        assert [one.offset for one in reader.committed(unread, PATIENCE)] == [expected, expected]
        reader.close()
    assert sorted(value or b"" for value in committed(kafka)) == [b"%d" % number for number in range(6)]
