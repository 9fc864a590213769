"""Read and write the state of share partitions, at their share coordinators. Kafka: `DefaultStatePersister`.

A request is repeated while coordinators move, stop or load. The changes of one share partition are written in order:
changes that arrive during a write go into the next write.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from abeyant.broker.coordinator.topics import SHARES, ensure_topic, partition_for
from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode, Message

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.shares.spans import StateBatch

_BACKOFF = 0.1  # seconds until a failed request is repeated
_AT_ONCE = 20  # attempts without a pause, for a coordinator that is just starting
_PATIENCE = 30.0  # seconds until a request is given up
_AGAIN = (
    ErrorCode.not_coordinator, ErrorCode.coordinator_not_available, ErrorCode.coordinator_load_in_progress,
)  # fmt: skip
_FENCED = (ErrorCode.fenced_leader_epoch, ErrorCode.fenced_state_epoch)
_PASSED_ON = (ErrorCode.group_id_not_found, ErrorCode.unknown_topic_or_partition)

Then = Callable[[ApiError | None], object]
"""Called once with the error, or None."""

OnResult = Callable[[ApiError | None, Any], object]
"""Called once with the error, or None, and the partition's result."""


def coordinator_key(group: str, topic_id: uuid.UUID, partition: int) -> str:
    """Return the key by which FindCoordinator finds a share partition's coordinator."""
    return f"{group}:{base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip('=')}:{partition}"


def coordinator_for(broker: Broker, group: str, topic_id: uuid.UUID, partition: int) -> int:
    """Return the id of a share partition's coordinator. Create `__share_group_state` if needed. Raises ApiError."""
    cluster = broker.cluster
    topic = ensure_topic(cluster.controller, cluster.settings, SHARES)
    key = coordinator_key(group, topic_id, partition)
    return topic.partitions[partition_for(key, len(topic.partitions))].leader


def ask_coordinator(
    broker: Broker,
    api: str,
    group: str,
    topic_id: uuid.UUID,
    row: Message,
    then: OnResult,
    deadline: float | None = None,
    attempt: int = 0,
) -> None:
    """Send a request about one share partition to its coordinator. `row` is the partition's entry in the request.

    Repeat the request while the coordinator moves, stops or loads; after 30 s, `then` gets COORDINATOR_NOT_AVAILABLE.
    """
    until = broker.now() + _PATIENCE if deadline is None else deadline

    def receive(response: Any) -> None:
        if response is not None:
            result = response.results[0].partitions[0]
            if result.error_code is ErrorCode.none:
                then(None, result)
                return
            if result.error_code not in _AGAIN:
                then(ApiError(result.error_code, result.error_message), result)
                return
        again = partial(ask_coordinator, broker, api, group, topic_id, row, then, until, attempt + 1)
        if broker.now() >= until:
            then(ApiError(ErrorCode.coordinator_not_available), None)
        elif response is not None and attempt < _AT_ONCE:
            broker.cluster.network.send(broker, again)
        else:
            broker.timer.call_later(_BACKOFF, again)

    try:
        number = coordinator_for(broker, group, topic_id, row.partition)
    except ApiError:  # there are too few brokers for the topic
        receive(None)
        return
    topic = broker.cluster.controller.by_id.get(topic_id)
    named = [] if topic is None else [(topic.name, row.partition)]
    request = Message(group_id=group, topics=[Message(topic_id=topic_id, partitions=[row])])
    broker.ask(number, api, request, named, f"broker-{broker.id}-share-persister", receive)


class Persisted(Protocol):
    """The fields of a share partition that are persisted."""

    group: str
    partition: Partition
    leader_epoch: int
    state_epoch: int
    start: int

    @property
    def delivery_complete(self) -> int:
        """Return the number of records from the start on that are never delivered again."""


class Persister:
    """The reader and writer of one share partition's stored state. Use from the loop's thread only."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._queued: list[tuple[Sequence[StateBatch], Then]] = []
        self._writing = False

    def read(self, share: Persisted, then: OnResult) -> None:
        """Read the stored state, and send this leader's epoch to the coordinator.

        Call `then` with two arguments: the error to send to clients, or None, and the coordinator's result.
        """
        row = Message(partition=share.partition.index, leader_epoch=share.leader_epoch)

        def read(error: ApiError | None, result: Any) -> None:
            then(None if error is None else _for_client(error), result)

        ask_coordinator(self._broker, "ReadShareGroupState", share.group, share.partition.topic_id, row, read)

    def write(self, share: Persisted, batches: Sequence[StateBatch], then: Then) -> None:
        """Write changed batches and the share partition's start offset. Call `then` with the error, or None."""
        self._queued.append((batches, then))
        if not self._writing:
            self._write(share)

    def _write(self, share: Persisted) -> None:
        writes, self._queued = self._queued, []
        self._writing = True
        row = Message(
            partition=share.partition.index,
            state_epoch=share.state_epoch,
            leader_epoch=share.leader_epoch,
            start_offset=share.start,
            delivery_complete_count=share.delivery_complete,
            state_batches=[
                Message(
                    first_offset=one.first,
                    last_offset=one.last,
                    delivery_state=one.state,
                    delivery_count=one.deliveries,
                )
                for batches, _ in writes
                for one in batches
            ],
        )

        def written(error: ApiError | None, _: Any) -> None:
            self._writing = False
            for _, then in writes:
                then(None if error is None else _for_client(error))
            if self._queued and not self._writing:
                self._write(share)

        ask_coordinator(self._broker, "WriteShareGroupState", share.group, share.partition.topic_id, row, written)


def _for_client(error: ApiError) -> ApiError:
    """Translate a coordinator's error into the error for a member. Kafka: `SharePartition.fetchPersisterError`."""
    if error.code in _FENCED:
        return ApiError(ErrorCode.not_leader_or_follower, error.message)
    if error.code in (*_AGAIN, *_PASSED_ON):
        return error
    return ApiError(ErrorCode.unknown_server_error, error.message)
