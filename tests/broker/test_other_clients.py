"""Unmodified kafka-python and aiokafka through three brokers; aiokafka in virtual time too."""

from __future__ import annotations

import asyncio
import warnings
from functools import partial
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from abeyant import aio, broker
from abeyant.broker import Cluster
from broker.clients import PATIENCE

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # of its own reading of its own files
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

VALUES: list[bytes | None] = [*(b"value %d" % number for number in range(18)), None, b""]
KEY, HEADERS, TIME = b"key", [("a", b"1"), ("b", b"")], 1_700_000_000_000


def check(got: list[Any]) -> None:
    """What was consumed is what was produced, in order of each partition."""
    assert len(got) == len(VALUES)
    for partition in (0, 1):
        records = [record for record in got if record.partition == partition]
        assert [record.value for record in records] == VALUES[partition::2]
        assert [record.offset for record in records] == list(range(len(records)))
        assert {(record.key, tuple(record.headers), record.timestamp) for record in records} == {
            (KEY, tuple(HEADERS), TIME)
        }


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_kafka_python(codec: str | None) -> None:
    with Cluster(brokers=3) as kafka:
        kafka.create_topic("orders", partitions=2)
        servers = kafka.bootstrap.split(",")
        producer = KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True, compression_type=codec)
        sent = [
            producer.send("orders", value, KEY, headers=HEADERS, partition=number % 2, timestamp_ms=TIME)
            for number, value in enumerate(VALUES)
        ]
        assert [one.get(PATIENCE).offset for one in sent] == [number // 2 for number in range(len(VALUES))]
        producer.close()
        consumer = KafkaConsumer(
            bootstrap_servers=servers, group_id=None, auto_offset_reset="earliest", enable_auto_commit=False
        )
        partitions = [TopicPartition("orders", partition) for partition in (0, 1)]
        consumer.assign(partitions)
        got: list[Any] = []
        while len(got) < len(VALUES):
            polled = consumer.poll(timeout_ms=int(PATIENCE * 1000))
            assert polled, "nothing came"
            got += [record for records in polled.values() for record in records]
        check(got)
        assert consumer.beginning_offsets(partitions) == dict.fromkeys(partitions, 0)
        assert consumer.end_offsets(partitions) == dict.fromkeys(partitions, len(VALUES) // 2)
        consumer.close()


async def through_aiokafka(kafka: Cluster, codec: str | None) -> None:
    async with AIOKafkaProducer(
        bootstrap_servers=kafka.bootstrap, acks="all", enable_idempotence=True, compression_type=codec
    ) as producer:
        for number, value in enumerate(VALUES):
            await producer.send_and_wait("orders", value, KEY, number % 2, TIME, HEADERS)
    async with AIOKafkaConsumer("orders", bootstrap_servers=kafka.bootstrap, auto_offset_reset="earliest") as consumer:
        check([await consumer.getone() for _ in VALUES])


@pytest.mark.parametrize("codec", [None, "gzip"])
@pytest.mark.parametrize(
    "run",
    [aio.run, asyncio.run, partial(aio.run, loop_factory=aio.uvloop_factory)],
    ids=["our loop", "asyncio's", "uvloop's"],
)
def test_aiokafka(run: Any, codec: str | None) -> None:
    async def main() -> None:
        async with Cluster(brokers=3) as kafka:
            kafka.create_topic("orders", partitions=2)
            await asyncio.wait_for(through_aiokafka(kafka, codec), PATIENCE)

    run(main())


def in_sync(kafka: Cluster) -> tuple[int, ...]:
    return kafka.controller.topics["orders"].partitions[0].isr


def test_k8_virtual_time_is_the_brokers_time_too(caplog: pytest.LogCaptureFixture) -> None:
    """On a loop of virtual time the broker's time is the loop's, and so is the client's: time-outs come in order."""

    async def main() -> None:
        async with broker.Cluster(brokers=3) as kafka:
            kafka.create_topic("orders")
            loop = asyncio.get_running_loop()
            async with AIOKafkaProducer(
                bootstrap_servers=kafka.bootstrap, acks="all", request_timeout_ms=1500, retry_backoff_ms=10_000
            ) as producer:
                await producer.send_and_wait("orders", b"before")
                kafka.pause(2)
                paused_at = loop.time()
                late = await producer.send("orders", b"late")
                await asyncio.sleep(1.4)
                assert not caplog.records
                await asyncio.sleep(0.2)
                assert "RequestTimedOutError" in caplog.text, "the client was told, and tries again in ten seconds"
                assert not late.done()
                await late
                assert loop.time() - paused_at >= 11.5
                assert in_sync(kafka) == (1, 3), "the paused broker was fenced"
                kafka.resume(2)
                await asyncio.sleep(60)
                assert in_sync(kafka) == (1, 2, 3)
                await producer.send_and_wait("orders", b"after")

    aio.run_virtual(main())
