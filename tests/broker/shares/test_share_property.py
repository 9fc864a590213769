"""Members of a share group at random, in held time, beside a plain model: who has which record, and how often."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.broker.shares.partition import Phase
from broker.shares.member import ACCEPT, REJECT, RELEASE, RENEW, ShareMember, join
from seeds import seeds
from waiting import wait_until

LOCK, LIMIT = 30.0, 3
SMALL = {
    "offsets.topic.num.partitions": 1, "share.coordinator.state.topic.num.partitions": 1,
    "auto.leader.rebalance.enable": False,
}  # fmt: skip
GROUP = {"share.auto.offset.reset": "earliest", "share.delivery.count.limit": str(LIMIT)}


@dataclass
class Known:
    """What the model knows of a record."""

    deliveries: int = 0
    stored: int = 0  # deliveries that a new leader knows of
    holder: str = ""
    until: float = 0.0
    done: bool = False


class World:
    """A cluster, three members, and the model."""

    def __init__(self, kafka: Cluster, seed: int) -> None:
        self.kafka = kafka
        self.random = random.Random(seed)
        self.now = 0.0
        self.records: dict[int, Known] = {}
        self.members: dict[str, ShareMember] = {}

    def member(self, name: str) -> ShareMember:
        """A member with a session, whose share partition is loaded."""
        if name not in self.members:
            member = self.members[name] = ShareMember(self.kafka, "group", "work", name)
            assert member.get(records=0) == []
            shares = self.kafka.brokers[member.leader].shares
            topic = self.kafka.controller.topics["work"].id
            found = shares.get("group", topic, 0)
            if found is None:
                self.take(name, member.get())  # begins to load it
                wait_until(lambda: (one := shares.get("group", topic, 0)) and one.phase is Phase.ACTIVE)
        return self.members[name]

    def held(self, name: str) -> list[int]:
        """The records that a member has."""
        return [offset for offset, one in self.records.items() if one.holder == name]

    def take(self, name: str, acquired: list[tuple[int, int, int]]) -> None:
        """A member got records: nobody else may have them, nor may they be done."""
        for first, last, count in acquired:
            for offset in range(first, last + 1):
                one = self.records[offset]
                assert not one.done, f"{offset} is done"
                assert not one.holder, f"{offset} is {one.holder}'s"
                assert count == one.deliveries + 1 <= LIMIT, f"{offset}: {count}, not {one.deliveries + 1}"
                one.deliveries, one.holder, one.until = count, name, self.now + LOCK

    def give_back(self, offset: int) -> None:
        one = self.records[offset]
        one.holder, one.stored = "", one.deliveries
        one.done = one.deliveries == LIMIT

    # -- what may happen

    def write(self) -> None:
        for offset in self.kafka.seed("work", [b"record"] * self.random.randint(1, 6)):
            self.records[offset] = Known()

    def fetch(self) -> None:
        name = self.random.choice(("one", "two", "three"))
        mode = self.random.randint(0, 1)
        self.take(name, self.member(name).get(records=self.random.randint(1, 9), share_acquire_mode=mode))

    def acknowledge(self) -> None:
        name = self.random.choice(("one", "two", "three"))
        mine = self.held(name)
        if not mine:
            return
        first = self.random.choice(mine)
        last = first
        while last + 1 in mine and self.random.random() < 0.7:
            last += 1
        kinds = [self.random.choice((ACCEPT, ACCEPT, RELEASE, REJECT, RENEW)) for _ in range(first, last + 1)]
        error = self.member(name).acknowledge((first, last, kinds), is_renew_ack=RENEW in kinds)
        assert error is ErrorCode.none
        for offset, kind in enumerate(kinds, first):
            if kind == RENEW:
                self.records[offset].until = self.now + LOCK
            elif kind == RELEASE:
                self.give_back(offset)
            else:
                self.records[offset].holder, self.records[offset].done = "", True

    def advance(self) -> None:
        seconds = self.random.choice((1.0, 10.0, 20.0))
        self.kafka.clock.advance(seconds)
        self.now += seconds
        for offset, one in self.records.items():
            if one.holder and one.until <= self.now:
                self.give_back(offset)

    def leave(self) -> None:
        name = self.random.choice(("one", "two", "three"))
        member = self.members.pop(name, None)
        if member is not None:
            member.close()
            wait_until(lambda: not any(dict(one.keys).get("group") == name for one in self.kafka.waiting("ShareLock")))
            self.kafka._settled(self.kafka.network.settle)
            for offset in self.held(name):
                self.give_back(offset)

    def restart(self) -> None:
        broker = self.random.choice(sorted(self.kafka.brokers))
        led = broker == self.kafka.leader("work")
        self.kafka.stop(broker)
        self.kafka.start(broker)
        wait_until(lambda: len(self.kafka.in_sync("work")) == 3 and len(self.kafka.in_sync("__share_group_state")) == 3)
        if led:
            for member in self.members.values():
                member.close()
            self.members.clear()
            for one in self.records.values():
                if one.holder:
                    one.holder, one.deliveries = "", one.stored

    def step(self) -> None:
        happens: list[Any] = [self.write, self.fetch, self.acknowledge, self.advance, self.leave, self.restart]
        self.random.choices(happens, (3, 6, 8, 3, 1, 0.5))[0]()

    def drain(self) -> None:
        """Take all that is left: then every record is acknowledged, rejected or archived."""
        self.advance()
        self.advance()
        self.kafka.clock.advance(LOCK)
        self.now += LOCK
        for offset, one in self.records.items():
            if one.holder:
                self.give_back(offset)
        while acquired := self.member("one").get():
            self.take("one", acquired)
            assert (
                self.member("one").acknowledge(*[(first, last, ACCEPT) for first, last, _ in acquired])
                is ErrorCode.none
            )
            for offset in self.held("one"):
                self.records[offset].holder, self.records[offset].done = "", True
        assert [offset for offset, one in self.records.items() if not one.done] == []


@pytest.mark.parametrize("seed", seeds(6, quick=2))
def test_no_record_is_held_by_two_or_delivered_too_often_or_lost(seed: int) -> None:
    with Cluster(3, clock="held", settings=SMALL) as kafka:
        kafka.create_topic("work", partitions=1, replicas=3)
        kafka._settled(kafka.controller.groups.change, "group", GROUP)
        for name in ("one", "two", "three"):
            join(kafka, "group", "work", name)
        world = World(kafka, seed)
        for _ in range(60):
            world.step()
        world.drain()
        for member in world.members.values():
            member.close()
