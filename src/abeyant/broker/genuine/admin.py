"""Requests to genuine Kafka, for tests: create, delete and describe topics, read and append records.

Opens one connection per request, since speed does not matter here.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from io import BytesIO
from struct import Struct
from typing import Any, NamedTuple

from kio.serial import entity_reader, entity_writer

from abeyant.broker.log.batch import Batch, split
from abeyant.broker.log.records import Record
from abeyant.broker.log.validation import records_of
from abeyant.broker.wire.encoding import encoder
from abeyant.broker.wire.schema import Codec, ErrorCode, Message
from abeyant.errors import AbeyantError

# Keys and versions.
_PRODUCE, _FETCH, _METADATA, _CREATE_TOPICS, _DELETE_TOPICS = (0, 9), (1, 12), (3, 9), (19, 5), (20, 5)
_SECONDS = 30.0
_TIMEOUT = timedelta(seconds=_SECONDS)
_LENGTH = Struct(">i")
_BYTES = 50_000_000
_NONE = 0


class Described(NamedTuple):
    """A partition's leader and in-sync replicas."""

    leader: int
    in_sync: tuple[int, ...]


class Admin:
    """Sends requests to the brokers of a cluster."""

    def __init__(self, addresses: Callable[[], Mapping[int, tuple[str, int]]]) -> None:
        """Use `addresses`, which returns the host and port of each broker that responds now, by broker id."""
        self._addresses = addresses

    def create_topic(self, name: str, partitions: int, replicas: int, config: Mapping[str, str]) -> None:
        """Create a topic. Raises AbeyantError with Kafka's message."""
        configs = [Message(name=key, value=value) for key, value in config.items()]
        topic = Message(name=name, num_partitions=partitions, replication_factor=replicas, configs=configs)
        [result] = self._send(_CREATE_TOPICS, Message(topics=[topic], timeout=_TIMEOUT)).topics
        if result.error_code != _NONE:
            raise AbeyantError(
                f"cannot create topic {name!r}: {result.error_message or result.error_code.name.upper()}"
            )

    def delete_topics(self, names: Iterable[str]) -> None:
        """Delete these topics. Ignores unknown ones."""
        self._send(_DELETE_TOPICS, Message(topic_names=[*names], timeout=_TIMEOUT))

    def topics(self) -> dict[str, dict[int, Described]]:
        """Return all topics with their partitions, by name and index."""
        return {
            topic.name: {
                part.partition_index: Described(part.leader_id, tuple(sorted(part.isr_nodes)))
                for part in topic.partitions
            }
            for topic in self._send(_METADATA, Message(topics=None, allow_auto_topic_creation=False)).topics
        }

    def records(self, topic: str, partition: int, leader: int, committed: bool) -> Iterator[Record]:
        """Yield all records of a partition as a consumer sees them; with `committed`, as a read_committed consumer."""
        offset = 0
        while True:
            query = Message(partition=partition, fetch_offset=offset, partition_max_bytes=_BYTES)
            fetch = Message(isolation_level=int(committed), topics=[Message(topic=topic, partitions=[query])])
            [[row]] = [entry.partitions for entry in self._send(_FETCH, fetch, leader).responses]
            if row.error_code == ErrorCode.offset_out_of_range and row.log_start_offset > offset:
                offset = row.log_start_offset
                continue
            if row.error_code != _NONE:
                raise AbeyantError(f"cannot read {topic}-{partition}: {row.error_code.name.upper()}")
            batches = split(row.records or b"")
            if not batches:
                return
            for batch in _without_aborted(batches, row.aborted_transactions or ()):
                yield from (record for record in records_of(batch) if record.offset >= offset)
            offset = batches[-1].next_offset

    def append(self, topic: str, partition: int, leader: int, batch: Batch) -> int:
        """Append a batch with acks=all and return its first offset. Raises AbeyantError with Kafka's message."""
        data = [Message(index=partition, records=batch.data)]
        request = Message(acks=-1, timeout=_TIMEOUT, topic_data=[Message(name=topic, partition_data=data)])
        [[row]] = [entry.partition_responses for entry in self._send(_PRODUCE, request, leader).responses]
        if row.error_code != _NONE:
            raise AbeyantError(
                f"cannot seed {topic!r}, partition {partition}: {row.error_message or row.error_code.name.upper()}"
            )
        return int(row.base_offset)

    def _send(self, api: tuple[int, int], request: Message, broker: int | None = None) -> Any:
        """Send a request to one broker, or to the first that responds. Raises AbeyantError if none responds."""
        unreachable: OSError | None = None
        running = self._addresses()
        for address in running.values() if broker is None else [running[broker]] if broker in running else []:
            try:
                return _exchange(address, api, request)
            except OSError as error:
                unreachable = error
        problem = "no broker of genuine Kafka responds" if broker is None else f"broker {broker} does not respond"
        raise AbeyantError(f"{problem}: {unreachable or 'stopped, or paused'}")


def _without_aborted(batches: Iterable[Batch], aborted: Iterable[Any]) -> Iterator[Batch]:
    """Yield the record batches of no aborted transaction. A transaction ends at its producer's next marker."""
    to_come = sorted((transaction.first_offset, transaction.producer_id) for transaction in aborted)
    open_: set[int] = set()
    for batch in batches:
        while to_come and to_come[0][0] <= batch.last_offset:
            open_.add(to_come.pop(0)[1])
        if batch.is_control:
            open_.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in open_):
            yield batch


def _exchange(address: tuple[str, int], api: tuple[int, int], request: Message) -> Any:
    key, version = api
    codec = Codec(key, version, {})
    entity: Any = codec.request_entity
    head, frame = entity.__header_schema__, BytesIO()
    header = head(request_api_key=key, request_api_version=version, correlation_id=1, client_id="abeyant-pytest")
    entity_writer(head)(frame, header)  # kio's, as strings in headers are not compact
    encoder(entity)(frame.write, request)
    with socket.create_connection(address, timeout=_SECONDS) as connection:
        connection.sendall(_LENGTH.pack(frame.tell()) + frame.getvalue())
        with connection.makefile("rb") as stream:
            [size] = _LENGTH.unpack(stream.read(4))
            answer = stream.read(size)
    response: Any = codec.response_entity
    return entity_reader(response)(answer, 4 + len(codec.response_tags))[0]
