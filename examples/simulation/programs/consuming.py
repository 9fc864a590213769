"""Programs that read orders and do the work of each: in a group, or assigned by hand."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import Any, Literal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Simulation
from examples.simulation.programs.shared import (
    ORDERS,
    Listener,
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
def consuming(
    *,
    commits: Literal["after", "before", "by time", "one too few", "the last"] = "after",
    reset: str = "earliest",
    failing: Literal["tried again", "passed over", "given up", "put aside", "put aside, not awaited"] | None = None,
    at_once: int = 1,
    on_assigned: Literal["the end"] | None = None,
) -> Story:
    """Work through orders as one of two members of a group."""

    async def story(run: Simulation) -> None:
        topics(run, "orders", "dead")
        done: list[bytes] = []

        async def work(order: bytes) -> None:
            await asyncio.sleep(run.uniform(0.01, 0.2))
            if failing and run.uniform(0, 1) < 0.3:
                raise OSError("the warehouse does not answer")
            done.append(order)

        async def tried(order: bytes, dead: Any) -> None:
            for number in itertools.count():
                with suppress(OSError):
                    await work(order)
                    break
                if failing == "passed over" or (failing == "given up" and number == 2):
                    break
                if failing == "put aside":
                    await delivered(dead, "dead", order)
                    break
                if failing == "put aside, not awaited":
                    await dead.send("dead", order, partition=0)
                    break
                await asyncio.sleep(0.1)

        async def member() -> None:
            consumer = await group_consumer(
                run,
                auto_offset_reset=reset,
                enable_auto_commit=commits == "by time",
                auto_commit_interval_ms=200,
                listener=None if on_assigned is None else ToTheEnd(),
            )
            dead = None
            if failing and failing.startswith("put aside"):
                dead = await started(
                    AIOKafkaProducer(bootstrap_servers=run.bootstrap, enable_idempotence=True, linger_ms=300)
                )
            while True:
                batches = await consumer.getmany(timeout_ms=300, max_records=3)
                records = [record for some in batches.values() for record in some]
                if not records:
                    continue
                if commits == "before":
                    await committed(consumer)
                if at_once > 1:  # several at a time, each committed as soon as it is done
                    await asyncio.gather(*(alone(record, consumer, dead) for record in records))
                    continue
                for record in records:
                    await tried(record.value, dead)
                if commits == "after":
                    await committed(consumer)
                elif commits == "one too few":
                    place = TopicPartition(records[-1].topic, records[-1].partition)
                    await committed(consumer, {place: records[-1].offset})

        async def alone(record: Any, consumer: Any, dead: Any) -> None:
            await tried(record.value, dead)
            await committed(consumer, {TopicPartition(record.topic, record.partition): record.offset + 1})

        run.process(member)
        await orders_come(run)
        run.check(
            kafka_checks.each_effect_at_least_once(lambda: [*done, *values(run, "dead")], lambda: ORDERS),
            kafka_checks.everything_is_committed("work", "orders"),
        )

    return story


class ToTheEnd(Listener):
    """A listener that means to skip what is old."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Go to the end."""
        await self.consumer.seek_to_end(*assigned)


@cache
def gathering(*, on_revoked: Literal["work, then commit", "commit"] = "work, then commit") -> Story:
    """Gather orders and work through three at a time; a second member joins meanwhile."""

    async def story(run: Simulation) -> None:
        topics(run, "orders")
        done: list[bytes] = []

        async def member() -> None:
            gathered: list[bytes] = []

            async def work() -> None:
                while gathered:
                    await asyncio.sleep(run.uniform(0.01, 0.1))
                    done.append(gathered.pop(0))

            async def revoked(consumer: AIOKafkaConsumer) -> None:
                if on_revoked == "work, then commit":
                    await work()
                await committed(consumer)
                gathered.clear()

            consumer = await group_consumer(run, OnRevoked(revoked), heartbeat_interval_ms=200)
            while True:
                batches = await consumer.getmany(timeout_ms=300, max_records=1)
                gathered += [record.value for records in batches.values() for record in records]
                if len(gathered) >= 3 or not batches:
                    await work()
                    await committed(consumer)

        async def second_member() -> None:
            await asyncio.sleep(run.uniform(0.5, 2.5))
            await member()

        run.process(member)
        run.process(second_member)
        await orders_come(run)
        run.check(kafka_checks.each_effect_at_least_once(lambda: done, lambda: ORDERS))

    return story


class OnRevoked(Listener):
    """A listener that calls a function before partitions go."""

    def __init__(self, revoked: Callable[[AIOKafkaConsumer], Awaitable[None]]) -> None:
        self._revoked = revoked

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Call it."""
        await self._revoked(self.consumer)


@cache
def relaying(*, reader_knows: bool = True) -> Story:
    """Send what is in an outbox, and mark it as sent; the reader books each order once, or what comes."""

    async def story(run: Simulation) -> None:
        topics(run, "orders")
        marked: list[bytes] = []
        booked: list[bytes] = []

        async def relay() -> None:
            producer = await started(AIOKafkaProducer(bootstrap_servers=run.bootstrap, enable_idempotence=True))
            for order in ORDERS:
                if order not in marked:
                    await delivered(producer, "orders", order)
                    await asyncio.sleep(run.uniform(0, 0.1))
                    marked.append(order)

        async def reader() -> None:
            consumer = await started(
                AIOKafkaConsumer("orders", bootstrap_servers=run.bootstrap, auto_offset_reset="earliest")
            )
            while True:
                order = (await consumer.getone()).value
                if not reader_knows or order not in booked:
                    booked.append(order)

        run.process(relay)
        reading = asyncio.ensure_future(reader())
        while len(marked) < len(ORDERS):
            await asyncio.sleep(0.1)
        run.check(kafka_checks.each_effect_once(lambda: booked, lambda: ORDERS))
        del reading

    return story


@cache
def booking(*, seeks: bool = True, by_hand: bool = False) -> Story:
    """Book each order and its offset in one step in a database, and go on from there: each once."""

    async def story(run: Simulation) -> None:
        topics(run, "orders")
        booked: list[bytes] = []
        offset = 0  # in the database, with what is booked

        async def member() -> None:
            nonlocal offset
            place = TopicPartition("orders", 0)
            consumer = await started(
                AIOKafkaConsumer(
                    bootstrap_servers=run.bootstrap, enable_auto_commit=False, auto_offset_reset="earliest"
                )
            )
            consumer.assign([place])
            if seeks:
                consumer.seek(place, offset)
            while True:
                record = await consumer.getone()
                await asyncio.sleep(run.uniform(0.01, 0.1))
                if by_hand or record.offset >= offset or not seeks:  # the database's own constraint
                    booked.append(record.value)
                    offset = record.offset + 1

        run.process(member)
        if by_hand:
            run.process(member, name="a second one")
        await orders_come(run)
        run.check(kafka_checks.each_effect_once(lambda: booked, lambda: ORDERS))

    return story
