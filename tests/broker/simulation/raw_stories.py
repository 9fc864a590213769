"""In raw requests, what no client that can be simulated speaks: KIP-848's protocol, transactions of version 2."""

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
from broker.log.batches import batch
from broker.wire import encoded

_FIND_COORDINATOR, _OFFSET_COMMIT, _HEARTBEAT = (10, 4), (8, 9), (68, 1)
_PRODUCE, _INIT_PRODUCER_ID, _END_TXN = (0, 12), (22, 5), (26, 5)
_TRANSACTIONAL = 0x10  # an attribute of a batch
_HEADER = 5  # bytes of a flexible response's header


class Connection:
    """One to a broker, without a client: each request waits for its answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def to(cls, address: str) -> Self:
        host, _, port = address.rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    @classmethod
    async def to_coordinator(cls, bootstrap: str, key: str, kind: int = 0) -> Self:
        """Connect to a group's coordinator, or with kind 1 to that of a transactional id."""
        first = await cls.to(bootstrap.partition(",")[0])
        while True:
            found = (await first.ask(_FIND_COORDINATOR, coordinator_keys=[key], key_type=kind)).coordinators[0]
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
            await asyncio.sleep(beat / 3 * run.uniform(0.9, 1.1))
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
    await asyncio.sleep(run.uniform(2, 4))
    run.kafka.expire_member("work", "a")
    await asyncio.sleep(3)
    run.check(kafka_checks.no_zombie_writes())


class Producer:
    """A transactional producer of version 2: each end of a transaction gives it its next epoch (KIP-890)."""

    def __init__(self, coordinator: Connection) -> None:
        self._coordinator = coordinator
        self.id, self.epoch, self.sequence = -1, -1, 0

    async def begin(self) -> None:
        options = {"transaction_timeout": timedelta(seconds=30), "producer_id": -1, "producer_epoch": -1}
        self._renew(await self._retried(_INIT_PRODUCER_ID, transactional_id="packer", **options))

    async def end(self, *, commits: bool) -> None:
        producer = {"producer_id": self.id, "producer_epoch": self.epoch}
        self._renew(await self._retried(_END_TXN, transactional_id="packer", committed=commits, **producer))

    def parcel(self, value: bytes) -> dict[str, Any]:
        """Return the request that writes a parcel, as the next of this producer's."""
        header: dict[str, Any] = {"producer_id": self.id, "producer_epoch": self.epoch, "base_sequence": self.sequence}
        records = batch([value], attributes=_TRANSACTIONAL, **header).data
        self.sequence += 1
        partitions = [{"index": 0, "records": records}]
        return {
            "transactional_id": "packer", "acks": -1, "timeout": timedelta(seconds=5),
            "topic_data": [{"name": "parcels", "partition_data": partitions}],
        }  # fmt: skip

    async def write(self, broker: Connection, value: bytes) -> None:
        """Write a parcel; again while the broker asks for it, for at most ten seconds."""
        request = self.parcel(value)
        for _ in range(100):
            answer = await broker.ask(_PRODUCE, **request)
            if answer.responses[0].partition_responses[0].error_code == ErrorCode.none:
                return
            await asyncio.sleep(0.1)

    async def _retried(self, api: tuple[int, int], **values: Any) -> Any:
        while True:
            answer = await self._coordinator.ask(api, **values)
            if answer.error_code not in (ErrorCode.concurrent_transactions, ErrorCode.coordinator_load_in_progress):
                return answer
            await asyncio.sleep(0.05)

    def _renew(self, answer: Any) -> None:
        if answer.error_code == ErrorCode.none and (answer.producer_id, answer.producer_epoch) != (self.id, self.epoch):
            self.id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0


async def aborting(run: Simulation) -> None:
    """A parcel is sent late, after the producer has given it up and aborted; others follow, and are committed."""
    run.kafka.create_topic("parcels", partitions=1)
    leader = run.bootstrap.split(",")[run.kafka.controller.topics["parcels"].partitions[0].leader - 1]
    producer = Producer(await Connection.to_coordinator(run.bootstrap, "packer", 1))
    broker, slow = await Connection.to(leader), await Connection.to(leader)
    await producer.begin()
    kept = [b"parcel-%d" % number for number in range(4)]

    async def late(request: dict[str, Any]) -> None:
        await asyncio.sleep(run.uniform(0, 0.3))
        await slow.ask(_PRODUCE, **request)

    for value in kept:
        await producer.write(broker, b"given up")
        sending = asyncio.ensure_future(late(producer.parcel(b"given up, too")))
        await asyncio.sleep(run.uniform(0, 0.1))
        await producer.end(commits=False)
        await asyncio.sleep(run.uniform(0, 0.3))
        await producer.write(broker, value)
        await producer.end(commits=True)
        await sending
    run.check(
        kafka_checks.each_effect_once(
            lambda: [one.item.value for one in run.history.stored_committed if one.topic == "parcels"], lambda: kept
        ),
        kafka_checks.state_is_consistent(),
    )
