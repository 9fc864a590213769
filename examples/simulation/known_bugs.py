"""Bugs of unmodified aiokafka that others have reported, found again by seeds, each with its report.

    python -m examples.simulation.known_bugs

Each program is as right as its client lets it be: what the checks find is the client's. One bug is of an older version:

    pip install --target old aiokafka==0.12.0; PYTHONPATH=old python -m examples.simulation.known_bugs
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition, __version__
from aiokafka.errors import KafkaError

from abeyant import simulation
from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Options, Simulation, find_failure, shrink, story
from examples.simulation.programs.shared import Story, started

ORDERS = [b"order-%d" % number for number in range(12)]
PLACE = TopicPartition("orders", 0)


async def send_orders(run: Simulation, **options: Any) -> None:
    """Send orders by an idempotent producer, each until it is acknowledged, for at most a minute."""
    producer = await started(
        AIOKafkaProducer(bootstrap_servers=run.bootstrap, acks="all", enable_idempotence=True, **options)
    )
    for order in ORDERS:
        while run.loop.now < 60:
            try:
                await producer.send_and_wait("orders", order, partition=0)
                break
            except KafkaError:
                await asyncio.sleep(0.5)
        await asyncio.sleep(run.uniform(0, 0.5))


def values(run: Simulation, topic: str) -> list[bytes]:
    return [one.item.value or b"" for one in run.history.stored_committed if one.topic == topic]


def topics(run: Simulation, *names: str, replicas: int = 3) -> None:
    for name in names:
        config = {"min.insync.replicas": min(2, replicas)}
        run.kafka.create_topic(name, partitions=1, replicas=replicas, config=config)


async def packing(run: Simulation) -> None:
    """Read orders as a member of a group, write a parcel for each, exactly once, as aiokafka's own example does."""
    topics(run, "orders", "parcels")

    async def packer() -> None:
        producer = await started(
            AIOKafkaProducer(bootstrap_servers=run.bootstrap, transactional_id="packer", transaction_timeout_ms=5000)
        )
        consumer = await started(
            AIOKafkaConsumer(
                "orders", bootstrap_servers=run.bootstrap, group_id="pack", enable_auto_commit=False,
                auto_offset_reset="earliest", isolation_level="read_committed",
            )
        )  # fmt: skip
        while True:
            record = await consumer.getone()
            async with producer.transaction():
                await producer.send_and_wait("parcels", record.value, partition=0)
                await asyncio.sleep(run.uniform(0, 0.2))
                await producer.send_offsets_to_transaction({PLACE: record.offset + 1}, "pack")

    run.process(packer)
    await send_orders(run)
    run.check(kafka_checks.each_effect_once(lambda: values(run, "parcels"), lambda: ORDERS))


async def sending(run: Simulation) -> None:
    """Send orders to a topic that now and then has no leader, by an idempotent producer."""
    topics(run, "orders", replicas=1)
    await send_orders(run, request_timeout_ms=3000)
    run.check(kafka_checks.each_effect_once(lambda: values(run, "orders"), lambda: ORDERS))


async def packing_in_time(run: Simulation) -> None:
    """Write parcels in transactions, without a group; each within five seconds, as two of three brokers always run."""
    topics(run, "parcels")

    async def packer() -> None:
        producer = await started(AIOKafkaProducer(bootstrap_servers=run.bootstrap, transactional_id="packer"))
        for order in ORDERS:
            async with asyncio.timeout(5), producer.transaction():
                await producer.send_and_wait("parcels", order, partition=0)
            await asyncio.sleep(run.uniform(0, 0.5))

    packing = run.process(packer, restart=False)
    await packing.wait()
    run.check(kafka_checks.each_effect_once(lambda: values(run, "parcels"), lambda: ORDERS))


async def reading(run: Simulation) -> None:
    """Read orders from a partition taken by hand, and commit each for a group: a program that may be killed."""
    topics(run, "orders")
    seen: list[bytes] = []

    async def reader() -> None:
        consumer = await started(
            AIOKafkaConsumer(
                bootstrap_servers=run.bootstrap, group_id="work", enable_auto_commit=False, auto_offset_reset="earliest"
            )
        )
        consumer.assign([PLACE])
        while True:
            seen.append((await consumer.getone()).value)
            await consumer.commit()

    run.process(reader)
    await send_orders(run)
    run.check(
        kafka_checks.each_effect_at_least_once(lambda: seen, lambda: ORDERS),
        kafka_checks.commits_never_go_back("work", "orders"),
    )


@dataclass(frozen=True)
class Bug:
    """A bug, and what finds it."""

    report: str
    """Where it is reported; "" where no report was found."""
    story: Story
    faults: tuple[str, ...]
    versions: str
    """In which versions of aiokafka it was found."""


AIOKAFKA = "https://github.com/aio-libs/aiokafka/issues"
BUGS: dict[str, Bug] = {
    "a rebalance in a transaction: an order is packed twice": Bug(f"{AIOKAFKA}/844", packing, ("expire",), "0.14.0"),
    "no leader for a while: an idempotent producer never sends again": Bug(
        f"{AIOKAFKA}/1017", sending, ("pause",), "0.14.0"
    ),
    "the leader moves before the first offset is looked up: a consumer never begins": Bug(
        "https://github.com/robinhood/aiokafka/issues/9", reading, ("leader moves",), "0.14.0"
    ),
    "the coordinator stops: transactions stop until it is back": Bug(
        f"{AIOKAFKA}/1134", packing_in_time, ("stop",), "0.12.0, mended in 0.13.0"
    ),
    "an error to OffsetFetch: the group begins anew": Bug("", reading, ("kill", "fail"), "0.14.0"),
}


def options_of(bug: Bug) -> Options:
    """Return how a bug is searched for."""
    return Options(faults=bug.faults, horizon=6.0, converge=60.0)


def main() -> None:
    simulation.fix_hashes()
    print(f"aiokafka {__version__}")
    for name, bug in BUGS.items():
        print(f"\n{name}\n  {bug.report or 'no report found'}; found in {bug.versions}")
        began = time.process_time()
        found = find_failure(bug.story, range(300), options_of(bug), lambda _: True)
        if found is None:
            print("  300 seeds did not find it in this version")
            continue
        which, best = shrink(bug.story, found, options_of(bug))
        seconds = f"{time.process_time() - began:.1f} s of a processor"
        lines = story(best, which, found.seed + 1, "with its story,").splitlines()
        print("\n".join(f"  {line}" for line in lines[:8]), f"  {seconds}", sep="\n")


if __name__ == "__main__":
    main()
