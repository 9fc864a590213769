"""Record the history of a run: from the brokers' responses, and at the end from the cluster's state."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from abeyant.broker.api.leading import leader_of
from abeyant.broker.checks.history import (
    Committed,
    Ended,
    Found,
    History,
    Initialized,
    Item,
    Membership,
    Produced,
    Stored,
)
from abeyant.broker.coordinator.topics import INTERNAL
from abeyant.broker.log.batch import split
from abeyant.broker.log.records import decode
from abeyant.broker.simulation import stock
from abeyant.broker.simulation.watcher import Watcher, groups, transactions
from abeyant.broker.wire.schema import ErrorCode, Message

if TYPE_CHECKING:
    from abeyant.broker.cluster import Cluster
    from abeyant.simulation import SimulationLoop

_NO_PRODUCER: Final = -1, -1
_MOST_DEEP: Final = 3  # levels of nested lists that are searched for error codes


class Recorder:
    """Records a run's history. The cluster calls it in place of its request log."""

    def __init__(self, loop: SimulationLoop, kafka: Cluster, history: History) -> None:
        self.history = history
        self._kafka = kafka
        self.seen: dict[tuple[str, str], int] = {}
        """Counts by (API, error) and by ("group", "transaction" or "replicas", change of state)."""
        self.watcher: Watcher | None = None
        self._states: dict[tuple[str, str], str] = {}
        self._loop = loop
        self._kinds = {
            "Produce": self._produce, "OffsetCommit": self._commit, "TxnOffsetCommit": self._commit,
            "EndTxn": self._end, "InitProducerId": self._initialize, "JoinGroup": self._member,
            "SyncGroup": self._member, "Heartbeat": self._member, "LeaveGroup": self._leave,
            "OffsetFetch": self._find, "ConsumerGroupHeartbeat": self._consumer,
        }  # fmt: skip

    def log_response(self, call: Any, response: Any) -> None:
        """Record a response to a client: its effect in the history, and its error codes in `seen`."""
        if response is None:
            return
        kind, process = self._kinds.get(call.api.name), self._loop.network.owner_at(call.connection.peer)
        if kind is not None:
            kind(call, response, process)
        errors = [_name_of(code) for code in _codes(response)]
        if kind is None:
            for error in errors:
                self._count(call.api.name, error)
        if call.api.name != "Fetch":  # every other response may come with a step of a group or a transaction
            self._follow_states()
        if self.watcher is not None:
            self.watcher.responded(call, errors, process)

    def log_replica_fetch(self, broker: Any, fetch: Any, answer: Any, since: float) -> None:
        """Update the watcher, if there is one. Clients do not see replication, so the history omits it."""
        if self.watcher is not None:
            self.watcher.look()

    def log_isr_change(self, broker: Any, before: Any, after: Any) -> None:
        """Count that a partition has one in-sync replica fewer, or has it again."""
        self._count("replicas", "one falls out of sync" if len(after.isr) < len(before.isr) else "one is in sync again")

    def close(self) -> None:
        """Do nothing: unlike a request log, a recorder has no file to close."""

    def _count(self, kind: str, event: str) -> None:
        self.seen[kind, event] = self.seen.get((kind, event), 0) + 1

    def _follow_states(self) -> None:
        """Count each change of a group's or a transaction's state."""
        states = [("group", group.id, group.state.value) for _, group in groups(self._kafka)]
        states += [
            ("transaction", transaction.id, transaction.now.state.shown) for _, transaction in transactions(self._kafka)
        ]
        for kind, name, state in states:
            before = self._states.get((kind, name), "new")
            if before != state:
                self._states[kind, name] = state
                self._count(kind, f"{before} to {state}")

    def _count_error(self, api: str, code: Any) -> str:
        """Count an error, and return Kafka's name for it."""
        name = _name_of(code)
        self._count(api, name)
        return name

    def _topic(self, call: Any, topic: Any) -> str:
        if getattr(topic, "name", None) is not None:
            return str(topic.name)
        entry = call.broker.cluster.controller.by_id.get(topic.topic_id)
        return "?" if entry is None else str(entry.name)

    def _produce(self, call: Any, response: Any, process: str) -> None:
        request = call.request
        alone = sum(len(topic.partition_data) for topic in request.topic_data) == 1
        for topic_data, topic in zip(request.topic_data, response.responses, strict=True):
            results = {partition.index: partition for partition in topic.partition_responses}
            for data in topic_data.partition_data:
                result = results[data.index]
                error = self._count_error("Produce", result.error_code)
                batches = split(bytes(data.records or b"")) if data.records else []
                items = tuple(
                    Item(record.key, record.value)
                    for batch in batches
                    for record in decode(batch.payload(), batch.record_count, batch.base_offset, batch.base_timestamp)
                )
                producer = (batches[0].producer_id, batches[0].producer_epoch) if batches else _NO_PRODUCER
                self.history.produced.append(
                    Produced(
                        self._loop.now, call.client_id, process, self._topic(call, topic_data), data.index,
                        result.base_offset if error == "NONE" else -1, items, request.acks, error, producer,
                        request.transactional_id, self._since(call),
                        self._in_sync(call, topic_data, data.index) if alone else None,
                    )
                )  # fmt: skip

    def _in_sync(self, call: Any, topic: Any, partition: int) -> tuple[int, int] | None:
        """Return the number of in-sync replicas that the leader knows, and the number that acks=all needs."""
        name = self._topic(call, topic)
        replica = call.broker.partitions.get((name, partition))
        if replica is None:
            return None
        needed = self._kafka.controller.topics[name].settings.value("min.insync.replicas", call.broker.id)
        return len(replica.state.isr), min(needed, len(replica.state.replicas))

    def _since(self, call: Any) -> float:
        """Return when a request arrived, in seconds of the run."""
        return self._loop.now - (float(call.broker.now()) - float(call.since))

    def _commit(self, call: Any, response: Any, process: str) -> None:
        request = call.request
        errors = {
            (place, partition.partition_index): partition.error_code
            for place, topic in enumerate(response.topics)
            for partition in topic.partitions
        }
        generation = getattr(request, "generation_id_or_member_epoch", getattr(request, "generation_id", -1))
        for place, topic in enumerate(request.topics):
            for partition in topic.partitions:
                error = self._count_error(call.api.name, errors.get((place, partition.partition_index)))
                self.history.committed.append(
                    Committed(
                        self._loop.now, call.client_id, process, request.group_id, generation,
                        self._topic(call, topic), partition.partition_index, partition.committed_offset, error,
                        getattr(request, "transactional_id", None), self._since(call),
                        (getattr(request, "producer_id", -1), getattr(request, "producer_epoch", -1)),
                        request.member_id or "",
                    )
                )  # fmt: skip

    def _find(self, call: Any, response: Any, _: str) -> None:
        request = call.request
        for result in getattr(response, "groups", None) or [response]:
            error = self._count_error("OffsetFetch", getattr(result, "error_code", None))
            group = getattr(result, "group_id", None) or request.group_id
            for topic in result.topics if error == "NONE" else ():
                for partition in topic.partitions:
                    if not partition.error_code:
                        place = self._topic(call, topic), partition.partition_index
                        offset = partition.committed_offset
                        self.history.found.append(Found(self._loop.now, group, *place, offset, self._since(call)))

    def _end(self, call: Any, response: Any, process: str) -> None:
        request = call.request
        self.history.ended.append(
            Ended(
                self._loop.now, call.client_id, process, request.transactional_id,
                (request.producer_id, request.producer_epoch), request.committed,
                self._count_error("EndTxn", response.error_code), self._since(call),
            )
        )  # fmt: skip

    def _initialize(self, call: Any, response: Any, process: str) -> None:
        error = self._count_error("InitProducerId", response.error_code)
        producer = response.producer_id, response.producer_epoch
        self.history.initialized.append(
            Initialized(self._loop.now, call.client_id, process, call.request.transactional_id, producer, error)
        )

    def _member(self, call: Any, response: Any, _: str) -> None:
        request, api = call.request, call.api.name
        error = self._count_error(api, getattr(response, "error_code", None))
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
        error = self._count_error("LeaveGroup", getattr(response, "error_code", None))
        for member in [request.member_id] if request.member_id else [entry.member_id for entry in request.members]:
            self.history.memberships.append(
                Membership(self._loop.now, "LeaveGroup", request.group_id, member, -1, error, self._since(call))
            )

    def _consumer(self, call: Any, response: Any, _: str) -> None:
        request = call.request
        error = self._count_error("ConsumerGroupHeartbeat", response.error_code)
        assignment = response.assignment if error == "NONE" else None
        assigned = (
            None
            if assignment is None
            else frozenset(
                (self._topic(call, topic), partition)
                for topic in assignment.topic_partitions
                for partition in topic.partitions
            )
        )
        member = (response.member_id if error == "NONE" else None) or request.member_id
        epoch = response.member_epoch if error == "NONE" else request.member_epoch
        self.history.memberships.append(
            Membership(
                self._loop.now, "ConsumerGroupHeartbeat", request.group_id, member, epoch, error, self._since(call),
                assigned=assigned,
            )
        )  # fmt: skip

    def take_stock(self, kafka: Cluster) -> History:
        """Read the cluster's current records, committed offsets, groups, transactions and replicas into the history.

        Return the history. O(records, offsets, members and batches).
        """
        history = self.history
        history.now = self._loop.now
        names = [name for name in kafka.topics() if name not in INTERNAL]
        history.partitions = {name: len(kafka.controller.topics[name].partitions) for name in names}
        counts = history.partitions.items()
        places = [
            (name, index)
            for name, count in counts
            for index in range(count)
            if leader_of(kafka, name, index) is not None
        ]
        history.stored = [_stored(name, row) for name, index in places for row in kafka.records(name, index)]
        history.stored_committed = [
            _stored(name, row)
            for name, index in places
            for row in kafka.records(name, index, isolation="read_committed")
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


def _stored(topic: str, record: Any) -> Stored:
    return Stored(topic, record.partition, record.offset, record.timestamp, Item(record.key, record.value))


def _name_of(code: Any) -> str:
    return "NONE" if not code else str(ErrorCode(code).name).upper()


def _codes(part: Message, deep: int = 0) -> Iterator[Any]:
    """Yield the error codes of a response: its top-level code, and the codes of its topics, partitions or groups."""
    fields = vars(part)
    if deep == 0 or "error_code" in fields:
        yield fields.get("error_code")
    if deep < _MOST_DEEP:
        for value in fields.values():
            if isinstance(value, list | tuple) and value and isinstance(value[0], Message):
                for message in value:
                    yield from _codes(message, deep + 1)
