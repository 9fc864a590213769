"""K9: whatever bytes come in, the broker goes on, and nobody else notices."""

from __future__ import annotations

import random
import resource
import struct
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from broker.asking import SECOND
from broker.fuzz import GOOD, attack, corpus, hostile, prepare, serves, unserved
from broker.wire import WireClient, encoded
from seeds import seeds
from waiting import wait_until

FETCH = 1
METADATA = 3
MEGABYTE = 1_000_000


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster() as cluster:
        prepare(cluster)
        yield cluster


def frame(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


@pytest.mark.parametrize("seed", seeds(10, quick=3))
def test_k9_mutated_requests_end_at_most_their_own_connection(
    kafka: Cluster, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(seed)
    frames = corpus(kafka)
    with WireClient(kafka.bootstrap) as good:
        for number in range(30):
            attack(kafka, hostile(chance, frames), patience=0.2)
            assert serves(good, b"%d" % number)
        wait_until(lambda: len(kafka.brokers[1].connections) == 1)
    for record in caplog.records:
        assert record.getMessage().startswith("connection of"), record.getMessage()


# Arrays of the versions with lengths of four bytes, and of those with a varint of five: 34 billion. kio would take
# memory for all of them, and end the process where the system refuses that.
@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">hhihi", METADATA, 1, 1, -1, 0x7FFF_FFFF),
        struct.pack(">hhihb", METADATA, 9, 1, -1, 0) + b"\xff\xff\xff\xff\x7f",
        struct.pack(">hhihb", METADATA, 9, 1, -1, 0) + b"\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ],
)
def test_k9_an_array_longer_than_its_request_takes_no_memory(
    kafka: Cluster, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with WireClient(kafka.bootstrap) as good:
        assert serves(good, b"before")
        tracemalloc.start()
        try:
            attack(kafka, frame(data))
            assert tracemalloc.get_traced_memory()[1] < MEGABYTE
        finally:
            tracemalloc.stop()
        assert serves(good, b"after")
    (record,) = caplog.records
    assert "cannot read the request" in record.getMessage()


def test_k9_an_array_that_may_not_be_null(kafka: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    data = bytearray(encoded(20, 5, 1, topic_names=["absent"], timeout=SECOND))
    at = data.index(b"\x02\x07absent")
    data[at : at + 8] = b"\x00"
    attack(kafka, frame(bytes(data)))
    (record,) = caplog.records
    assert "the request's array topic_names announces -1 elements" in record.getMessage()


@pytest.mark.parametrize("size", [2_000_000_000, -1, 0, 0x7FFF_FFFF, -0x8000_0000])
def test_k9_lengths_that_cannot_be(kafka: Cluster, size: int, caplog: pytest.LogCaptureFixture) -> None:
    with WireClient(kafka.bootstrap) as good:
        attack(kafka, struct.pack(">i", size) + b"x" * 1000)
        assert serves(good, b"still here")
    (record,) = caplog.records
    assert f"a request of {size} bytes" in record.getMessage()


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x16\x03\x01\x00\xc8\x01\x00", ": it seems to speak TLS, which this listener does not speak"),
        (b"GET /metrics HTTP/1.1\r\n\r\n", ": it seems to speak HTTP"),
        (
            frame(struct.pack(">hhih", 0, 2, 1, -1)),
            "(Produce version 2): ValueError: this version is not supported, only versions 3 to 13",
        ),
        (frame(struct.pack(">hhih", FETCH, 12, 1, -1)), "cannot read the request (Fetch version 12): "),
    ],
)
def test_k9_the_log_says_what_came(kafka: Cluster, data: bytes, why: str, caplog: pytest.LogCaptureFixture) -> None:
    attack(kafka, data)
    (record,) = caplog.records
    assert why in record.getMessage()


def test_k9_half_a_frame_stays_alone(kafka: Cluster) -> None:
    data = frame(encoded(METADATA, 9, 1))
    with WireClient(kafka.bootstrap) as good, ExitStack() as held:
        for end in range(1, len(data)):
            client = held.enter_context(WireClient(kafka.bootstrap))
            client.socket.sendall(data[:end])
        assert serves(good, b"with halves around")
        wait_until(lambda: len(kafka.brokers[1].connections) == len(data))
        held.close()
        wait_until(lambda: len(kafka.brokers[1].connections) == 1)


@pytest.mark.slow
def test_k9_a_client_that_never_reads_costs_one_answer(kafka: Cluster) -> None:
    request = frame(encoded(METADATA, 9, 1, topics=None))
    for number in range(200):
        kafka.create_topic(f"padding-{number}")  # so that an answer has some kilobytes
    with WireClient(kafka.bootstrap) as good, WireClient(kafka.bootstrap) as deaf:
        assert serves(good, b"before")
        deaf.socket.settimeout(0.3)
        with suppress(TimeoutError):  # the broker stops reading, too
            while True:
                deaf.socket.sendall(request * 1000)
        assert serves(good, b"during")

        def unsent() -> int:
            return max(one._transport.get_write_buffer_size() for one in kafka.brokers[1].connections)  # type: ignore[union-attr]

        wait_until(lambda: unsent() > 0)  # a few requests in a turn, until the socket takes no more answers
        assert serves(good, b"after")
        held = max(len(connection._backlog) for connection in kafka.brokers[1].connections)
        assert held + unsent() < MEGABYTE


IDLE = """
import socket, sys
held = [socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=60) for _ in range(int(sys.argv[3]))]
print(len(held), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_k9_ten_thousand_idle_connections(kafka: Cluster) -> None:
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    count = min(10_000, files - 500)
    host, _, port = kafka.bootstrap.rpartition(":")
    with WireClient(kafka.bootstrap) as good:
        assert serves(good, b"before")
        tracemalloc.start()
        command = [sys.executable, "-c", IDLE, host, port, str(count)]
        try:
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as clients:
                wait_until(lambda: len(kafka.brokers[1].connections) == count + 1)
                assert tracemalloc.get_traced_memory()[0] < count * 10_000, "less than 10 kB for a connection"
                assert serves(good, b"during")
                clients.communicate()
        finally:
            tracemalloc.stop()
        wait_until(lambda: len(kafka.brokers[1].connections) == 1)
        assert serves(good, b"after")


def test_k9_a_topic_of_two_billion_partitions(kafka: Cluster) -> None:
    topics = [{"name": "vast", "num_partitions": 0x7FFF_FFFF, "replication_factor": 1}]
    with WireClient(kafka.bootstrap) as client:
        (made,) = client.ask(19, 7, topics=topics, timeout=SECOND).topics
        assert made.error_code is ErrorCode.policy_violation
        more = [{"name": GOOD, "count": 0x7FFF_FFFF, "assignments": None}]
        (grown,) = client.ask(37, 3, topics=more, timeout=SECOND).results
        assert grown.error_code is ErrorCode.policy_violation
        assert serves(client, b"as before")


def test_the_good_client_is_no_victim_of_retention() -> None:
    with Cluster(clock="held") as kafka, WireClient(kafka.bootstrap) as client:
        prepare(kafka)
        assert serves(client, b"kept")
        kafka.clock.advance(30.0)  # retention's first turn
        assert [record.value for record in kafka.records(GOOD)] == [b"kept"]


def test_the_good_client_tells_what_became_of_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    with Cluster(clock="held", settings={"log.retention.ms": 1}) as kafka, WireClient(kafka.bootstrap) as client:
        prepare(kafka)
        fetch = client.ask

        def late(key: int, version: int, **values: Any) -> Any:
            if key == FETCH:
                kafka.clock.advance(30.0)
            return fetch(key, version, **values)

        monkeypatch.setattr(client, "ask", late)
        why = unserved(client, b"gone")
    assert why is not None
    assert "taken at 0" in why
    assert "offset_out_of_range" in why
    assert "from 1 (none) to 1 (none)" in why
