"""Measure the CPU of idle brokers, and of brokers with 10,000 waiting fetches."""

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
MAX_WAIT = timedelta(minutes=10)  # of each fetch, far beyond the measurement


class Waiting(NamedTuple):
    """Cost of many waiting fetches."""

    core: float
    """The brokers' CPU while nothing arrives, in percent of a core."""
    woken: int
    """The number of fetches that one record completed."""
    expected: int
    """The number of fetches that waited on the record's partition."""

    def rows(self) -> list[tuple[str, float]]:
        """Return the figures as (row, value) pairs of the table."""
        return [("waiting", self.core), ("woken", self.woken / self.expected * 100)]


def idle(peer: Serving, seconds: float) -> float:
    """Return the CPU of three brokers with 100 partitions and no client, in percent of a core."""
    make_topic(peer, partitions=PARTITIONS)
    time.sleep(2)  # until the followers have metadata their leaders
    before = peer.cpu()
    time.sleep(seconds)
    return (peer.cpu() - before) / seconds * 100


def measure(peer: Serving, fetches: int, seconds: float) -> Waiting:
    """Start `fetches` fetches on 100 partitions, each on a connection; measure CPU for `seconds`; send one record."""
    topic = make_topic(peer, partitions=PARTITIONS)
    metadata = AdminClient({"bootstrap.servers": peer.bootstrap}).list_topics(topic, timeout=10)
    time.sleep(2)  # until every leader knows that it leads
    leaders = {number: metadata.brokers[part.leader] for number, part in metadata.topics[topic].partitions.items()}
    waiting = selectors.DefaultSelector()
    try:
        for number in range(fetches):
            partition = number % PARTITIONS
            connection = socket.create_connection((leaders[partition].host, leaders[partition].port))
            connection.sendall(_request(topic, partition))
            waiting.register(connection, selectors.EVENT_READ, partition)
        time.sleep(3)  # until all have arrived
        if early := waiting.select(0):
            raise PeerError(f"{len(early)} of {fetches} fetches returned at once")
        before = peer.cpu()
        time.sleep(seconds)
        core = (peer.cpu() - before) / seconds * 100
        send_one(peer, topic, partition=0)
        time.sleep(1)
        answered = [key.data for key, _ in waiting.select(0)]
        if any(partition != 0 for partition in answered):
            raise PeerError("a record woke fetches on other partitions")
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
        max_wait=i32Timedelta.parse(MAX_WAIT),
        min_bytes=i32(1),
        topics=(FetchTopic(topic=TopicName(topic), partitions=(wanted,)),),
        forgotten_topics_data=(),
    )
    body = BytesIO()
    entity_writer(RequestHeader)(body, header)
    entity_writer(FetchRequest)(body, fetch)
    return struct.pack(">i", body.tell()) + body.getvalue()
