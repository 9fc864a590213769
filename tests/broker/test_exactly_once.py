"""Exactly once: programs that consume, transform and produce in transactions, beside a plain model.

Unmodified aiokafka in virtual time, so that time-outs, sessions and retries of minutes take none. Workers are killed at
any moment, rivals take their transactional id over, brokers are paused and stopped, coordinators among them. The model:
every input is in the output once, for whoever reads what is committed.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import warnings
from contextlib import suppress

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError, ProducerFenced
from hypothesis import given, settings
from hypothesis import strategies as st

from abeyant import aio
from abeyant.broker import Cluster

PARTITIONS = [TopicPartition("in", 0), TopicPartition("in", 1)]
INPUTS = [b"%d" % number for number in range(24)]
LONGEST = 1_800.0  # seconds of virtual time, for what takes a few
SETTINGS = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}

BROKER = st.sampled_from([1, 2, 3])
STEP = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([0.01, 0.03, 0.05, 0.3, 2.0])),
    st.tuples(st.sampled_from(["pause", "stop"]), BROKER),
    st.tuples(st.sampled_from(["kill", "rival", "fence", "drop"]), st.just(0)),
)


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """aiokafka logs each failure that it will try again; pytest would keep their tracebacks, clients and all."""
    for name in ("aiokafka", "asyncio"):
        caplog.set_level(logging.CRITICAL + 1, name)


async def work(kafka: Cluster) -> None:
    """Copy, until another worker has taken the id over; after any other error begin anew."""
    while True:
        try:
            await copy(kafka)
        except ProducerFenced:
            return
        except (TimeoutError, KafkaError, ValueError, AssertionError):  # whatever a client makes of it
            await asyncio.sleep(0.2)


async def copy(kafka: Cluster) -> None:
    """A producer that begins, and then reads on from where the last committed transaction was."""
    client = {"bootstrap_servers": kafka.bootstrap, "request_timeout_ms": 5_000, "retry_backoff_ms": 50}
    producer = AIOKafkaProducer(transactional_id="copier", transaction_timeout_ms=20_000, **client)
    consumer = AIOKafkaConsumer(group_id="copy", enable_auto_commit=False, **client)
    try:
        await asyncio.wait_for(producer.start(), 30)
        await asyncio.wait_for(consumer.start(), 30)
        consumer.assign(PARTITIONS)
        for partition in PARTITIONS:
            consumer.seek(partition, await asyncio.wait_for(consumer.committed(partition), 30) or 0)
        while True:
            got = await consumer.getmany(timeout_ms=500, max_records=3)
            if got:
                await asyncio.wait_for(transfer(producer, got), 60)
    finally:
        for client_of_ours in (producer, consumer):
            with suppress(KafkaError, TimeoutError):
                await asyncio.wait_for(client_of_ours.stop(), 5)


async def transfer(producer: AIOKafkaProducer, got: dict[TopicPartition, list[object]]) -> None:
    await producer.begin_transaction()
    for partition, messages in got.items():
        for message in messages:
            sent = await producer.send("out", message.value, partition=partition.partition)  # type: ignore[attr-defined]
            sent.add_done_callback(lambda one: one.cancelled() or one.exception())  # the commit tells it too
    offsets = {partition: messages[-1].offset + 1 for partition, messages in got.items()}  # type: ignore[attr-defined]
    await producer.send_offsets_to_transaction(offsets, "copy")
    await producer.commit_transaction()


class Story:
    """One run: the cluster, its workers, and what happens to them."""

    def __init__(self, kafka: Cluster) -> None:
        self.kafka = kafka
        self.workers: list[asyncio.Task[None]] = []
        self.down: int | None = None

    async def play(self, steps: list[tuple[str, float]]) -> None:
        for name in ("in", "out"):
            self.kafka.create_topic(name, partitions=2, config={"min.insync.replicas": 2})
        async with AIOKafkaProducer(bootstrap_servers=self.kafka.bootstrap) as producer:
            for number, value in enumerate(INPUTS):
                await producer.send_and_wait("in", value, partition=number % 2)
        for api in ("Produce", "AddPartitionsToTxn", "TxnOffsetCommit", "EndTxn", "WriteTxnMarkers"):
            self.kafka.delay(api, seconds=0.02)  # so that steps come in the middle of transactions
        self.begin()
        for what, much in steps:
            await self.written_anew()
            await self.step(what, much)
        await self.heal()
        if not any(not worker.done() for worker in self.workers):
            self.begin()
        await asyncio.wait_for(self.done(), LONGEST)
        await asyncio.sleep(10.0)  # nobody writes any of it again
        for worker in self.workers:
            worker.cancel()
        await asyncio.gather(*self.workers, return_exceptions=True)

    async def written_anew(self) -> None:
        """Until a transaction is open, and has written something; or for a while, if none can."""
        before = len(self.kafka.records("out", beyond_high_watermark=True))
        for _ in range(100):
            if len(self.kafka.records("out", beyond_high_watermark=True)) > before:
                return
            await asyncio.sleep(0.02)

    def begin(self) -> None:
        self.workers.append(asyncio.get_running_loop().create_task(work(self.kafka)))

    async def step(self, what: str, value: float) -> None:
        if what == "wait":
            await asyncio.sleep(value)
        elif what in ("pause", "stop"):
            await self.heal()
            self.down = int(value)
            getattr(self.kafka, what)(self.down)
        elif what == "drop":
            self.kafka.drop_connections()
        elif what == "fence":
            with suppress(Exception):  # nobody has the id yet, or its coordinator is away
                self.kafka.fence("copier")
        else:
            if what == "kill":
                for worker in self.workers:
                    worker.cancel()
            self.begin()

    async def heal(self) -> None:
        """Bring the broker back, and wait until every replica is in sync: so nothing that counts is lost."""
        if self.down is not None:
            if self.kafka.brokers[self.down].stopped:
                self.kafka.start(self.down)
            else:
                self.kafka.resume(self.down)
            self.down = None
        topics = self.kafka.controller.topics
        while any(len(state.isr) < len(state.replicas) for topic in topics.values() for state in topic.partitions):
            await asyncio.sleep(0.1)

    async def done(self) -> None:
        """Until all workers but one are gone, and that one has copied all there is."""
        while len(self.kafka.records("out", isolation="read_committed")) < len(INPUTS):
            if all(worker.done() for worker in self.workers):
                self.begin()
            await asyncio.sleep(1.0)


async def run(steps: list[tuple[str, float]]) -> list[bytes | None]:
    async with Cluster(brokers=3, settings=SETTINGS) as kafka:
        await Story(kafka).play(steps)
        return [one.value for one in kafka.records("out", isolation="read_committed")]


@settings(max_examples=5)
@given(st.lists(STEP, max_size=12))
def test_every_input_is_in_the_output_once(steps: list[tuple[str, float]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # aiokafka leaves connections open where it is killed
        copied = aio.run_virtual(run(steps))
        gc.collect()
    assert sorted(copied, key=lambda value: int(value or -1)) == INPUTS
