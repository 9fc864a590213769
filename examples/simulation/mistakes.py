"""Twenty-one mistakes of programs that speak Kafka, each with its mended version: what seeds find, and how fast.

A mistake is one argument of a story; the story's own default is right. Work that is done goes into a list that outlives
the programs, as their database does.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Options, Outcome, Simulation, search

Story = Callable[[Simulation], Awaitable[None]]

ORDERS = [f"order-{number}".encode() for number in range(10)]


# -- what all of them use


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
        await asyncio.sleep(run.choose(0, 0.4))
    await producer.stop()


def topics(run: Simulation, *names: str, replicas: int = 3) -> None:
    for name in names:
        config = {"min.insync.replicas": min(2, replicas)}
        run.kafka.create_topic(name, partitions=1, replicas=replicas, config=config)


def values(run: Simulation, topic: str) -> list[bytes]:
    """Return the committed values of a topic."""
    return [one.item.value or b"" for one in run.history.stored_committed if one.topic == topic]


async def group_consumer(
    run: Simulation, listener: ConsumerRebalanceListener | None = None, **options: Any
) -> AIOKafkaConsumer:
    """Return a member that reads orders from the beginning, and commits when it is told to."""
    given = {"group_id": "work", "enable_auto_commit": False, "auto_offset_reset": "earliest", **options}
    consumer = AIOKafkaConsumer(bootstrap_servers=run.bootstrap, **given)
    if isinstance(listener, ToTheEnd | OnRevoked):
        listener.consumer = consumer
    consumer.subscribe(["orders"], listener=listener)
    return await started(consumer)


# -- producing


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
            await asyncio.sleep(run.choose(0, 0.4))
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
                await asyncio.sleep(run.choose(0, 0.3))

        run.process(relay)
        while len(marked) < len(ORDERS):
            await asyncio.sleep(0.1)
        run.check(kafka_checks.each_effect_at_least_once(lambda: values(run, "orders"), lambda: ORDERS))

    return story


# -- consuming


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
            await asyncio.sleep(run.choose(0.01, 0.2))
            if failing and run.choose(0, 1) < 0.3:
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


class ToTheEnd(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """A listener that means to skip what is old."""

    consumer: AIOKafkaConsumer

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Nothing."""

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Go to the end."""
        await self.consumer.seek_to_end(*assigned)


async def committed(consumer: Any, offsets: Any = None) -> None:
    with suppress(KafkaError):  # another member has the partition now, and does what is left
        await consumer.commit(offsets)


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
                    await asyncio.sleep(run.choose(0.01, 0.1))
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
            await asyncio.sleep(run.choose(0.5, 2.5))
            await member()

        run.process(member)
        run.process(second_member)
        await orders_come(run)
        run.check(kafka_checks.each_effect_at_least_once(lambda: done, lambda: ORDERS))

    return story


class OnRevoked(ConsumerRebalanceListener):  # type: ignore[misc]  # it has no types
    """A listener that calls a function before partitions go."""

    consumer: AIOKafkaConsumer

    def __init__(self, revoked: Callable[[AIOKafkaConsumer], Awaitable[None]]) -> None:
        self._revoked = revoked

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        """Call it."""
        await self._revoked(self.consumer)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        """Nothing."""


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
                    await asyncio.sleep(run.choose(0, 0.1))
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
                await asyncio.sleep(run.choose(0.01, 0.1))
                if by_hand or record.offset >= offset or not seeks:  # the database's own constraint
                    booked.append(record.value)
                    offset = record.offset + 1

        run.process(member)
        if by_hand:
            run.process(member, name="a second one")
        await orders_come(run)
        run.check(kafka_checks.each_effect_once(lambda: booked, lambda: ORDERS))

    return story


# -- from topic to topic


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
                    await asyncio.sleep(run.choose(0, 0.1))
                    await committed(consumer)
                    continue
                async with producer.transaction():
                    await producer.send_and_wait("parcels", record.value, partition=0)
                    await asyncio.sleep(run.choose(0, 0.1))
                    if offsets == "in it":
                        await producer.send_offsets_to_transaction({place: record.offset + 1}, "work")
                if offsets == "beside it":
                    await asyncio.sleep(run.choose(0, 0.1))
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
                await asyncio.sleep(run.choose(0, 0.2))

        for number in range(2):
            run.process(packer, number, restart=False)
        while len(packed) < len(ORDERS) and not run.loop.failures:
            await asyncio.sleep(0.1)
        run.check(kafka_checks.each_effect_once(lambda: values(run, "parcels"), lambda: ORDERS))

    return story


@dataclass(frozen=True)
class Mistake:
    """A mistaken program, and the same mended."""

    mistaken: Story
    mended: Story
    faults: tuple[str, ...]


_KILL = ("kill",)
MISTAKES: dict[str, Mistake] = {
    "sent again without idempotence": Mistake(producing(idempotent=False), producing(), ("lose answer",)),
    "a topic with one replica": Mistake(producing(replicas=1), producing(), ("stop",)),
    "marked as sent when only buffered": Mistake(shipping(awaits=False), shipping(), _KILL),
    "marked as sent after an error": Mistake(shipping(gives_up=True), shipping(), ("pause",)),
    "committed before the work": Mistake(consuming(commits="before"), consuming(), _KILL),
    "committed by time": Mistake(consuming(commits="by time"), consuming(), _KILL),
    "committed one too few": Mistake(consuming(commits="one too few"), consuming(), ()),
    "several at once, committed as they end": Mistake(consuming(at_once=3), consuming(), _KILL),
    "a new group begins at the end": Mistake(consuming(reset="latest"), consuming(), ("clog", "delay")),
    "to the end when partitions are assigned": Mistake(consuming(on_assigned="the end"), consuming(), _KILL),
    "a failed order is passed over": Mistake(consuming(failing="passed over"), consuming(failing="tried again"), ()),
    "a failed order is given up": Mistake(consuming(failing="given up"), consuming(failing="tried again"), ()),
    "a dead letter is not awaited": Mistake(
        consuming(failing="put aside, not awaited"), consuming(failing="put aside"), _KILL
    ),
    "commits in a rebalance what it has only gathered": Mistake(gathering(on_revoked="commit"), gathering(), ()),
    "an outbox is sent twice, and booked twice": Mistake(relaying(reader_knows=False), relaying(), _KILL),
    "two instances with one transactional id": Mistake(packing_twice(one_id=True), packing_twice(), ()),
    "begun again without a seek": Mistake(booking(seeks=False), booking(), _KILL),
    "two programs assigned by hand": Mistake(booking(by_hand=True), booking(), ()),
    "no transaction from topic to topic": Mistake(passing_on(transactions=False), passing_on(), _KILL),
    "offsets beside the transaction": Mistake(passing_on(offsets="beside it"), passing_on(), _KILL),
    "reads what is not committed": Mistake(passing_on(downstream="read_uncommitted"), passing_on(), _KILL),
}


def found(name: str, seeds: range, *, any_hashes: bool = False) -> Outcome | None:
    """Return the first run of these seeds that finds a mistake."""
    mistake = MISTAKES[name]
    outcome = search(mistake.mistaken, seeds, options_of(mistake), lambda _: True, any_hashes=any_hashes)
    return outcome if outcome is not None and outcome.failure is not None else None


def options_of(mistake: Mistake) -> Options:
    """Return how a mistake is searched for: with the faults that matter to it."""
    return Options(faults=mistake.faults, horizon=4.0, converge=30.0)
