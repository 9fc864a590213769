"""An order service that loses orders, and the same mended: see docs/simulation.md.

Both read orders, pack each and then commit. The first commits as soon as it has read: if it ends between the commit and
its work, nobody packs what is left. The second commits what it has packed, and packs an order that comes again once.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError

Service = Callable[[str, list[str]], Coroutine[Any, Any, None]]


async def hasty_service(bootstrap: str, packed: list[str]) -> None:
    """Commit, then work."""
    consumer = await started_consumer(bootstrap)
    while True:
        batches = await consumer.getmany(timeout_ms=500, max_records=3)
        if batches:
            await consumer.commit()
        for records in batches.values():
            for record in records:
                await pack(record.value.decode(), packed)


async def careful_service(bootstrap: str, packed: list[str]) -> None:
    """Work, then commit; an order that comes again is known."""
    consumer = await started_consumer(bootstrap)
    while True:
        batches = await consumer.getmany(timeout_ms=500, max_records=3)
        for records in batches.values():
            for record in records:
                if record.value.decode() not in packed:
                    await pack(record.value.decode(), packed)
        if batches:
            with contextlib.suppress(KafkaError):  # another member has the partitions now, and packs what is left
                await consumer.commit()


async def started_consumer(bootstrap: str) -> AIOKafkaConsumer:
    """Return a member of the group "packing"."""
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        group_id="packing",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    await consumer.start()
    return consumer


async def pack(order: str, packed: list[str]) -> None:
    """Pack an order: `packed` is what is in the warehouse, and outlives the program."""
    await asyncio.sleep(0.05)
    if order not in packed:
        packed.append(order)


async def send_orders(bootstrap: str, count: int, pause: Callable[[], float]) -> list[str]:
    """Send orders, each until it is acknowledged, and return them."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True)
    while True:
        try:
            await producer.start()
            break
        except KafkaError:
            await asyncio.sleep(1)
    orders = [f"order-{number}" for number in range(count)]
    for order in orders:
        while True:
            try:
                await producer.send_and_wait("orders", order.encode(), key=order[-1].encode())
                break
            except KafkaError:
                await asyncio.sleep(0.5)
        await asyncio.sleep(pause())
    await producer.stop()
    return orders
