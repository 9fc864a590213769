"""Right programs of unmodified aiokafka, with every check: they find the mistakes of the broker itself."""

from __future__ import annotations

import asyncio
import contextlib

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Simulation
from examples.simulation.programs.shared import started

ORDERS = [b"order-%d" % number for number in range(12)]


async def send_orders(run: Simulation, partitions: int, *, idempotent: bool = True) -> None:
    """Send orders, each until it is acknowledged."""
    producer = await started(
        AIOKafkaProducer(bootstrap_servers=run.bootstrap, acks="all", enable_idempotence=idempotent)
    )
    for number, order in enumerate(ORDERS):
        while True:
            try:
                await producer.send_and_wait("orders", order, key=b"%d" % (number % 3), partition=number % partitions)
                break
            except KafkaError:
                await asyncio.sleep(0.5)
        await asyncio.sleep(run.uniform(0, 0.5))
    await producer.stop()


async def working(run: Simulation) -> None:
    """Two members of a group work off two partitions, each order at least once."""
    run.kafka.create_topic("orders", partitions=2, config={"min.insync.replicas": 2})
    done = run.ledger()

    async def member() -> None:
        consumer = await started(
            AIOKafkaConsumer(
                "orders", bootstrap_servers=run.bootstrap, group_id="work", enable_auto_commit=False,
                auto_offset_reset="earliest",
            )
        )  # fmt: skip
        while True:
            batches = await consumer.getmany(timeout_ms=300, max_records=3)
            for records in batches.values():
                for record in records:
                    await asyncio.sleep(run.uniform(0.01, 0.1))
                    done.append(record.value)
            if batches:
                with contextlib.suppress(KafkaError):
                    await consumer.commit()

    run.process(member)
    run.process(member, name="another")
    await send_orders(run, 2)
    run.check(
        kafka_checks.acknowledged_is_readable("orders"),
        kafka_checks.order_per_key("orders"),
        kafka_checks.each_effect_once(
            lambda: [one.item.value for one in run.history.stored if one.topic == "orders"], lambda: ORDERS
        ),
        kafka_checks.each_effect_at_least_once(lambda: done, lambda: ORDERS),
        kafka_checks.consumer_never_skips("orders"),
        kafka_checks.commits_are_not_ahead("work", "orders"),
        kafka_checks.commits_follow_the_work("work", "orders", done),
        kafka_checks.commits_never_go_back("work", "orders"),
        kafka_checks.commits_are_kept("work"),
        kafka_checks.no_zombie_writes(),
        kafka_checks.heartbeats_keep_members("work"),
        kafka_checks.every_member_has_its_share("work", members=2),
        kafka_checks.everything_is_committed("work", "orders"),
        kafka_checks.state_is_consistent(),
        kafka_checks.replicas_agree(),
    )


async def passing_on(run: Simulation) -> None:
    """Each order becomes a parcel, exactly once; a reader of committed records reads the parcels."""
    for topic in ("orders", "parcels"):
        run.kafka.create_topic(topic, partitions=1, config={"min.insync.replicas": 2})

    place = TopicPartition("orders", 0)

    async def packer() -> None:
        producer = await started(  # first, so that what its predecessor left open has ended
            AIOKafkaProducer(bootstrap_servers=run.bootstrap, transactional_id="packer", transaction_timeout_ms=5000)
        )
        consumer = await started(
            AIOKafkaConsumer(
                bootstrap_servers=run.bootstrap, group_id="pack", enable_auto_commit=False,
                auto_offset_reset="earliest", isolation_level="read_committed",
            )
        )  # fmt: skip
        consumer.assign([place])
        while True:
            record = await consumer.getone()
            async with producer.transaction():
                await producer.send_and_wait("parcels", record.value, partition=0)
                await asyncio.sleep(run.uniform(0, 0.2))
                await producer.send_offsets_to_transaction({place: record.offset + 1}, "pack")
                await asyncio.sleep(run.uniform(0, 0.1))

    async def reader() -> None:
        consumer = await started(
            AIOKafkaConsumer(
                "parcels", bootstrap_servers=run.bootstrap, auto_offset_reset="earliest",
                isolation_level="read_committed",
            )
        )  # fmt: skip
        while True:
            await consumer.getone()

    run.process(packer)
    run.process(reader)
    await send_orders(run, 1)
    run.check(
        kafka_checks.acknowledged_is_readable("orders"),
        kafka_checks.each_effect_once(
            lambda: [one.item.value for one in run.history.stored_committed if one.topic == "parcels"], lambda: ORDERS
        ),
        kafka_checks.aborted_is_never_seen("parcels"),
        kafka_checks.consumer_never_skips("parcels"),
        kafka_checks.transactions_are_atomic(),
        kafka_checks.no_zombie_writes(),
        kafka_checks.commits_are_kept("pack"),
        kafka_checks.state_is_consistent(),
        kafka_checks.replicas_agree(),
    )


async def lagging(run: Simulation) -> None:
    """The same two members, with followers that fetch late."""
    run.kafka.delay("ReplicaFetch", seconds=0.3, times=None)
    await working(run)


async def idling(run: Simulation) -> None:
    """The same two members, with nothing to do for longer than a session."""
    await working(run)
    await asyncio.sleep(25)


async def handing_over(run: Simulation) -> None:
    """A packer, and later a second one with the same transactional id, which fences the first: it ends then."""
    for topic in ("orders", "parcels"):
        run.kafka.create_topic(topic, partitions=1, config={"min.insync.replicas": 2})
    place = TopicPartition("orders", 0)

    async def packer(wait: float) -> None:
        await asyncio.sleep(wait)
        producer = await started(AIOKafkaProducer(bootstrap_servers=run.bootstrap, transactional_id="packer"))
        consumer = await started(
            AIOKafkaConsumer(
                bootstrap_servers=run.bootstrap, group_id="pack", enable_auto_commit=False,
                auto_offset_reset="earliest", isolation_level="read_committed",
            )
        )  # fmt: skip
        consumer.assign([place])
        while True:
            record = await consumer.getone()
            try:
                async with producer.transaction():
                    await producer.send_and_wait("parcels", record.value, partition=0)
                    await asyncio.sleep(run.uniform(0, 0.2))
                    await producer.send_offsets_to_transaction({place: record.offset + 1}, "pack")
            except ProducerFenced:
                return

    run.process(packer, 0.0)
    run.process(packer, run.uniform(0.5, 3), name="the next packer")
    await send_orders(run, 1)
    run.check(
        kafka_checks.each_effect_once(
            lambda: [one.item.value for one in run.history.stored_committed if one.topic == "parcels"], lambda: ORDERS
        ),
        kafka_checks.no_zombie_writes(),
        kafka_checks.transactions_are_atomic(),
    )


async def committing_once(run: Simulation) -> None:
    """Six groups commit once each, at some time, with followers that fetch late."""
    run.kafka.create_topic("orders", partitions=1)
    run.kafka.seed("orders", ORDERS)
    run.kafka.delay("ReplicaFetch", seconds=3.0, times=None)

    async def member(group: str, offset: int) -> None:
        await asyncio.sleep(run.uniform(0, 6))
        consumer = await started(
            AIOKafkaConsumer(bootstrap_servers=run.bootstrap, group_id=group, enable_auto_commit=False)
        )
        consumer.assign([TopicPartition("orders", 0)])
        await consumer.commit({TopicPartition("orders", 0): offset})

    members = [run.process(member, f"group-{number}", number + 1, name=f"member {number}") for number in range(6)]
    while any(one.running for one in members):
        await asyncio.sleep(0.5)
    run.check(*(kafka_checks.commits_are_kept(f"group-{number}") for number in range(6)))


async def losing_a_leader(run: Simulation) -> None:
    """Orders come; followers fetch late, and the leader's disk is lost at some time."""
    run.kafka.create_topic("orders", partitions=1, config={"min.insync.replicas": 2})
    run.kafka.delay("ReplicaFetch", seconds=1.5, times=None)
    sending = asyncio.ensure_future(send_orders(run, 1, idempotent=False))
    await asyncio.sleep(run.uniform(0.5, 2.5))
    leader = leader_of(run)
    run.kafka.stop(leader)
    await asyncio.sleep(5)
    run.kafka.start(leader)
    await sending
    run.check(kafka_checks.acknowledged_is_readable("orders"), kafka_checks.replicas_agree())


async def left_alone(run: Simulation) -> None:
    """Orders come; both followers pause for so long that they fall out of sync."""
    run.kafka.create_topic("orders", partitions=1, config={"min.insync.replicas": 2})
    sending = asyncio.ensure_future(send_orders(run, 1))
    await asyncio.sleep(run.uniform(0, 1))
    followers = [number for number in run.kafka.brokers if number != leader_of(run)]
    for number in followers:
        run.kafka.pause(number)
    await asyncio.sleep(run.uniform(12, 20))
    for number in followers:
        run.kafka.resume(number)
    await sending
    run.check(kafka_checks.acknowledged_by_enough("orders"), kafka_checks.acknowledged_is_readable("orders"))


async def leaving_a_tail(run: Simulation) -> None:
    """Readings come, acknowledged by their leader alone; it pauses with some that its followers have not fetched."""
    run.kafka.create_topic("readings", partitions=1)
    slow = run.kafka.delay("ReplicaFetch", seconds=0.3, times=None)

    async def meter() -> None:
        producer = await started(
            AIOKafkaProducer(bootstrap_servers=run.bootstrap, acks=1, request_timeout_ms=2000, metadata_max_age_ms=1000)
        )
        while True:
            with contextlib.suppress(KafkaError):
                await producer.send_and_wait("readings", b"20 degrees", partition=0)
            await asyncio.sleep(run.uniform(0, 0.2))

    metering = run.process(meter)
    await asyncio.sleep(run.uniform(2, 4))
    leader = leader_of(run, "readings")
    run.kafka.pause(leader)
    await asyncio.sleep(15)
    run.kafka.resume(leader)
    slow.end()
    metering.kill()
    run.check(kafka_checks.replicas_agree())


def leader_of(run: Simulation, topic: str = "orders") -> int:
    return run.kafka.controller.topics[topic].partitions[0].leader


async def taking_over(run: Simulation) -> None:
    """A packer is killed for good; another, with a transactional id of its own, takes its place."""
    for topic in ("orders", "parcels"):
        run.kafka.create_topic(topic, partitions=1, config={"min.insync.replicas": 2})
    place = TopicPartition("orders", 0)

    async def packer(transactional_id: str) -> None:
        producer = await started(
            AIOKafkaProducer(
                bootstrap_servers=run.bootstrap, transactional_id=transactional_id, transaction_timeout_ms=5000
            )
        )
        consumer = await started(
            AIOKafkaConsumer(
                bootstrap_servers=run.bootstrap, group_id="pack", enable_auto_commit=False,
                auto_offset_reset="earliest", isolation_level="read_committed",
            )
        )  # fmt: skip
        consumer.assign([place])
        while True:
            record = await consumer.getone()
            async with producer.transaction():
                await producer.send_and_wait("parcels", record.value, partition=0)
                await asyncio.sleep(run.uniform(0, 0.4))
                await producer.send_offsets_to_transaction({place: record.offset + 1}, "pack")
                await asyncio.sleep(run.uniform(0, 0.2))

    first = run.process(packer, "packer 1")
    sending = asyncio.ensure_future(send_orders(run, 1))
    await asyncio.sleep(run.uniform(1, 3))
    first.kill()
    run.process(packer, "packer 2", name="the next packer")
    await sending
    run.check(
        kafka_checks.each_effect_once(
            lambda: [one.item.value for one in run.history.stored_committed if one.topic == "parcels"], lambda: ORDERS
        ),
        kafka_checks.state_is_consistent(),
    )
