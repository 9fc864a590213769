"""Planted mistakes of programs: each is found within so many seeds, and its mended version raises no alarm."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Options, Simulation, search, shrink

aiokafka = pytest.importorskip("aiokafka")

SEEDS = 80


async def start(client: Any) -> None:
    """As a supervisor does: again after an error."""
    while True:
        try:
            await client.start()
            return
        except aiokafka.errors.KafkaError:
            await asyncio.sleep(1)


async def send(simulation: Simulation, **options: Any) -> list[bytes]:
    """Ten orders, each until it is acknowledged."""
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=simulation.bootstrap, acks="all", **options)
    await start(producer)
    sent = [b"%d" % number for number in range(10)]
    for value in sent:
        while True:
            try:
                await producer.send_and_wait("orders", value)
                break
            except aiokafka.errors.KafkaError:
                await asyncio.sleep(0.5)
        await asyncio.sleep(simulation.choose(0, 0.4))
    return sent


def producing(**options: Any) -> Callable[[Simulation], Any]:
    async def story(simulation: Simulation) -> None:
        simulation.kafka.create_topic("orders", partitions=1, config={"min.insync.replicas": 2})
        sent = await send(simulation, **options)
        simulation.check(
            kafka_checks.acknowledged_is_readable("orders"),
            kafka_checks.each_effect_once(
                lambda: [one.value for one in simulation.kafka.records("orders")], lambda: sent
            ),
        )

    return story


def consuming(*, early: bool = False, **options: Any) -> Callable[[Simulation], Any]:
    given = {"group_id": "work", "enable_auto_commit": False, "auto_offset_reset": "earliest", **options}

    async def story(simulation: Simulation) -> None:
        simulation.kafka.create_topic("orders", partitions=1, config={"min.insync.replicas": 2})
        done: list[bytes] = []

        async def service() -> None:
            consumer = aiokafka.AIOKafkaConsumer("orders", bootstrap_servers=simulation.bootstrap, **given)
            await consumer.start()
            while True:
                record = await consumer.getone()
                if early:
                    await consumer.commit()
                await asyncio.sleep(0.1)
                done.append(record.value)
                if not early:
                    await consumer.commit()

        simulation.process(service)
        sent = await send(simulation, enable_idempotence=True)
        simulation.check(
            kafka_checks.each_effect_at_least_once(lambda: done, lambda: sent),
            kafka_checks.consumer_never_skips("orders"),
        )

    return story


MISTAKES = {
    "no idempotence": (producing(), ("lose answer",), " times"),
    "commit before work": (consuming(early=True), ("kill",), "took no effect"),
    "begins at the end": (consuming(auto_offset_reset="latest"), ("clog", "delay"), "took no effect"),
}  # fmt: skip
MENDED = {
    "idempotence": (producing(enable_idempotence=True), ("lose answer",)),
    "work before commit": (consuming(), ("kill",)),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_planted_mistake_is_found_and_shrunk(name: str) -> None:
    test, faults, said = MISTAKES[name]
    options = Options(faults=faults, horizon=3.0)
    found = search(test, range(SEEDS), options, lambda _: True, any_hashes=True)
    assert found is not None, f"{SEEDS} seeds did not find it"
    assert found.failure is not None
    assert said in found.failure.message
    _, best = shrink(test, found, options, any_hashes=True)
    assert len(best.faults) <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", MENDED)
def test_the_mended_version_raises_no_alarm(name: str) -> None:
    test, faults = MENDED[name]
    found = search(test, range(30), Options(faults=faults, horizon=3.0), lambda _: True, any_hashes=True)
    assert found is None or found.failure is None, found.failure


@pytest.mark.slow
def test_a_hundred_seeds_are_the_same_in_processes_of_their_own() -> None:
    """S1"""
    program = os.path.join(os.path.dirname(__file__), "test_search.py")

    def hashes(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        command = [sys.executable, program, "0", "100"]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout

    first = hashes("1")
    assert len(first.splitlines()) == 100
    assert hashes("2") == first
