"""Seeds find a planted mistake, and shrink it to the fault that matters; the same seed is the same run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import (
    Options,
    RunId,
    RunResult,
    Simulation,
    parse_id,
    rerun,
    run_seed,
    story,
)
from abeyant.errors import AbeyantError
from abeyant.simulation import SimulationError

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from broker.simulation.shrunk import shrunk

aiokafka = pytest.importorskip("aiokafka")

KILLS = Options(faults=("kill",))


async def small(simulation: Simulation) -> None:
    """A service that commits what it has not worked off; six orders."""
    simulation.kafka.create_topic("orders", partitions=2, config={"min.insync.replicas": 2})
    done: list[bytes] = []

    async def service() -> None:
        consumer = aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=simulation.bootstrap, group_id="work", enable_auto_commit=False,
            auto_offset_reset="earliest",
        )  # fmt: skip
        await consumer.start()
        while True:
            record = await consumer.getone()
            await consumer.commit()
            await asyncio.sleep(0.1)
            done.append(record.value)

    simulation.process(service)
    sent = await send(simulation, 6)
    simulation.check(kafka_checks.each_effect_at_least_once(lambda: done, lambda: sent))


async def send(simulation: Simulation, count: int) -> list[bytes]:
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=simulation.bootstrap, acks="all")
    await producer.start()
    sent = [b"%d" % number for number in range(count)]
    for value in sent:
        await producer.send_and_wait("orders", value)
        await asyncio.sleep(simulation.uniform(0, 0.4))
    await producer.stop()
    return sent


@pytest.mark.slow  # searches for long
def test_a_lost_order_is_found_shrunk_and_repeated() -> None:
    which, best = shrunk(small, KILLS)
    assert best.failure is not None
    assert best.failure.reason == "each effect at least once"
    assert len(best.faults) == 1
    again = rerun(small, parse_id(str(which)), KILLS, any_hashes=True)
    assert (again.hash, again.failure) == (best.hash, best.failure)
    told = story(best, which, 1, "pytest it").splitlines()
    assert "took no effect" in told[0]
    assert any("service is killed" in line for line in told)
    assert len(told) <= 10


def test_without_faults_nothing_is_lost() -> None:
    outcome = run_seed(small, 1, Options(faults=()), any_hashes=True)
    assert outcome.failure is None
    assert [event.what for event in outcome.history.events] == ["the faults end"]
    assert len(outcome.history.produced) == 6


@pytest.mark.slow
def test_the_same_seed_in_processes_of_their_own() -> None:
    """S1"""

    def hashes(hash_seed: str) -> str:
        command = [sys.executable, __file__, "0", "6"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout

    first = hashes("1")
    assert len(set(first.split())) == 12
    assert hashes("random") == first


def test_a_session_that_the_test_itself_expires_is_no_alarm() -> None:
    """S3"""

    async def expiring(simulation: Simulation) -> None:
        simulation.kafka.create_topic("orders")
        options = {"bootstrap_servers": simulation.bootstrap, "group_id": "work", "heartbeat_interval_ms": 500}
        consumer = aiokafka.AIOKafkaConsumer("orders", **options)
        await consumer.start()
        await asyncio.sleep(2)
        (member,) = simulation.kafka.group("work").members
        simulation.kafka.expire_member("work", member.id)
        await asyncio.sleep(5)
        simulation.check(kafka_checks.heartbeats_keep_members("work"))

    outcome = run_seed(expiring, 1, Options(brokers=1, faults=()), any_hashes=True)
    assert outcome.failure is None, outcome.failure
    assert ("Heartbeat", "UNKNOWN_MEMBER_ID") in outcome.seen
    assert outcome.history.events[0].what.startswith("the session of a member of work expires")


def test_a_check_that_saw_nothing_fails() -> None:
    """S2"""

    async def idle(simulation: Simulation) -> None:
        simulation.kafka.create_topic("orders")
        simulation.check(kafka_checks.acknowledged_is_readable("orders"))

    failure = run_seed(idle, 1, Options(faults=(), converge=5.0), any_hashes=True).failure
    assert failure is not None
    assert "saw no record acknowledged in orders, so it proves nothing" in failure.message


def test_an_error_of_the_test_is_told_with_its_place() -> None:
    async def wrong(simulation: Simulation) -> None:
        raise ValueError("of the test")

    failure = run_seed(wrong, 1, Options(), any_hashes=True).failure
    assert failure is not None
    assert failure.message == "ValueError: of the test"
    assert "test_search.py" in failure.text


@pytest.mark.parametrize("code", [0, 1])
def test_a_program_that_exits_ends_alone(code: int) -> None:
    async def exits(starts: list[int]) -> None:
        starts.append(code)
        sys.exit(code)

    async def story_of_it(simulation: Simulation) -> None:
        starts: list[int] = []
        simulation.process(exits, starts)
        await asyncio.sleep(2.5)
        assert len(starts) == (3 if code else 1)

    assert run_seed(story_of_it, 1, Options(brokers=1, faults=()), any_hashes=True).failure is None


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (kafka_checks.replicas_agree, r"call it: replicas_agree\(...\)"),
        ("orders", "give a Check"),
        (kafka_checks.Check("mine", lambda history: None), "the check 'mine' returned None"),  # type: ignore[arg-type,return-value]
    ],
)
def test_what_is_no_check_is_refused(check: Any, said: str) -> None:
    async def test(simulation: Simulation) -> None:
        simulation.check(check)

    with pytest.raises(AbeyantError, match=said):
        run_seed(test, 1, Options(brokers=1, faults=()), any_hashes=True)


def test_a_program_that_fails_for_good_fails_the_run() -> None:
    async def fails() -> None:
        raise ValueError("of the program")

    async def with_it(simulation: Simulation) -> None:
        simulation.process(fails, restart=False)

    failure = run_seed(with_it, 1, Options(), any_hashes=True).failure
    assert failure is not None
    assert "fails ended with ValueError('of the program')" in failure.message


@pytest.mark.parametrize("text", ["", "x", "-1", "1:a", "1:0:loud", "1.5"])
def test_an_id_that_names_no_run_is_refused(text: str) -> None:
    with pytest.raises(SimulationError):
        parse_id(text)


def test_ids_are_read_as_they_are_written() -> None:
    every = [RunId(7), RunId(7, ()), RunId(7, (0, 3)), RunId(7, (1,), frozenset({"quiet"}))]
    for which in [*every, RunId(7, None, frozenset({"round"}))]:
        assert parse_id(str(which)) == which


def test_a_fault_that_is_none_is_named() -> None:
    with pytest.raises(SimulationError, match="there is no fault 'explode'"):
        run_seed(small, 1, Options(faults=("explode",)), any_hashes=True)


def main() -> None:
    from abeyant import simulation

    simulation.fix_hashes()
    first, count = int(sys.argv[1]), int(sys.argv[2])
    for seed in range(first, first + count):
        outcome: RunResult = run_seed(small, seed, Options())
        print(seed, outcome.hash)


if __name__ == "__main__":
    main()
