"""K9 and K10: what a connection does with what comes over it."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import resource
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.errors import AbeyantError
from broker.log.batches import batch
from broker.wire import WireClient
from waiting import wait_until

PRODUCE, FETCH, METADATA = (0, 9), (1, 11), (3, 9)
SECOND = timedelta(seconds=1)


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3) as cluster:
        cluster.create_topic("orders")
        yield cluster


class Recorder:
    """In place of a socket: keeps what would be sent."""

    def __init__(self) -> None:
        self.data = b""

    def sendall(self, data: bytes) -> None:
        self.data += data


@pytest.mark.parametrize("seed", range(4))
def test_k10_answers_come_in_the_order_of_requests(kafka: Cluster, seed: int) -> None:
    chance = random.Random(seed)
    topic = {"name": "orders", "partition_data": [{"index": 0, "records": batch([b"x" * 2000]).data}]}
    with WireClient(kafka.bootstrap) as client:
        wire, recorder = client.socket, Recorder()
        client.socket = recorder  # type: ignore[assignment]
        asked = []
        for number in range(300):
            kind = chance.choice((PRODUCE, METADATA, FETCH))
            if kind is PRODUCE:
                client.send(*kind, acks=-1, timeout=SECOND, topic_data=[topic])
            elif kind is METADATA:
                client.send(*kind, topics=[])
            else:
                at = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 3000}
                client.send(
                    *kind, max_wait=SECOND, min_bytes=number % 3, topics=[{"topic": "orders", "partitions": [at]}]
                )
            asked.append((*kind, number + 1))
        client.socket = wire
        data, at_byte = recorder.data, 0
        answered = 0
        while at_byte < len(data):
            size = chance.choice((1, 3, 100, 5_000, 60_000))
            wire.sendall(data[at_byte : at_byte + size])
            at_byte += size
            if chance.random() < 0.1 and at_byte > len(data) // 2:
                client.receive(*asked[answered])
                answered += 1
        for one in asked[answered:]:
            client.receive(*one)
    assert kafka.brokers[1].partitions["orders", 0].log.end_offset == sum(one[:2] == PRODUCE for one in asked)


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">i", 2_000_000_000),
        struct.pack(">i", -1),
        struct.pack(">i", 0),
        struct.pack(">i", 3) + b"\0\0\0",
        struct.pack(">ihhih", 10, 999, 0, 1, -1),  # no such API
        struct.pack(">ihhih", 10, 3, 99, 1, -1),  # no such version
        struct.pack(">ihhihi", 14, 3, 1, 1, -1, 1_000_000_000),  # a billion topics in four bytes
        struct.pack(">ihhihi", 14, 3, 1, 1, 30_000, 0),  # a client id longer than the request
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ],
)
def test_k9_nonsense_ends_its_connection_and_no_other(
    kafka: Cluster, frame: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with WireClient(kafka.bootstrap) as good, WireClient(kafka.bootstrap) as bad:
        good.ask(*METADATA, topics=[])
        bad.socket.sendall(frame)
        with pytest.raises(ConnectionError):
            bad.receive(*METADATA, 1)
        good.ask(*METADATA, topics=[])
    assert [record.name for record in caplog.records] == ["abeyant.broker"], "one line is logged"


def test_k9_a_frame_that_is_announced_and_never_comes_takes_no_memory(kafka: Cluster) -> None:
    with WireClient(kafka.bootstrap) as client:
        client.socket.sendall(struct.pack(">i", 100_000_000) + b"x" * 1000)
        connections = kafka.brokers[1].connections
        wait_until(lambda: any(connection._frame is not None for connection in list(connections)))
        assert [len(connection._frame or b"") < 1_000_000 for connection in connections] == [True]
        client.socket.shutdown(socket.SHUT_WR)
        with pytest.raises(ConnectionError):
            client.receive(*METADATA, 1)


def test_acks_0_has_no_answer_and_an_error_ends_the_connection(kafka: Cluster) -> None:
    def data(topic: str) -> list[dict[str, object]]:
        return [{"name": topic, "partition_data": [{"index": 0, "records": batch().data}]}]

    with WireClient(kafka.bootstrap) as client:
        client.send(*PRODUCE, acks=0, timeout=SECOND, topic_data=data("orders"))
        client.ask(*METADATA, topics=[])
        assert kafka.brokers[1].partitions["orders", 0].log.end_offset == 1
        client.send(*PRODUCE, acks=0, timeout=SECOND, topic_data=data("absent"))
        with pytest.raises(ConnectionError):
            client.receive(*METADATA, 3)


def test_connections_that_are_idle_are_closed() -> None:
    with Cluster(clock="held") as kafka, WireClient(kafka.bootstrap) as idle, WireClient(kafka.bootstrap) as busy:
        idle.ask(*METADATA, topics=[])
        kafka.clock.advance(599.0)
        busy.ask(*METADATA, topics=[])
        kafka.clock.advance(2.0)
        with pytest.raises(ConnectionError):
            idle.receive(*METADATA, 2)
        assert busy.ask(*METADATA, topics=[]).cluster_id


def test_a_held_clock_steps_to_the_next_deadline() -> None:
    with Cluster(clock="held") as kafka, WireClient(kafka.bootstrap) as idle:
        idle.ask(*METADATA, topics=[])
        passed = 0.0
        idle.socket.settimeout(0.01)
        while True:
            step = kafka.clock.advance_to_next()
            assert step is not None
            passed += step
            assert passed <= 601.0
            try:
                assert idle.socket.recv(1) == b""
                break
            except TimeoutError:
                continue
        assert passed >= 600.0
    with Cluster() as kafka, pytest.raises(AbeyantError, match="held"):
        kafka.clock.advance_to_next()


def test_a_broker_that_stands_still_closes_no_connection_until_it_goes_on() -> None:
    with Cluster(clock="held") as kafka, WireClient(kafka.bootstrap) as idle:
        idle.ask(*METADATA, topics=[])
        with kafka.paused(1):
            kafka.clock.advance(601.0)
            idle.socket.setblocking(False)
            with pytest.raises(BlockingIOError):
                idle.socket.recv(1)
            idle.socket.settimeout(10.0)
        assert idle.socket.recv(1) == b""


def test_an_answer_that_nobody_takes_is_forgotten_when_the_client_has_been_idle_twice() -> None:
    with Cluster(clock="held") as kafka, WireClient(kafka.bootstrap) as client:
        kafka.create_topic("orders")
        connections = kafka.brokers[1].connections
        wait_until(lambda: bool(connections))

        def answer_much() -> None:
            for connection in connections:
                connection.answer([bytes(50_000_000)])

        kafka._on_loop(answer_much)
        kafka.clock.advance(601.0)
        assert connections, "what had been answered is still sent"
        kafka.clock.advance(601.0)
        wait_until(lambda: not connections)
        with pytest.raises(ConnectionError):
            client.receive(*METADATA, 1)


@pytest.mark.parametrize("limit", [-1, 0, (1 << 63) - 1])
def test_connections_may_be_idle_for_ever_or_hardly(limit: int) -> None:
    limits = {"connections.max.idle.ms": limit}
    with Cluster(clock="held", settings=limits) as kafka, WireClient(kafka.bootstrap) as client:
        client.ask(*METADATA, topics=[])
        kafka.clock.advance(1_000_000.0)
        if limit:
            client.ask(*METADATA, topics=[])
        else:
            with pytest.raises(ConnectionError):
                client.receive(*METADATA, 2)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"])
def test_who_comes_to_a_broker_that_listens_everywhere_is_told_the_address_that_it_came_by(address: str) -> None:
    with ExitStack() as stack:
        kafka = stack.enter_context(Cluster(brokers=2, host="0.0.0.0"))
        client = stack.enter_context(WireClient(kafka.bootstrap.replace("0.0.0.0", address)))
        wait_until(lambda: client.ask(10, 3, key="g", key_type=0).host == address)  # FindCoordinator
        for answer in (client.ask(*METADATA, topics=[]), client.ask(60, 0)):  # DescribeCluster
            assert [broker.host for broker in answer.brokers] == [address, address]


def test_a_client_that_comes_while_the_cluster_closes_leaves_no_connection_open() -> None:
    kafka = Cluster().open()
    host, _, port = kafka.bootstrap.rpartition(":")
    closing = threading.Thread(target=kafka.close)

    def come() -> socket.socket:
        """While the loop stands still in here: it will find both the order to end and the client."""
        closing.start()
        wait_until(lambda: asyncio.get_running_loop()._ready)  # type: ignore[attr-defined]  # the order has come
        return socket.create_connection((host, int(port)))

    with kafka._on_loop(come) as client:
        closing.join()
        client.settimeout(10)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""
    gc.collect()  # what is left open says so


def test_a_client_that_there_is_no_room_for_is_let_in_later(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Cluster(clock="held") as kafka, socket.socket() as client:
        host, _, port = kafka.bootstrap.rpartition(":")
        with ExitStack() as full:
            full.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
            resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, hard))
            with suppress(OSError):  # until the process may open no more files
                while True:
                    full.callback(os.close, os.dup(client.fileno()))
            client.connect((host, int(port)))
            wait_until(lambda: "accepts no clients" in caplog.text)
        kafka.clock.advance(1.0)
        client.settimeout(10)
        client.sendall(struct.pack(">ihhih", 10, 18, 0, 7, -1))  # ApiVersions
        assert struct.unpack(">4xi", client.recv(8, socket.MSG_WAITALL)) == (7,)
    assert len(caplog.records) == 1, "one line is logged"


def test_an_error_of_the_brokers_own_is_told_and_logged(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    kafka.settings = None  # type: ignore[assignment]  # what could be worse
    with WireClient(kafka.bootstrap) as client:
        at = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 3000}
        response = client.ask(*FETCH, max_wait=SECOND, topics=[{"topic": "orders", "partitions": [at]}])
    assert response.error_code is ErrorCode.unknown_server_error
    assert "failed" in caplog.text


def change(kafka: Cluster, broker: int | None, **given: object) -> None:
    """Have these be all dynamic settings of one broker, or of all beside `min.insync.replicas`."""
    texts = {name.replace("_", "."): str(value) for name, value in given.items()}
    base = {} if broker else {"min.insync.replicas": "1"}
    kafka._settled(kafka.controller.configure_brokers, broker, base | texts)


def served(client: WireClient) -> bool:
    return bool(client.ask(*METADATA, topics=[]).cluster_id)


def silent(client: WireClient) -> bool:
    """Whether a request is not answered: the broker has not accepted the connection."""
    client.send(*METADATA, topics=[])
    client.socket.settimeout(0.2)
    try:
        client.socket.recv(1)
    except TimeoutError:
        return True
    finally:
        client.socket.settimeout(10.0)
    return False


def refused(kafka: Cluster) -> bool:
    with WireClient(kafka.bootstrap) as client, suppress(ConnectionError):
        return not served(client)
    return True


@pytest.mark.parametrize(
    "limits",
    [
        {"max.connections.per.ip": 1},
        {"max.connections.per.ip": 0, "max.connections.per.ip.overrides": "10.0.0.1:7, 127.0.0.1:1"},
        {"max.connections.per.ip.overrides": "localhost:1"},
    ],
)
def test_a_client_whose_address_has_all_its_connections_is_closed(
    limits: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    with Cluster(settings=limits) as kafka, WireClient(kafka.bootstrap) as first:
        assert served(first)
        assert refused(kafka)
        assert "127.0.0.1 already has 1 connections" in caplog.text
        assert served(first)
        first.socket.close()
        wait_until(lambda: not kafka.brokers[1].connections)
        with WireClient(kafka.bootstrap) as third:
            assert served(third)
            change(kafka, None, max_connections_per_ip=2, max_connections_per_ip_overrides="10.0.0.1:7")
            assert not refused(kafka)


@pytest.mark.parametrize("name", ["max.connections", "listener.name.plaintext.max.connections"])
def test_a_broker_that_has_all_its_connections_accepts_one_when_one_ends(name: str) -> None:
    with Cluster(settings={name: 1}) as kafka, ExitStack() as stack:
        first, second, third = (stack.enter_context(WireClient(kafka.bootstrap)) for _ in range(3))
        assert served(first)
        assert silent(second)
        assert silent(third)
        first.socket.close()
        assert second.receive(*METADATA, 1).cluster_id
        change(kafka, None, **{name.replace(".", "_"): 2})
        assert third.receive(*METADATA, 1).cluster_id


def test_connections_above_a_lower_limit_end_the_most_silent_first() -> None:
    with Cluster(brokers=2, clock="held") as kafka, ExitStack() as stack:
        other = stack.enter_context(WireClient(kafka.bootstrap.split(",")[1]))
        idle, busy = (stack.enter_context(WireClient(kafka.bootstrap)) for _ in range(2))
        assert served(busy)
        assert served(idle)
        assert served(other)
        kafka.clock.advance(1.0)
        assert served(busy)
        change(kafka, 1, max_connections=1)
        assert idle.socket.recv(1) == b""
        assert served(busy)
        assert served(other)


@pytest.mark.parametrize("broker", [None, 1])
@pytest.mark.parametrize(
    "name", ["max_connection_creation_rate", "listener.name.plaintext.max.connection.creation.rate"]
)
def test_connections_above_the_rate_are_delayed(name: str, broker: int | None) -> None:
    """Over Kafka's 11 windows of a second: at 1 per second 10 come at once, and each later one a second apart."""
    with Cluster(clock="held") as kafka, ExitStack() as stack:
        for _ in range(5):
            assert served(stack.enter_context(WireClient(kafka.bootstrap))), "as fast as they like before"
        change(kafka, broker, **{name: 1})
        for _ in range(5):
            assert served(stack.enter_context(WireClient(kafka.bootstrap)))
        first, second = (stack.enter_context(WireClient(kafka.bootstrap)) for _ in range(2))
        assert silent(first)
        kafka.clock.advance(1.0)
        assert first.receive(*METADATA, 1).cluster_id
        assert silent(second)
        kafka.clock.advance(1.0)
        assert second.receive(*METADATA, 1).cluster_id
        change(kafka, broker, **{name: 1000})
        assert served(stack.enter_context(WireClient(kafka.bootstrap)))


def test_the_rate_of_connections_at_the_start_of_a_cluster() -> None:
    limits = {"max.connection.creation.rate": 1, "quota.window.num": 2}
    with Cluster(clock="held", settings=limits) as kafka, ExitStack() as stack:
        first, second = (stack.enter_context(WireClient(kafka.bootstrap)) for _ in range(2))
        assert served(first)
        assert silent(second)
        kafka.stop(1)
        with pytest.raises(ConnectionError):
            second.receive(*METADATA, 1)


def test_a_handshake_that_fails_counts_no_more() -> None:
    with Cluster(settings={"max.connections": 1}, security="SSL") as kafka:
        with WireClient(kafka.bootstrap) as plain:
            plain.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
            with suppress(ConnectionError):
                while plain.socket.recv(100):
                    pass
        wait_until(lambda: not len(kafka.brokers[1]._quotas))
