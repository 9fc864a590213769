"""Hypothesis drives a simulation: it finds the fault that matters, and shrinks it with what else it draws."""

from __future__ import annotations

import asyncio
import re

import hypothesis
import pytest

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import KINDS, Options, PlannedFault, Simulation, strategies
from abeyant.simulation import SimulationError

aiokafka = pytest.importorskip("aiokafka")

QUICK = hypothesis.settings(
    max_examples=40, deadline=None, derandomize=True, database=None, suppress_health_check=list(hypothesis.HealthCheck)
)
OPTIONS = Options(brokers=1, converge=2.0)


async def sends_once_more(simulation: Simulation) -> None:
    """A program that sends again where it had no answer, without idempotence."""
    simulation.kafka.create_topic("orders")
    options = {"bootstrap_servers": simulation.bootstrap, "acks": "all", "request_timeout_ms": 1000}
    producer = aiokafka.AIOKafkaProducer(**options)
    await producer.start()
    sent = [b"tea", b"jam"]
    for value in sent:
        await producer.send_and_wait("orders", value)
        await asyncio.sleep(0.1)
    await producer.stop()
    simulation.check(
        kafka_checks.each_effect_once(
            lambda: [one.item.value for one in simulation.history.stored if one.topic == "orders"], lambda: sent
        )
    )


@pytest.mark.slow
def test_hypothesis_finds_and_shrinks_the_fault_that_matters() -> None:
    plans = strategies.faults(("lose answer", "disconnect"), horizon=0.2, most=3)
    failing: list[list[PlannedFault]] = []

    @hypothesis.settings(QUICK, max_examples=1000)  # it ends where it finds one: by one plan in ten or so
    @hypothesis.given(plans)
    def test(plan: list[PlannedFault]) -> None:
        try:
            strategies.simulate(sends_once_more, faults=plan, options=OPTIONS)
        except AssertionError:
            failing.append(plan)
            raise

    with pytest.raises(AssertionError, match=re.escape("took effect 2 times")) as caught:
        test()
    assert "the answer to the next Produce is lost" in str(caught.value)
    (fault,) = failing[-1]  # the last that Hypothesis ran is the least
    assert (fault.kind, fault.api, fault.times) == ("lose answer", "Produce", 1)


@QUICK
@hypothesis.given(strategies.faults())
def test_plans_are_what_a_seed_could_plan(plan: list[PlannedFault]) -> None:
    assert len(plan) <= 5
    assert [fault.at for fault in plan] == sorted(fault.at for fault in plan)
    for fault in plan:
        assert fault.kind in KINDS
        assert 0 <= fault.at <= 10
        assert 0 <= fault.where < 1
        assert fault.seconds > 0
        assert bool(fault.error) == (fault.kind == "fail")


def test_a_kind_that_there_is_not_is_named() -> None:
    with pytest.raises(SimulationError, match="there is no fault 'explode'"):
        strategies.faults(("explode",))
