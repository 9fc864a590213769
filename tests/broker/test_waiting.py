"""K3, K6 and the in-sync set: what waits, by the wire and with the clock held, so that nothing depends on luck."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from broker.log.batches import batch
from broker.wire import WireClient
from waiting import wait_until

PRODUCE, FETCH, DELETE_RECORDS, LIST_OFFSETS, ELECT_LEADERS = (0, 9), (1, 12), (21, 2), (2, 7), (43, 2)
CREATE_TOPICS, REASSIGN, LIST_REASSIGNMENTS = (19, 7), (45, 0), (46, 0)
TOPIC = "orders"


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, clock="held") as cluster:
        yield cluster


def client(kafka: Cluster, broker: int = 1) -> WireClient:
    return WireClient(kafka.bootstrap.split(",")[broker - 1])


def produce(wire: WireClient, values: list[bytes], *, acks: int = -1, timeout: float = 30.0, partition: int = 0) -> int:
    data = {"index": partition, "records": batch(values).data}
    return wire.send(
        *PRODUCE, acks=acks, timeout=timedelta(seconds=timeout), topic_data=[{"name": TOPIC, "partition_data": [data]}]
    )


def produced(wire: WireClient, number: int) -> ErrorCode:
    error: ErrorCode = wire.receive(*PRODUCE, number).responses[0].partition_responses[0].error_code
    return error


def fetch(wire: WireClient, offset: int, *, wait: float, min_bytes: int = 1, partitions: int = 1, **more: Any) -> int:
    asked = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20, **more}
        for index in range(partitions)
    ]
    return wire.send(
        *FETCH, max_wait=timedelta(seconds=wait), min_bytes=min_bytes, max_bytes=1 << 20, session_epoch=-1,
        topics=[{"topic": TOPIC, "partitions": asked}],
    )  # fmt: skip


def fetched(wire: WireClient, number: int) -> list[Any]:
    return list(wire.receive(*FETCH, number).responses[0].partitions)


def waiting(kafka: Cluster, kind: str, broker: int = 1) -> Callable[[], bool]:
    """Whether a client's operation waits."""
    purgatories = {purgatory.name: purgatory for purgatory in kafka.brokers[broker].purgatories}
    before = 2 if kind == "Fetch" else 0  # the followers' own

    def holds() -> bool:
        return purgatories[kind].delayed > before

    return holds


def no_answer_yet(wire: WireClient) -> bool:
    wire.socket.settimeout(0.02)
    try:
        return not wire.socket.recv(1)
    except TimeoutError:
        return True
    finally:
        wire.socket.settimeout(30.0)


# -- K2


def test_k2_too_few_in_sync_beforehand_appends_nothing(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC, config={"min.insync.replicas": 3})
    kafka.stop(3)
    with client(kafka) as wire:
        assert produced(wire, produce(wire, [b"one"])) is ErrorCode.not_enough_replicas
        assert produced(wire, produce(wire, [b"one"], acks=1)) is ErrorCode.none
    assert kafka.brokers[1].partitions[TOPIC, 0].log.end_offset == 1


def test_k2_a_leader_that_loses_its_lead_says_so(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC)
    kafka.pause(3)
    with client(kafka) as wire:
        number = produce(wire, [b"one"])
        wait_until(waiting(kafka, "Produce"))

        def move() -> None:
            partition = kafka.controller.topics[TOPIC].partitions[0]
            kafka.controller.leaders.reassign(partition, (2, 3), factor_may_change=True)

        kafka._on_loop(move)
        assert produced(wire, number) is ErrorCode.not_leader_or_follower


# -- K3


def test_k3_a_fetch_waits_for_the_last_byte(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC, partitions=1)
    size = batch([b"x" * 1000]).size
    with client(kafka) as reader, client(kafka) as writer:
        number = fetch(reader, 0, wait=30.0, min_bytes=3 * size)
        wait_until(waiting(kafka, "Fetch"))
        for _ in range(2):
            assert produced(writer, produce(writer, [b"x" * 1000])) is ErrorCode.none
        assert no_answer_yet(reader)
        assert produced(writer, produce(writer, [b"x" * 1000])) is ErrorCode.none
        (partition,) = fetched(reader, number)
        assert (len(partition.records), partition.high_watermark) == (3 * size, 3)


def test_k3_or_for_max_wait(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC)
    with client(kafka) as reader, client(kafka) as writer:
        assert produced(writer, produce(writer, [b"one"])) is ErrorCode.none
        number = fetch(reader, 0, wait=5.0, min_bytes=10_000)
        wait_until(waiting(kafka, "Fetch"))
        kafka.clock.advance(4.9)
        assert no_answer_yet(reader)
        kafka.clock.advance(0.2)
        assert fetched(reader, number)[0].records == batch([b"one"]).at_offset(0, 0).data


def test_k3_bytes_count_over_all_partitions(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC, partitions=4, replicas=1)
    led = [state.partition for state in kafka.controller.topics[TOPIC].partitions if state.leader == 1]
    assert led == [0, 3]
    size = batch([b"x" * 1000]).size
    with client(kafka) as reader, client(kafka) as writer:
        asked = [{"partition": index, "fetch_offset": 0, "partition_max_bytes": 1 << 20} for index in led]
        number = reader.send(
            *FETCH, max_wait=timedelta(seconds=30), min_bytes=2 * size, max_bytes=1 << 20, session_epoch=-1,
            topics=[{"topic": TOPIC, "partitions": asked}],
        )  # fmt: skip
        wait_until(lambda: kafka.brokers[1].fetch_purgatory.delayed == 1)
        assert produced(writer, produce(writer, [b"x" * 1000])) is ErrorCode.none
        assert no_answer_yet(reader)
        assert produced(writer, produce(writer, [b"x" * 1000], partition=3)) is ErrorCode.none
        assert [len(partition.records) for partition in fetched(reader, number)] == [size, size]


def test_k3_an_error_is_told_at_once(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC)
    with client(kafka) as reader:
        number = fetch(reader, 0, wait=30.0)
        wait_until(waiting(kafka, "Fetch"))
        kafka._on_loop(lambda: kafka.controller.delete_topic(kafka.controller.topics[TOPIC]))
        assert fetched(reader, number)[0].error_code is ErrorCode.unknown_topic_or_partition


def test_k3_what_waits_costs_no_look_at_the_log(kafka: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka.create_topic(TOPIC, partitions=1)
    kafka.create_topic("other", partitions=1)
    with client(kafka) as reader, client(kafka) as writer:
        number = fetch(reader, 0, wait=5.0)
        wait_until(waiting(kafka, "Fetch"))
        log = kafka.brokers[1].partitions[TOPIC, 0].log
        with monkeypatch.context() as patched:
            for name in ("read", "read_batches", "bytes_between"):
                patched.setattr(log, name, None)
            data = {"index": 0, "records": batch([b"one"]).data}
            writer.ask(
                *PRODUCE,
                acks=-1,
                timeout=timedelta(seconds=9),
                topic_data=[{"name": "other", "partition_data": [data]}],
            )
            kafka.clock.advance(4.0)
        kafka.clock.advance(2.0)
        assert fetched(reader, number)[0].error_code is ErrorCode.none


# -- K6


def test_k6_delete_records_waits_for_a_paused_replica(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC)
    with client(kafka) as wire:
        assert produced(wire, produce(wire, [b"one"])) is ErrorCode.none
        assert produced(wire, produce(wire, [b"two"])) is ErrorCode.none

        def delete(offset: int, timeout: float) -> int:
            return wire.send(
                *DELETE_RECORDS, timeout=timedelta(seconds=timeout),
                topics=[{"name": TOPIC, "partitions": [{"partition_index": 0, "offset": offset}]}],
            )  # fmt: skip

        def answer(number: int) -> tuple[ErrorCode, int]:
            partition = wire.receive(*DELETE_RECORDS, number).topics[0].partitions[0]
            return partition.error_code, partition.low_watermark

        kafka.pause(2)
        number = delete(1, 5.0)
        wait_until(waiting(kafka, "DeleteRecords"))
        kafka.clock.advance(4.9)
        assert no_answer_yet(wire)
        kafka.clock.advance(0.2)
        assert answer(number)[0] is ErrorCode.request_timed_out
        number = delete(2, 5.0)
        wait_until(waiting(kafka, "DeleteRecords"))
        kafka.resume(2)
        assert answer(number) == (ErrorCode.none, 2)
        assert [kafka.brokers[one].partitions[TOPIC, 0].log.start_offset for one in (1, 2, 3)] == [2, 2, 2]
        assert answer(delete(3, 5.0))[0] is ErrorCode.offset_out_of_range


# -- who leads


def state(kafka: Cluster) -> Any:
    return kafka.controller.topics[TOPIC].partitions[0]


def lose_fetches(kafka: Cluster) -> None:
    """What followers have under way is lost: they begin anew in a second."""
    for follower in kafka.brokers.values():
        for leader, fetcher in follower.fetchers._by_leader.items():
            follower.fetchers.failed(leader, fetcher._number)


def test_a_follower_that_was_ahead_is_cut_back(kafka: Cluster) -> None:
    """The leader appends what nobody else has, and stops; who leads then knows nothing of it."""
    kafka.create_topic(TOPIC, config={"unclean.leader.election.enable": True})
    with client(kafka) as wire, client(kafka, 2) as other:
        assert produced(wire, produce(wire, [b"kept"])) is ErrorCode.none
        kafka._gate = lambda passage: str(passage.client_id).startswith("broker-")  # no follower gets any further,
        kafka.clock.advance(0.6)  # once the fetch that waits has ended
        assert produced(wire, produce(wire, [b"lost"], acks=1)) is ErrorCode.none
        assert produced(wire, produce(wire, [b"lost too"], acks=1)) is ErrorCode.none
        kafka.pause(1)
        kafka.clock.advance(10.0)
        assert (state(kafka).leader, state(kafka).isr) == (2, (2, 3))
        kafka._gate = None
        kafka._on_loop(lose_fetches, kafka)
        kafka.clock.advance(1.5)
        assert produced(other, produce(other, [b"new"])) is ErrorCode.none
        kafka.resume(1)
        kafka.clock.advance(2.0)
    logs = [kafka.brokers[one].partitions[TOPIC, 0].log for one in (1, 2, 3)]
    assert [log.end_offset for log in logs] == [2, 2, 2]
    assert len({log.read(0, 1 << 20, 2, min_one=True) for log in logs}) == 1
    assert state(kafka).isr == (1, 2, 3)


def test_nobody_leads_when_nobody_in_sync_is_there(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC, replicas=2)
    kafka.stop(2)
    kafka.stop(1)
    assert (state(kafka).leader, state(kafka).isr) == (-1, (1,))
    kafka.start(2)
    assert state(kafka).leader == -1
    kafka.start(1)
    assert (state(kafka).leader, state(kafka).isr) == (1, (1, 2))


def test_an_unclean_election_when_it_is_ordered(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC, replicas=2)
    kafka.stop(2)
    kafka.stop(1)
    kafka.start(2)
    with client(kafka, 3) as wire:
        for kind, error in (
            (0, ErrorCode.preferred_leader_not_available),
            (1, ErrorCode.none),
            (1, ErrorCode.election_not_needed),
        ):
            response = wire.ask(
                *ELECT_LEADERS, election_type=kind, timeout=timedelta(seconds=5),
                topic_partitions=[{"topic": TOPIC, "partitions": [0]}],
            )  # fmt: skip
            assert response.replica_election_results[0].partition_result[0].error_code is error
    assert (state(kafka).leader, state(kafka).isr) == (2, (2,))


def test_the_preferred_replica_leads_again(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC)
    kafka.stop(1)
    kafka.start(1)
    assert (state(kafka).leader, state(kafka).isr) == (2, (1, 2, 3))
    epoch = state(kafka).leader_epoch
    kafka.clock.advance(301.0)
    assert (state(kafka).leader, state(kafka).leader_epoch) == (1, epoch + 1)


def test_an_election_waits_for_who_is_elected(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC)
    kafka.stop(1)
    kafka.start(1)
    kafka.pause(1)
    with client(kafka, 2) as wire:
        number = wire.send(*ELECT_LEADERS, timeout=timedelta(seconds=5), topic_partitions=None)
        wait_until(waiting(kafka, "ElectLeader", 2))
        assert no_answer_yet(wire)
        kafka.resume(1)
        response = wire.receive(*ELECT_LEADERS, number)
    assert response.replica_election_results[0].partition_result[0].error_code is ErrorCode.none
    assert state(kafka).leader == 1


def test_a_reassignment_copies_and_then_moves(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC, replicas=1)
    with client(kafka) as wire:
        for _ in range(3):
            assert produced(wire, produce(wire, [b"x" * 100])) is ErrorCode.none
        kafka.pause(3)

        def move(replicas: list[int] | None) -> ErrorCode:
            partition = {"partition_index": 0, "replicas": replicas}
            response = wire.ask(
                *REASSIGN, timeout=timedelta(seconds=5), topics=[{"name": TOPIC, "partitions": [partition]}]
            )
            error: ErrorCode = response.responses[0].partitions[0].error_code
            return error

        assert move([2, 3]) is ErrorCode.none
        moving = wire.ask(*LIST_REASSIGNMENTS, topics=None).topics[0].partitions[0]
        assert (moving.replicas, moving.adding_replicas, moving.removing_replicas) == ((2, 3, 1), (2, 3), (1,))
        kafka.resume(3)
        wait_until(lambda: not state(kafka).reassigning)
        assert wire.ask(*LIST_REASSIGNMENTS, topics=None).topics == ()
        assert (state(kafka).replicas, state(kafka).isr, state(kafka).leader) == ((2, 3), (2, 3), 2)
        assert (TOPIC, 0) not in kafka.brokers[1].partitions
        assert [kafka.brokers[one].partitions[TOPIC, 0].log.end_offset for one in (2, 3)] == [3, 3]
        assert move(None) is ErrorCode.no_reassignment_in_progress
        assert move([9]) is ErrorCode.invalid_replica_assignment


def test_a_reader_of_another_history_is_told_where_it_parted(kafka: Cluster) -> None:
    kafka.create_topic(TOPIC)
    with client(kafka) as wire:
        assert produced(wire, produce(wire, [b"one"])) is ErrorCode.none
        kafka.stop(1)
    with client(kafka, 2) as wire:
        assert produced(wire, produce(wire, [b"two"])) is ErrorCode.none
        (partition,) = fetched(wire, fetch(wire, 2, wait=30.0, last_fetched_epoch=0))
        assert (partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset) == (0, 1)
        (partition,) = fetched(wire, fetch(wire, 0, wait=30.0, current_leader_epoch=0))
        assert partition.error_code is ErrorCode.fenced_leader_epoch
        (partition,) = fetched(wire, fetch(wire, 0, wait=30.0, current_leader_epoch=5))
        assert partition.error_code is ErrorCode.unknown_leader_epoch
