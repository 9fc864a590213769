"""Members of a group of the consumer protocol (KIP-848), in raw requests: no client that can be simulated speaks it."""

from __future__ import annotations

import asyncio
import struct
from datetime import timedelta
from typing import Any, Self

from kio.index import load_response_schema
from kio.serial import entity_reader

from abeyant.broker import checks as kafka_checks
from abeyant.broker.simulation import Simulation
from abeyant.broker.wire.schema import ErrorCode
from broker.wire import encoded

_FIND_COORDINATOR, _OFFSET_COMMIT, _HEARTBEAT = (10, 4), (8, 9), (68, 1)
_HEADER = 5  # bytes of a flexible response's header


class Connection:
    """One to the group's coordinator, without a client: each request waits for its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, address: str) -> Self:
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    @classmethod
    async def to_coordinator(cls, bootstrap: str, group: str) -> Self:
        first = await cls.to(bootstrap.partition(",")[0])
        while True:
            found = (await first.ask(_FIND_COORDINATOR, coordinator_keys=[group])).coordinators[0]
            if found.error_code == ErrorCode.none:
                first._writer.close()
                return await cls.to(f"{found.host}:{found.port}")
            await asyncio.sleep(0.1)

    async def ask(self, api: tuple[int, int], **values: Any) -> Any:
        data = encoded(*api, 1, **values)
        self._writer.write(struct.pack(">i", len(data)) + data)
        (size,) = struct.unpack(">i", await self._reader.readexactly(4))
        read: Any = entity_reader(load_response_schema(*api))
        return read(await self._reader.readexactly(size), _HEADER)[0]


async def member(run: Simulation, name: str, beat: float) -> None:
    """Join, send a heartbeat every `beat` seconds and commit in between; join again where the member is unknown."""
    broker = await Connection.to_coordinator(run.bootstrap, "work")
    epoch, offset = 0, 0
    while True:
        joining: dict[str, Any] = {"topic_partitions": None, "subscribed_topic_names": None}
        if epoch == 0:
            joining = {"topic_partitions": [], "subscribed_topic_names": ["orders"]}
        beaten = await broker.ask(
            _HEARTBEAT, group_id="work", member_id=name, member_epoch=epoch, rebalance_timeout=timedelta(seconds=5),
            **joining,
        )  # fmt: skip
        epoch = beaten.member_epoch if beaten.error_code == ErrorCode.none else 0
        for _ in range(3):
            await asyncio.sleep(beat / 3 * run.choose(0.9, 1.1))
            if epoch:
                offset += 1
                place = {"partition_index": 0, "committed_offset": offset, "committed_metadata": None}
                await broker.ask(
                    _OFFSET_COMMIT, group_id="work", member_id=name, generation_id_or_member_epoch=epoch,
                    topics=[{"name": "orders", "partitions": [place]}],
                )  # fmt: skip


async def committing_by_epoch(run: Simulation) -> None:
    """One of two members is expired, and commits until its next heartbeat tells it so."""
    run.kafka.create_topic("orders", partitions=1)
    run.process(member, run, "a", 2.0)
    await asyncio.sleep(1)
    run.process(member, run, "b", 0.3, name="another")
    await asyncio.sleep(run.choose(2, 4))
    run.kafka.expire_member("work", "a")
    await asyncio.sleep(3)
    run.check(kafka_checks.no_zombie_writes())
