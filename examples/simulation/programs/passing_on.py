"""Programs that read orders and write parcels, in transactions."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import Literal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Simulation
from examples.simulation.programs.shared import (
    ORDERS,
    Story,
    committed,
    delivered,
    group_consumer,
    orders_come,
    started,
    topics,
    values,
)


@cache
def passing_on(
    *,
    transactions: bool = True,
    offsets: Literal["in it", "beside it"] = "in it",
    downstream: Literal["read_committed", "read_uncommitted"] = "read_committed",
    gives_up: bool = False,
) -> Story:
    """Read orders, write a parcel for each, exactly once; somebody reads the parcels."""

    async def story(run: Simulation) -> None:
        topics(run, "orders", "parcels")
        seen: list[bytes] = []

        async def packer() -> None:
            consumer = await group_consumer(run, isolation_level="read_committed")
            options = (
                {"transactional_id": "packer", "transaction_timeout_ms": 5000}
                if transactions
                else {"enable_idempotence": True}
            )
            producer = await started(AIOKafkaProducer(bootstrap_servers=run.bootstrap, **options))
            place = TopicPartition("orders", 0)
            while True:
                record = await consumer.getone()
                if not transactions:
                    await delivered(producer, "parcels", record.value)
                    await asyncio.sleep(run.uniform(0, 0.1))
                    await committed(consumer)
                    continue
                async with producer.transaction():
                    await producer.send_and_wait("parcels", record.value, partition=0)
                    await asyncio.sleep(run.uniform(0, 0.1))
                    if offsets == "in it":
                        await producer.send_offsets_to_transaction({place: record.offset + 1}, "work")
                if offsets == "beside it":
                    await asyncio.sleep(run.uniform(0, 0.1))
                    await committed(consumer)

        async def reader() -> None:
            consumer = await started(
                AIOKafkaConsumer(
                    "parcels", bootstrap_servers=run.bootstrap, auto_offset_reset="earliest", isolation_level=downstream
                )
            )
            while True:
                seen.append((await consumer.getone()).value)

        run.process(packer)
        reading = asyncio.ensure_future(reader())
        await orders_come(run)
        run.check(
            kafka_checks.each_effect_once(
                lambda: seen if downstream == "read_uncommitted" else values(run, "parcels"), lambda: ORDERS
            )
        )
        del reading

    return story


@cache
def packing_twice(*, one_id: bool = False) -> Story:
    """Two instances write parcels in transactions, under ids of their own, or one; an error ends an instance."""

    async def story(run: Simulation) -> None:
        topics(run, "parcels")
        packed: list[bytes] = []

        async def packer(number: int) -> None:
            transactional_id = "packer" if one_id else f"packer-{number}"
            producer = await started(
                AIOKafkaProducer(bootstrap_servers=run.bootstrap, transactional_id=transactional_id)
            )
            for order in ORDERS[number::2]:
                async with producer.transaction():
                    await producer.send_and_wait("parcels", order, partition=0)
                packed.append(order)
                await asyncio.sleep(run.uniform(0, 0.2))

        for number in range(2):
            run.process(packer, number, restart=False)
        while len(packed) < len(ORDERS) and not run.loop.failures:
            await asyncio.sleep(0.1)
        run.check(kafka_checks.each_effect_once(lambda: values(run, "parcels"), lambda: ORDERS))

    return story
