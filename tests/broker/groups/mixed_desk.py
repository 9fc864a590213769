"""A shard without a broker, its log a list, and members of both protocols that do as clients do, without threads."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

from abeyant import ManualTimer, Purgatory
from abeyant.broker.coordinator.shard import Entry
from abeyant.broker.errors import ApiError
from abeyant.broker.group_settings import GroupSettings
from abeyant.broker.groups.classic.member import JoinRequest, JoinResponse, SyncResponse
from abeyant.broker.groups.consumer.assignors import Partition
from abeyant.broker.groups.consumer.group import LEAVES
from abeyant.broker.groups.consumer.protocol import HeartbeatRequest, HeartbeatResponse
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.groups.subscription import assignment_value, read_assignment, read_subscription
from abeyant.broker.log.records import Record
from abeyant.broker.metadata_store import MetadataStore
from abeyant.broker.settings import Settings
from abeyant.broker.wire.schema import ErrorCode
from broker.conformance.scenarios.migration import subscription

NONE, AGAIN = ErrorCode.none, ErrorCode.rebalance_in_progress
GROUP, TOPIC = "group", "t"
SESSION, REBALANCE = 30.0, 40.0  # seconds
_ID = uuid.UUID(int=7)


class Kept(GroupShard):
    """Writes to the desk's list."""

    log: list[Record]

    def write(
        self, entries: Sequence[Entry], then: Callable[[ErrorCode], object], *, replayed: bool = True, **_: object
    ) -> None:
        records = [Record(len(self.log) + place, 0, key, value) for place, (key, value) in enumerate(entries)]
        self.log += records
        if replayed:
            for record in records:
                self.replay(record, cast("Any", None))
        then(NONE)


class MixedDesk:
    """One group on one topic."""

    def __init__(self, settings: dict[str, object] | None = None, *, partitions: int = 4) -> None:
        self.timer = ManualTimer()
        self.rebalances: Purgatory[Any] = Purgatory("Rebalance", self.timer)
        self.sessions: Purgatory[Any] = Purgatory("Heartbeat", self.timer)
        topic = SimpleNamespace(name=TOPIC, id=_ID, partitions=[None] * partitions, internal=False)
        known = {"group.consumer.session.timeout.ms": round(SESSION * 1000), "group.initial.rebalance.delay.ms": 0}
        of_brokers = Settings({**known, **(settings or {})})
        of_groups = GroupSettings(of_brokers, MetadataStore(None))
        controller = SimpleNamespace(topics={TOPIC: topic}, by_id={_ID: topic}, groups=of_groups, topics_version=0)
        self.broker: Any = SimpleNamespace(
            cluster=SimpleNamespace(settings=of_brokers, controller=controller),
            rebalance_purgatory=self.rebalances, heartbeat_purgatory=self.sessions,
            timer=self.timer, now=self.timer.time, now_ms=lambda: round(self.timer.time() * 1000),
        )  # fmt: skip
        self.log: list[Record] = []
        self.all = frozenset((_ID, index) for index in range(partitions))
        self.shard = self._loaded()

    def _loaded(self) -> Kept:
        shard = Kept(self.broker, cast("Any", SimpleNamespace(log=SimpleNamespace(start_offset=0), high_watermark=0)))
        shard.log = self.log
        for record in self.log:
            shard.replay(record, cast("Any", None))
        shard.begin()
        return shard

    def move(self) -> None:
        """Another coordinator reads the log."""
        self.shard.end()
        self.shard = self._loaded()

    def heartbeat(self, member_id: str, generation: int) -> None:
        """That of a member of the classic protocol, as its request would have it. Raises ApiError."""
        shard = self.shard
        if GROUP in shard.consumers:
            shard.classic_members.heartbeat(shard.consumers[GROUP], (member_id, None), generation)
        else:
            shard.classic_protocol.heartbeat(shard.group_of_member(GROUP), member_id, None, generation)

    @property
    def members(self) -> set[str]:
        """The ids of those that are in the group."""
        return set(self.shard.members(GROUP) or {})

    @property
    def kind(self) -> str:
        """Which protocol the group speaks."""
        return "consumer" if GROUP in self.shard.consumers else "classic"


class Old:
    """A consumer of the classic protocol; an eager one gives back all before it joins again, another what it has to."""

    def __init__(self, desk: MixedDesk, name: str, *, eager: bool) -> None:
        self.desk, self.name, self.eager = desk, name, eager
        self.id = ""
        self.generation = -1
        self.has: frozenset[Partition] = frozenset()
        self.joins: list[JoinResponse] | None = None
        self.syncs: list[SyncResponse] | None = None
        self.errors: list[ErrorCode] = []

    @property
    def waits(self) -> bool:
        return self.joins is not None or self.syncs is not None

    def beat(self) -> None:
        """What its client does next."""
        if self.waits:
            return
        if self.generation < 0:
            self._join()
            return
        try:
            self.desk.heartbeat(self.id, self.generation)
        except ApiError as error:
            self._failed(error.code)

    def leave(self) -> None:
        shard = self.desk.shard
        if GROUP in shard.consumers:
            shard.classic_members.leave(shard.consumers[GROUP], [(self.id, None)], self.errors.extend)
        elif GROUP in shard.groups:
            shard.classic_protocol.leave(shard.groups[GROUP], [(self.id, None)], self.errors.extend)

    def hear(self) -> bool:
        """Act on an answer, if there is one."""
        if self.joins:
            joined, self.joins = self.joins[0], None
            if joined.error is not NONE:
                self.id = joined.member_id or self.id
                self._failed(joined.error)
                return True
            self.id, self.generation = joined.member_id, joined.generation
            self._sync(joined)
            return True
        if self.syncs:
            synced, self.syncs = self.syncs[0], None
            if synced.error is NONE:
                self._given(frozenset((_ID, index) for _, index in read_assignment(synced.assignment)[0]))
            else:
                self._failed(synced.error)
            return True
        return False

    def _failed(self, error: ErrorCode) -> None:
        if error is not ErrorCode.member_id_required:
            self.errors.append(error)
        if error in (ErrorCode.unknown_member_id, ErrorCode.illegal_generation, ErrorCode.fenced_instance_id):
            self.id, self.generation, self.has = (
                "" if error is ErrorCode.unknown_member_id else self.id,
                -1,
                frozenset(),
            )
        if error not in (ErrorCode.not_coordinator, ErrorCode.inconsistent_group_protocol):
            self._join()
        else:
            self.generation = -1

    def _join(self) -> None:
        if self.eager:
            self.has = frozenset()
        owned = None if self.eager else sorted(index for _, index in self.has)
        metadata = subscription(cast("Any", SimpleNamespace(name=TOPIC)), owned)
        asked = JoinRequest(
            self.id, None, self.name, "/host", round(SESSION * 1000), round(REBALANCE * 1000), "consumer",
            (("range", metadata),),
        )  # fmt: skip
        told: list[JoinResponse] = []
        self.joins = told
        shard = self.desk.shard
        consumers = shard.consumers.get(GROUP)
        if consumers is not None and consumers.members:
            shard.classic_members.join(consumers, asked, told.append)
        elif self.id and GROUP not in shard.groups:
            told.append(JoinResponse(ErrorCode.unknown_member_id, ""))
        else:
            shard.classic_protocol.join(shard.group_or_new(GROUP), asked, told.append)

    def _sync(self, joined: JoinResponse) -> None:
        shard = self.desk.shard
        told: list[SyncResponse] = []
        self.syncs = told
        protocols = ("consumer", "range")
        try:
            if GROUP in shard.consumers:
                consumers = shard.consumers[GROUP]
                shard.classic_members.sync(consumers, (self.id, None), self.generation, protocols, told.append)
            else:
                given = _assigned(joined, len(self.desk.all)) if joined.members else {}
                group = shard.group_of_member(GROUP)
                shard.classic_protocol.rebalances.sync(
                    group, self.id, None, self.generation, protocols, given, told.append
                )
        except ApiError as error:
            told.append(SyncResponse(error.code))

    def _given(self, assigned: frozenset[Partition]) -> None:
        kept = self.has & assigned
        gives_back = self.has - assigned
        self.has = kept | assigned
        if gives_back:
            self._join()


def _assigned(joined: JoinResponse, partitions: int) -> dict[str, bytes]:
    """As the leader of a classic group does it: evenly, and nothing that another has still."""
    owners = {index: member for member, _, metadata in joined.members for _, index in read_subscription(metadata).owned}
    names = [member for member, _, _ in joined.members]
    given: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    for index in range(partitions):
        to = names[index % len(names)]
        if owners.get(index, to) == to:
            given[to].append((TOPIC, index))
    return {name: assignment_value(1, rows) for name, rows in given.items()}


class New:
    """A consumer of the new protocol: it gives back what it is not to have, and says so."""

    waits = False

    def __init__(self, desk: MixedDesk, name: str) -> None:
        self.desk, self.id = desk, name
        self.epoch = 0
        self.has: frozenset[Partition] = frozenset()
        self.errors: list[ErrorCode] = []

    def beat(self) -> None:
        whole = {"rebalance_timeout": round(REBALANCE * 1000), "topics": (TOPIC,)} if self.epoch == 0 else {}
        beat = HeartbeatRequest(self.id, self.epoch, owned=self.has, **cast("Any", whole))
        told: list[HeartbeatResponse] = []
        shard = self.desk.shard
        try:
            if self.epoch == 0:
                shard.join(beat, GROUP, told.append)
            else:
                shard.consumer_protocol.heartbeat(shard.consumer_group(GROUP), beat, told.append)
        except ApiError as error:
            self.errors.append(error.code)
            self.epoch, self.has = 0, frozenset()
            return
        (answer,) = told
        assert answer.error is NONE, answer
        self.epoch = answer.epoch
        if answer.assignment is not None:
            self.has = answer.assignment

    def leave(self) -> None:
        shard = self.desk.shard
        if GROUP in shard.consumers and self.id in shard.consumers[GROUP].members:
            shard.consumer_protocol.leave(shard.consumers[GROUP], HeartbeatRequest(self.id, LEAVES), lambda _: None)

    def hear(self) -> bool:
        return False


def settle(members: Sequence[Old | New]) -> None:
    """Until nobody has an answer to act on."""
    for _ in range(1_000):
        if not [member for member in members if member.hear()]:
            return
    raise AssertionError("they never come to rest")
