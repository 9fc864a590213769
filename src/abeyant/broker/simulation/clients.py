"""Adapt unmodified aiokafka to a simulation: record what its clients send and deliver, and give records virtual times.

Only the methods that users call are wrapped, and they behave as before, with one exception: the compiled record builder
would read the machine's clock for a record without a timestamp, so the wrapper passes the virtual time to it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

from abeyant.broker.checks.history import Handed, History, Item, Joined, Sent, Sought
from abeyant.simulation import SimulationLoop
from abeyant.simulation.ports import OWNER


class Consumers:
    """Records in the history what aiokafka's consumers deliver and seek, and what its producers send."""

    def __init__(self, loop: SimulationLoop, history: History) -> None:
        self._loop = loop
        self._history = history
        self._assignments: dict[int, tuple[int, Any]] = {}  # the object is kept, so that no other gets its id()
        self._names: dict[int, tuple[str, Any]] = {}

    def record_delivered(self, consumer: Any, records: Any) -> None:
        """Record the records that a consumer delivers to the program."""
        number, name = self._assignment(consumer), self._name(consumer)
        for record in records:
            item = Item(_bytes(record.key), _bytes(record.value))
            self._history.handed.append(
                Handed(
                    self._loop.now, name, _process(), consumer._group_id, number, record.topic, record.partition,
                    record.offset, item, consumer._isolation_level == "read_committed",
                )
            )  # fmt: skip

    def record_seek(self, consumer: Any, partition: Any, offset: int) -> None:
        """Record that a program seeks to `offset`; -1 stands for the beginning, the end or the committed offset."""
        number, name = self._assignment(consumer), self._name(consumer)
        place = partition.topic, partition.partition
        after = len(self._history.handed)
        self._history.sought.append(Sought(self._loop.now, name, _process(), number, *place, offset, after))

    def record_sent(self, producer: Any, topic: str, item: Item, future: Any) -> None:
        """Record that a producer has accepted a record; `future` completes when it is acknowledged."""
        self._history.sent.append(
            Sent(self._loop.now, self._name(producer), topic, item, lambda: _acknowledged(future))
        )

    def end(self) -> None:
        """Replace the producers' futures by their results, and drop all references to clients, so that they are freed.

        An error in a future would keep a client alive: the frames of its traceback refer to the client.
        """
        self._names.clear()
        self._assignments.clear()
        results = [entry.result() for entry in self._history.sent]
        self._history.sent[:] = [
            entry._replace(result=lambda result=result: result)  # type: ignore[misc]  # the default binds it
            for entry, result in zip(self._history.sent, results, strict=True)
        ]

    def _name(self, consumer: Any) -> str:
        entry = self._names.get(id(consumer))
        if entry is None:
            kind = "producer" if hasattr(consumer, "send") else "consumer"
            client = getattr(consumer, "_client", None) or consumer.client
            entry = f"{_process() or client._client_id} {kind} {len(self._names) + 1}", consumer
            self._names[id(consumer)] = entry
        return entry[0]

    def _assignment(self, consumer: Any) -> int:
        subscription = consumer._subscription.subscription
        assignment = None if subscription is None else subscription.assignment
        entry = self._assignments.get(id(assignment))
        if entry is None:
            entry = len(self._assignments) + 1, assignment
            self._assignments[id(assignment)] = entry
            places = tuple(sorted((tp.topic, tp.partition) for tp in getattr(assignment, "tps", ())))
            self._history.joined.append(
                Joined(self._loop.now, self._name(consumer), _process(), consumer._group_id, entry[0], places)
            )
        return entry[0]


def _acknowledged(future: Any) -> tuple[int, int] | None:
    if not future.done() or future.cancelled() or future.exception() is not None:
        return None
    metadata = future.result()
    return None if metadata is None or metadata.offset < 0 else (metadata.partition, metadata.offset)


def _process() -> str:
    life = OWNER.get()
    return "" if life is None else life.name


def _bytes(value: object) -> bytes | None:
    """Return bytes or None unchanged; of any other key or value, which a serializer converts, the encoded repr."""
    return value if value is None or isinstance(value, bytes) else repr(value).encode()


@contextmanager
def watched_clients(consumers: Consumers) -> Iterator[None]:
    """Record the calls of aiokafka's consumers and producers in the block. Do nothing if aiokafka is not imported."""
    if "aiokafka" not in sys.modules:
        yield
        return
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.producer.message_accumulator import BatchBuilder

    undo: list[Callable[[], None]] = []

    def replace(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        real = getattr(owner, name)
        setattr(owner, name, wraps(real)(make(real)))
        undo.append(lambda: setattr(owner, name, real))

    def timed(real: Any) -> Any:
        def append(self: Any, *, timestamp: Any, **fields: Any) -> Any:
            return real(self, timestamp=int(time.time() * 1000) if timestamp is None else timestamp, **fields)

        return append

    def one(real: Any) -> Any:
        async def getone(self: Any, *partitions: Any) -> Any:
            record = await real(self, *partitions)
            consumers.record_delivered(self, [record])
            return record

        return getone

    def many(real: Any) -> Any:
        async def getmany(self: Any, *partitions: Any, **options: Any) -> Any:
            batches = await real(self, *partitions, **options)
            for records in batches.values():
                consumers.record_delivered(self, records)
            return batches

        return getmany

    def seeking(real: Any) -> Any:
        def seek(self: Any, partition: Any, offset: int) -> Any:
            consumers.record_seek(self, partition, offset)
            return real(self, partition, offset)

        return seek

    def seeking_to(real: Any) -> Any:
        async def seek_to(self: Any, *partitions: Any) -> Any:
            for partition in partitions or self._subscription.assigned_partitions():
                consumers.record_seek(self, partition, -1)
            return await real(self, *partitions)

        return seek_to

    def sending(real: Any) -> Any:
        async def send(self: Any, topic: str, value: Any = None, key: Any = None, *rest: Any, **options: Any) -> Any:
            future = await real(self, topic, value, key, *rest, **options)
            consumers.record_sent(self, topic, Item(_bytes(key), _bytes(value)), future)
            return future

        return send

    AIOKafkaProducer._PRODUCER_CLIENT_ID_SEQUENCE = 0  # else client ids count on from run to run
    try:
        replace(BatchBuilder, "append", timed)
        replace(AIOKafkaConsumer, "getone", one)
        replace(AIOKafkaConsumer, "getmany", many)
        replace(AIOKafkaConsumer, "seek", seeking)
        for name in ("seek_to_beginning", "seek_to_end", "seek_to_committed"):
            replace(AIOKafkaConsumer, name, seeking_to)
        replace(AIOKafkaProducer, "send", sending)
        yield
    finally:
        while undo:
            undo.pop()()
