"""Two hundred unlucky orders of events for the mended service; a few for the one that loses orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from abeyant.broker import checks as kafka_checks
from examples.simulation.orders import Service, careful_service, hasty_service, send_orders

if TYPE_CHECKING:
    from abeyant.broker.simulation import Simulation


async def story(simulation: Simulation, service: Service) -> None:
    simulation.kafka.create_topic("orders", partitions=3, config={"min.insync.replicas": 2})
    packed: list[str] = []  # what is in the warehouse outlives the program
    simulation.process(service, simulation.bootstrap, packed)
    orders = await send_orders(simulation.bootstrap, 20, lambda: simulation.uniform(0, 0.5))
    simulation.check(
        kafka_checks.acknowledged_is_readable("orders"),
        kafka_checks.each_effect_once(lambda: packed, lambda: orders),
        kafka_checks.consumer_never_skips("orders"),
        kafka_checks.commits_are_not_ahead("packing", "orders"),
        kafka_checks.everything_is_committed("packing", "orders"),
    )


@pytest.mark.kafka(brokers=3, seeds=20)
async def test_each_order_is_packed_once(simulation: Simulation) -> None:
    await story(simulation, careful_service)


@pytest.mark.xfail(reason="the service commits before it has packed", strict=True)
@pytest.mark.kafka(brokers=3, seeds=40, faults=("kill", "pause", "lose answer"))
async def test_the_hasty_service_loses_an_order(simulation: Simulation) -> None:
    await story(simulation, hasty_service)
