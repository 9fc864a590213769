"""Measure the cost of 10,000 acquired batches: a member of a share group acquires them and lets their locks end."""

from __future__ import annotations

import dataclasses
import io
import socket
import struct
import time
import typing
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from lab.broker.client import make_topic
from lab.broker.peers import PeerError, Serving

PER_PARTITION = 2_000  # locks: Kafka's default limit
LOCK = 15.0  # seconds, the least that Kafka allows
_AFTER = 5.0  # seconds in which the locks end, and are seen to
_FIND, _ALTER, _HEARTBEAT, _FETCH = (10, 6), (44, 1), (76, 1), (78, 2)  # API key and version
_SET, _GROUP = 0, 32
_TIMEOUT = 60.0  # seconds


class Locks(NamedTuple):
    """Cost of acquired batches."""

    acquire: float
    """Brokers' CPU seconds until all batches are acquired."""
    memory: float
    """Brokers' resident memory with all batches acquired, minus the memory before, in MB."""
    hold: float
    """Brokers' CPU seconds from when all batches are acquired until all locks have ended."""

    def rows(self) -> list[tuple[str, float]]:
        """Return the figures as (row, value) pairs of the table."""
        return [("locks", self.acquire), ("locks-memory", self.memory), ("locks-hold", self.hold)]


def measure(peer: Serving, batches: int) -> Locks:
    """Acquire `batches` of one record each, and wait until their locks have ended."""
    partitions = max(batches // PER_PARTITION, 1)
    topic = make_topic(peer, partitions=partitions)
    _produce(peer, topic, partitions, batches)
    group = f"bench-{time.time_ns()}"
    found = AdminClient({"bootstrap.servers": peer.bootstrap}).list_topics(topic, timeout=10)
    addresses = {number: (str(broker.host), int(broker.port)) for number, broker in found.brokers.items()}
    first = next(iter(addresses.values()))
    topic_id = _join(peer, first, group, topic, partitions)
    led = defaultdict(list)
    for index, part in found.topics[topic].partitions.items():
        led[part.leader].append(index)
    with_sessions = [_Session(addresses[leader], group, topic_id, rows) for leader, rows in led.items()]
    try:
        memory, cpu = peer.memory(), peer.cpu()
        taken = _acquire(with_sessions, batches)
        acquired = peer.cpu()
        held = peer.memory()
        time.sleep(LOCK + _AFTER)
        ended = peer.cpu()
        again = _acquire(with_sessions, batches)
        if taken != {1} or again != {2}:
            raise PeerError(f"delivery counts were {taken}, then {again}, not {{1}}, then {{2}}")
    finally:
        for one in with_sessions:
            one.connection.close()
    return Locks(acquired - cpu, held - memory, ended - acquired)


class _Session:
    """A member's share session with one broker."""

    def __init__(self, address: tuple[str, int], group: str, topic_id: Any, partitions: list[int]) -> None:
        self.connection = socket.create_connection(address)
        self._named = {"group_id": group, "member_id": "bench"}
        self._topics = [{"topic_id": topic_id, "partitions": [{"partition_index": index} for index in partitions]}]
        self._epoch = 0

    def fetch(self) -> list[int]:
        """Return the delivery count of each record that a fetch acquires."""
        answer = _ask(
            self.connection, _FETCH, **self._named, share_session_epoch=self._epoch, max_wait=timedelta(seconds=0.1),
            min_bytes=1, max_bytes=1 << 24, max_records=1 << 16, batch_size=1,
            topics=[] if self._epoch else self._topics,
        )  # fmt: skip
        _require(answer.error_code == 0, f"ShareFetch failed: {answer}")
        self._epoch += 1
        return [
            row.delivery_count
            for topic in answer.responses for part in topic.partitions for row in part.acquired_records
            for _ in range(row.first_offset, row.last_offset + 1)
        ]  # fmt: skip


def _acquire(sessions: list[_Session], records: int) -> set[int]:
    """Fetch until `records` records are acquired. Return the distinct delivery counts."""
    counts: set[int] = set()
    give_up = time.monotonic() + _TIMEOUT
    while records > 0:
        _require(time.monotonic() < give_up, f"{records} records were not acquired")
        for session in sessions:
            got = session.fetch()
            records -= len(got)
            counts.update(got)
    return counts


def _produce(peer: Serving, topic: str, partitions: int, batches: int) -> None:
    producer = Producer({"bootstrap.servers": peer.bootstrap, "acks": "1", "batch.num.messages": 1})
    for number in range(batches):
        producer.produce(topic, bytes(100), partition=number % partitions)
        producer.poll(0)
    _require(producer.flush(_TIMEOUT) == 0, "records were not delivered")


def _join(peer: Serving, address: tuple[str, int], group: str, topic: str, partitions: int) -> Any:
    """Let the member join the group, and wait until it is assigned all partitions. Return the topic's id."""
    settings = {
        "share.auto.offset.reset": "earliest", "share.record.lock.duration.ms": str(int(LOCK * 1000)),
        "share.assignment.interval.ms": "0",
    }  # fmt: skip
    configs = [{"name": name, "config_operation": _SET, "value": value} for name, value in settings.items()]
    with socket.create_connection(address) as connection:
        resource = {"resource_type": _GROUP, "resource_name": group, "configs": configs}
        answer = _ask(connection, _ALTER, resources=[resource], validate_only=False)
        _require(answer.responses[0].error_code == 0, f"IncrementalAlterConfigs failed: {answer}")
        give_up = time.monotonic() + _TIMEOUT
        while (found := _ask(connection, _FIND, key_type=0, coordinator_keys=[group]).coordinators[0]).error_code:
            _require(time.monotonic() < give_up, f"no coordinator for {group}")
            time.sleep(0.1)
    epoch = 0
    with socket.create_connection((found.host, found.port)) as connection:
        while time.monotonic() < give_up:
            answer = _ask(connection, _HEARTBEAT, group_id=group, member_id="bench", member_epoch=epoch,
                          subscribed_topic_names=[topic])  # fmt: skip
            rows: Any = () if answer.assignment is None else answer.assignment.topic_partitions
            if answer.error_code == 0:
                epoch = answer.member_epoch
            if sum(len(row.partitions) for row in rows) == partitions:
                return rows[0].topic_id
            time.sleep(0.1)
    raise PeerError(f"the member did not get its partitions on {peer.bootstrap}")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise PeerError(problem)


def _ask(connection: socket.socket, api: tuple[int, int], **values: Any) -> Any:
    """Send a request with these fields; leave all other fields empty. Return the response."""
    key, version = api
    schema: Any = load_request_schema(key, version)
    write: Any = entity_writer
    frame = io.BytesIO()
    named = {"request_api_key": key, "request_api_version": version, "correlation_id": 1, "client_id": "bench"}
    write(schema.__header_schema__)(frame, schema.__header_schema__(**named))
    write(schema)(frame, _build(schema, values))
    connection.sendall(struct.pack(">i", frame.tell()) + frame.getvalue())
    (size,) = struct.unpack(">i", _read(connection, 4))
    data = _read(connection, size)
    answer: Any = load_response_schema(key, version)
    read: Any = entity_reader
    return read(answer)(data, 5)[0]  # a correlation id and no tags


def _read(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        _require(bool(part), "the broker closed the connection")
        data += part
    return bytes(data)


def _build(schema: Any, values: Mapping[str, Any]) -> Any:
    """Return a message of kio's class `schema` with these values, and empty values in all other fields."""
    hints = typing.get_type_hints(schema)
    made = {}
    for field in dataclasses.fields(schema):
        if field.name in values:
            made[field.name] = _value(hints[field.name], values[field.name])
        elif field.default is dataclasses.MISSING:
            made[field.name] = ()
    return schema(**made)


def _value(hint: Any, value: Any) -> Any:
    if not isinstance(value, list):
        return value
    hints: list[Any] = [hint, *typing.get_args(hint)]
    kind: Any = next(typing.get_args(one)[0] for one in hints if typing.get_origin(one) is tuple)
    return tuple(_build(kind, one) if isinstance(one, dict) else one for one in value)
