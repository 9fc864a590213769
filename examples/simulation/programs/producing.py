"""Programs that send orders, from memory or from a table."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import cache

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Simulation
from examples.simulation.programs.shared import ORDERS, Story, delivered, started, topics, values


@cache
def producing(*, idempotent: bool = True, replicas: int = 3) -> Story:
    """Send orders, each until it is acknowledged."""

    async def story(run: Simulation) -> None:
        topics(run, "orders", replicas=replicas)
        producer = await started(
            AIOKafkaProducer(bootstrap_servers=run.bootstrap, acks="all", enable_idempotence=idempotent)
        )
        for order in ORDERS:
            await delivered(producer, "orders", order)
            await asyncio.sleep(run.uniform(0, 0.4))
        run.check(kafka_checks.each_effect_once(lambda: values(run, "orders"), lambda: ORDERS))

    return story


@cache
def shipping(*, awaits: bool = True, gives_up: bool = False) -> Story:
    """Take orders from a table, send each, and mark it as sent."""

    async def story(run: Simulation) -> None:
        topics(run, "orders")
        marked: list[bytes] = []

        async def relay() -> None:
            producer = await started(
                AIOKafkaProducer(
                    bootstrap_servers=run.bootstrap,
                    enable_idempotence=not gives_up,
                    linger_ms=50,
                    request_timeout_ms=1000,
                )
            )
            for order in ORDERS:
                if order in marked:
                    continue
                if not awaits:
                    await producer.send("orders", order, partition=0)
                elif gives_up:
                    with suppress(KafkaError):
                        await producer.send_and_wait("orders", order, partition=0)
                else:
                    await delivered(producer, "orders", order)
                marked.append(order)
                await asyncio.sleep(run.uniform(0, 0.3))

        run.process(relay)
        while len(marked) < len(ORDERS):
            await asyncio.sleep(0.1)
        run.check(kafka_checks.each_effect_at_least_once(lambda: values(run, "orders"), lambda: ORDERS))

    return story
