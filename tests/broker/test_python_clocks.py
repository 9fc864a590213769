"""A client that measures by Python's clocks, in virtual time with `clocks=True`."""

import asyncio

import pytest

from abeyant import aio
from abeyant.broker import Cluster

aiokafka = pytest.importorskip("aiokafka")
pytest.importorskip("time_machine")


@pytest.mark.slow
def test_aiokafkas_max_poll_interval_elapses() -> None:
    """Who does not poll for `max_poll_interval_ms` leaves the group, and the other gets its partitions."""

    async def main() -> tuple[int, int]:
        async with Cluster() as kafka:
            kafka.create_topic("o", partitions=2)
            settings = {"bootstrap_servers": kafka.bootstrap, "group_id": "g", "max_poll_interval_ms": 60_000}
            slow, other = aiokafka.AIOKafkaConsumer("o", **settings), aiokafka.AIOKafkaConsumer("o", **settings)
            await slow.start()
            await asyncio.sleep(1)
            await other.start()
            await other.getmany(timeout_ms=30_000)
            before = len(other.assignment())
            for _ in range(12):
                await other.getmany(timeout_ms=10_000)
            after = len(other.assignment())
            await other.stop()
            await slow.stop()
            return before, after

    assert aio.run_virtual(main(), clock=aio.VirtualClock(clocks=True, limit=3600)) == (1, 2)
