"""What the programs share: orders that come, clients that start, a listener that knows its consumer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener
from aiokafka.errors import KafkaError

from abeyant.broker.simulation import Simulation

Story = Callable[[Simulation], Awaitable[None]]

ORDERS = [f"order-{number}".encode() for number in range(10)]


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """A listener that does nothing, and knows its consumer."""

    consumer: AIOKafkaConsumer

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Nothing."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Nothing."""


async def started(client: Any) -> Any:
    """Start a client, again after an error, and return it."""
    while True:
        try:
            await client.start()
            return client
        except KafkaError:
            await asyncio.sleep(1)


async def delivered(producer: Any, topic: str, value: bytes) -> None:
    """Send a record until it is acknowledged."""
    while True:
        try:
            await producer.send_and_wait(topic, value, partition=0)
            return
        except KafkaError:
            await asyncio.sleep(0.5)


async def orders_come(run: Simulation) -> None:
    """Ten orders come, now and then one."""
    producer = await started(AIOKafkaProducer(bootstrap_servers=run.bootstrap, acks="all", enable_idempotence=True))
    for order in ORDERS:
        await delivered(producer, "orders", order)
        await asyncio.sleep(run.uniform(0, 0.4))
    await producer.stop()


def topics(run: Simulation, *names: str, replicas: int = 3) -> None:
    for name in names:
        config = {"min.insync.replicas": min(2, replicas)}
        run.kafka.create_topic(name, partitions=1, replicas=replicas, config=config)


def values(run: Simulation, topic: str) -> list[bytes]:
    """Return the committed values of a topic."""
    return [one.item.value or b"" for one in run.history.stored_committed if one.topic == topic]


async def group_consumer(run: Simulation, listener: Listener | None = None, **options: Any) -> AIOKafkaConsumer:
    """Return a member that reads orders from the beginning, and commits when it is told to."""
    given = {"group_id": "work", "enable_auto_commit": False, "auto_offset_reset": "earliest", **options}
    consumer = AIOKafkaConsumer(bootstrap_servers=run.bootstrap, **given)
    if listener is not None:
        listener.consumer = consumer
    consumer.subscribe(["orders"], listener=listener)
    return await started(consumer)


async def committed(consumer: Any, offsets: Any = None) -> None:
    with suppress(KafkaError):  # another member has the partition now, and does what is left
        await consumer.commit(offsets)
