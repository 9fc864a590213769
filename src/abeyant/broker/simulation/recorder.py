"""Writes the history of a run: from the brokers' responses, and at the end from what can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abeyant.broker.checks.history import Committed, Ended, History, Initialized, Item, Membership, Produced, Stored
from abeyant.broker.coordinator.topics import INTERNAL
from abeyant.broker.log.batch import split
from abeyant.broker.log.records import decode
from abeyant.broker.simulation import stock
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster
    from abeyant.simulation import SimulationLoop

_NO_PRODUCER = -1, -1


class Recorder:
    """What a cluster takes for its request log."""

    def __init__(self, loop: SimulationLoop, history: History) -> None:
        self.history = history
        self.seen: dict[tuple[str, str], int] = {}
        """How often each API answered with each error: what the run has reached."""
        self._loop = loop
        self._kinds = {
            "Produce": self._produce, "OffsetCommit": self._commit, "TxnOffsetCommit": self._commit,
            "EndTxn": self._end, "InitProducerId": self._initialize, "JoinGroup": self._member,
            "SyncGroup": self._member, "Heartbeat": self._member, "LeaveGroup": self._leave,
        }  # fmt: skip

    def log_response(self, call: Any, response: Any) -> None:
        """Note what a client is answered."""
        kind = self._kinds.get(call.api.name)
        if response is None:
            return
        if kind is not None:
            kind(call, response, self._loop.network.owner_at(call.connection.peer))
        else:
            self._count(call.api.name, getattr(response, "error_code", None))

    def log_replica_fetch(self, broker: Any, fetch: Any, answer: Any, since: float) -> None:
        """Do nothing: replication is not what a client sees."""

    def log_isr_change(self, broker: Any, before: Any, after: Any) -> None:
        """Count it."""
        self._count("AlterPartition", ErrorCode.none)

    def close(self) -> None:
        """Do nothing."""

    def _count(self, api: str, code: Any) -> str:
        name = "NONE" if not code else ErrorCode(code).name.upper()
        self.seen[api, name] = self.seen.get((api, name), 0) + 1
        return name

    def _topic(self, call: Any, topic: Any) -> str:
        if topic.name is not None:
            return str(topic.name)
        found = call.broker.cluster.controller.by_id.get(topic.topic_id)
        return "?" if found is None else str(found.name)

    def _produce(self, call: Any, response: Any, process: str) -> None:
        request = call.request
        for asked, topic in zip(request.topic_data, response.responses, strict=True):
            results = {one.index: one for one in topic.partition_responses}
            for data in asked.partition_data:
                result = results[data.index]
                error = self._count("Produce", result.error_code)
                batches = split(bytes(data.records or b"")) if data.records else []
                items = tuple(
                    Item(one.key, one.value)
                    for batch in batches
                    for one in decode(batch.payload(), batch.record_count, batch.base_offset, batch.base_timestamp)
                )
                producer = (batches[0].producer_id, batches[0].producer_epoch) if batches else _NO_PRODUCER
                self.history.produced.append(
                    Produced(
                        self._loop.now, call.client_id, process, self._topic(call, asked), data.index,
                        result.base_offset if error == "NONE" else -1, items, request.acks, error, producer,
                        request.transactional_id, self._since(call),
                    )
                )  # fmt: skip

    def _since(self, call: Any) -> float:
        """Return when a request arrived, in seconds of the run."""
        return self._loop.now - (float(call.broker.now()) - float(call.since))

    def _commit(self, call: Any, response: Any, process: str) -> None:
        request = call.request
        errors = {
            (place, one.partition_index): one.error_code
            for place, topic in enumerate(response.topics)
            for one in topic.partitions
        }
        generation = getattr(request, "generation_id_or_member_epoch", getattr(request, "generation_id", -1))
        for place, topic in enumerate(request.topics):
            for one in topic.partitions:
                error = self._count(call.api.name, errors.get((place, one.partition_index)))
                self.history.committed.append(
                    Committed(
                        self._loop.now, call.client_id, process, request.group_id, generation,
                        self._topic(call, topic), one.partition_index, one.committed_offset, error,
                        getattr(request, "transactional_id", None), self._since(call),
                        (getattr(request, "producer_id", -1), getattr(request, "producer_epoch", -1)),
                    )
                )  # fmt: skip

    def _end(self, call: Any, response: Any, process: str) -> None:
        request = call.request
        self.history.ended.append(
            Ended(
                self._loop.now, call.client_id, process, request.transactional_id,
                (request.producer_id, request.producer_epoch), request.committed,
                self._count("EndTxn", response.error_code), self._since(call),
            )
        )  # fmt: skip

    def _initialize(self, call: Any, response: Any, process: str) -> None:
        error = self._count("InitProducerId", response.error_code)
        producer = response.producer_id, response.producer_epoch
        self.history.initialized.append(
            Initialized(self._loop.now, call.client_id, process, call.request.transactional_id, producer, error)
        )

    def _member(self, call: Any, response: Any, _: str) -> None:
        request, api = call.request, call.api.name
        error = self._count(api, getattr(response, "error_code", None))
        joins = api == "JoinGroup"
        member, session = request.member_id, 0.0
        generation = response.generation_id if joins else request.generation_id
        if joins:
            member, session = response.member_id or member, request.session_timeout.total_seconds()
        self.history.memberships.append(
            Membership(
                self._loop.now, api, request.group_id, member, generation, error, self._since(call), session,
            )
        )  # fmt: skip

    def _leave(self, call: Any, response: Any, _: str) -> None:
        request = call.request
        error = self._count("LeaveGroup", getattr(response, "error_code", None))
        for member in [request.member_id] if request.member_id else [one.member_id for one in request.members]:
            self.history.memberships.append(
                Membership(self._loop.now, "LeaveGroup", request.group_id, member, -1, error, self._since(call))
            )

    def take_stock(self, kafka: Cluster) -> History:
        """Read what is there now: records, committed offsets, groups and transactions. O(all of it)."""
        history = self.history
        history.now = self._loop.now
        names = [name for name in kafka.topics() if name not in INTERNAL]
        history.partitions = {name: len(kafka.controller.topics[name].partitions) for name in names}
        history.stored = [_stored(name, one) for name in names for one in kafka.records(name)]
        history.stored_committed = [
            _stored(name, one) for name in names for one in kafka.records(name, isolation="read_committed")
        ]
        history.offsets = {
            (group.id, topic, partition): offset.offset
            for broker in kafka.brokers.values()
            if not broker.stopped
            for shard in broker.group_coordinator.loaded()
            for group in shard.all_groups()
            for (topic, partition), offset in shard.offsets.all_committed(group.id, shard.replicated)
        }
        history.groups = stock.groups(kafka)
        history.transactions = stock.transactions(kafka)
        history.replicas = stock.replicas(kafka)
        return history


def _stored(topic: str, one: Any) -> Stored:
    return Stored(topic, one.partition, one.offset, one.timestamp, Item(one.key, one.value))
