"""What waiting costs: of brokers that nobody asks for anything, and of ten thousand fetches."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from datetime import timedelta
from io import BytesIO
from typing import NamedTuple

from confluent_kafka.admin import AdminClient
from kio.schema.fetch.v12.request import FetchPartition, FetchRequest, FetchTopic
from kio.schema.request_header.v2.header import RequestHeader
from kio.schema.types import TopicName
from kio.serial import entity_writer
from kio.static.primitive import i16, i32, i32Timedelta, i64

from lab.broker.client import make_topic, send_one
from lab.broker.peers import PeerError, Serving

PARTITIONS = 100
FOR_EVER = timedelta(minutes=10)  # that each fetch may wait, far beyond the measurement


class Waiting(NamedTuple):
    """What many waiting fetches cost."""

    core: float
    """Percent of a core while nothing arrives."""
    woken: int
    """Fetches that one record has ended; those on its partition should be all."""
    expected: int
    """How many wait on that partition."""

    def rows(self) -> list[tuple[str, float]]:
        """Its figures as rows of the table."""
        return [("waiting", self.core), ("woken", self.woken / self.expected * 100)]


def idle(peer: Serving, seconds: float) -> float:
    """Percent of a core that three brokers take while no client is there, with a hundred partitions on each."""
    make_topic(peer, partitions=PARTITIONS)
    time.sleep(2)  # until the followers have found their leaders
    before = peer.cpu()
    time.sleep(seconds)
    return (peer.cpu() - before) / seconds * 100


def measure(peer: Serving, fetches: int, seconds: float) -> Waiting:
    """Let `fetches` wait, a connection each, over a hundred partitions; look for `seconds`; then send one record."""
    topic = make_topic(peer, partitions=PARTITIONS)
    found = AdminClient({"bootstrap.servers": peer.bootstrap}).list_topics(topic, timeout=10)
    time.sleep(2)  # until every leader knows that it leads
    leaders = {number: found.brokers[part.leader] for number, part in found.topics[topic].partitions.items()}
    waiting = selectors.DefaultSelector()
    try:
        for number in range(fetches):
            partition = number % PARTITIONS
            connection = socket.create_connection((leaders[partition].host, leaders[partition].port))
            connection.sendall(_request(topic, partition))
            waiting.register(connection, selectors.EVENT_READ, partition)
        time.sleep(3)  # until all have arrived
        if early := waiting.select(0):
            raise PeerError(f"{len(early)} of the fetches did not wait")
        before = peer.cpu()
        time.sleep(seconds)
        core = (peer.cpu() - before) / seconds * 100
        send_one(peer, topic, partition=0)
        time.sleep(1)
        answered = [key.data for key, _ in waiting.select(0)]
        if any(partition != 0 for partition in answered):
            raise PeerError("a record woke fetches on other partitions than its own")
        return Waiting(core, len(answered), sum(number % PARTITIONS == 0 for number in range(fetches)))
    finally:
        for key in list(waiting.get_map().values()):
            assert isinstance(key.fileobj, socket.socket)
            key.fileobj.close()
        waiting.close()


def _request(topic: str, partition: int) -> bytes:
    header = RequestHeader(
        request_api_key=i16(1), request_api_version=i16(12), correlation_id=i32(1), client_id="bench"
    )
    wanted = FetchPartition(partition=i32(partition), fetch_offset=i64(0), partition_max_bytes=i32(1_000_000))
    fetch = FetchRequest(
        max_wait=i32Timedelta.parse(FOR_EVER),
        min_bytes=i32(1),
        topics=(FetchTopic(topic=TopicName(topic), partitions=(wanted,)),),
        forgotten_topics_data=(),
    )
    body = BytesIO()
    entity_writer(RequestHeader)(body, header)
    entity_writer(FetchRequest)(body, fetch)
    return struct.pack(">i", body.tell()) + body.getvalue()
