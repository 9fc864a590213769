"""The record of a transactional id in `__transaction_state`, byte for byte as Kafka writes it.

Kafka: `TransactionLogKey`, `TransactionLogValue`. Values are written in version 1, and read in versions 0 and 1.
Version 0 has no tagged fields.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

from abeyant.broker.coordinator.schema import Field, Nullable, Schema, version_of
from abeyant.broker.log.batch import NO_PRODUCER
from abeyant.broker.transactions.transaction import BY_NUMBER, State, Status
from abeyant.broker.wire.schema import Message

_VERSION = 1

_KEY = Schema("the key of a transactional id", transactional_id="string")
_TOPIC = Schema("a topic", topic="string", indexes=["int32"])
_VALUE = Schema(
    "a transactional id", _VERSION, flexible_since=1, producer_id="int64", epoch="int16", timeout_ms="int32",
    state="int8", topics=Nullable([_TOPIC]), updated_ms="int64", started_ms="int64",
    previous_id=Field("int64", since=1, default=NO_PRODUCER, tag=0),
    next_id=Field("int64", since=1, default=NO_PRODUCER, tag=1), version=Field("int16", since=1, default=0, tag=2),
)  # fmt: skip


def key_bytes(transactional_id: str) -> bytes:
    """Return the key of a transactional id's record."""
    return _KEY.write(0, Message(transactional_id=transactional_id))


def id_of(key: bytes) -> str | None:
    """Return the transactional id in a record's key; None for a key of another version than 0."""
    return _KEY.read(key).transactional_id if version_of(key) == 0 else None


def value_bytes(now: Status) -> bytes:
    """Encode the status of a transactional id as its record's value."""
    topics = [
        Message(topic=topic, indexes=[index for _, index in rows])
        for topic, rows in groupby(sorted(now.partitions), itemgetter(0))
    ]
    value = Message(**now._asdict(), topics=None if now.state is State.EMPTY else topics)
    value.state = now.state.number
    return _VALUE.write(_VERSION, value)


def read_status(value: bytes) -> Status:
    """Decode a record's value to the status. Raises ValueError, or KeyError for an unknown state."""
    read = _VALUE.read(value)
    return Status(
        read.producer_id, read.epoch, read.timeout_ms, BY_NUMBER[read.state],
        frozenset((topic.topic, index) for topic in read.topics or () for index in topic.indexes), read.updated_ms,
        read.started_ms, version=read.version, previous_id=read.previous_id, next_id=read.next_id,
    )  # fmt: skip
