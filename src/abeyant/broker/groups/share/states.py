"""Initialize, read and delete the states of share partitions at the share coordinators, for the group coordinator.

`__consumer_offsets` records which partitions have a state. A record is written before and after each initialization and
deletion, so that the next coordinator of the group knows what was begun.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from abeyant.broker.coordinator.shard import Entry, ignore
from abeyant.broker.errors import ApiError
from abeyant.broker.groups.share import records
from abeyant.broker.groups.share.group import Partitions, StateTopics
from abeyant.broker.shares.persister import ask_coordinator
from abeyant.broker.wire.schema import ErrorCode, Message

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.groups.consumer.protocol import Write

Result = tuple[ApiError | None, Any]
Results = dict[tuple[uuid.UUID, int], Result]
_NOTHING = StateTopics()


class ShareStates:
    """The states of the share partitions of one shard's groups. Use from the loop's thread only."""

    def __init__(self, broker: Broker, write: Write) -> None:
        """`write` writes and replays records."""
        self._broker = broker
        self._write = write
        self._topics: dict[str, StateTopics] = {}

    def of(self, group_id: str) -> StateTopics:
        """Return the partitions whose state a group has initialized, or is initializing or deleting."""
        return self._topics.get(group_id, _NOTHING)

    def replay(self, group_id: str, topics: StateTopics | None) -> None:
        """Apply a record of a group's states, or a tombstone (None)."""
        if topics is None:
            self._topics.pop(group_id, None)
        else:
            self._topics[group_id] = topics

    def clear(self) -> None:
        """Remove all groups' states from memory, as another broker coordinates these groups now."""
        self._topics.clear()

    def resume(self) -> None:
        """Finish the initialization of states that the previous coordinator had begun."""
        for group_id, topics in list(self._topics.items()):
            if topics.initializing:
                self.initialize(group_id, -1, topics.initializing)

    def begin(self, group_id: str, new: Partitions) -> Entry:
        """Return the record that lists the states of these partitions as initializing."""
        return records.states(group_id, self.of(group_id).add_initializing(new))

    def initialize(
        self,
        group_id: str,
        epoch: int,
        new: Partitions,
        offsets: Mapping[tuple[uuid.UUID, int], int] | None = None,
        then: Callable[[Results], object] = ignore,  # type: ignore[assignment]
    ) -> None:
        """Initialize states to start at `offsets`, by default as the group's settings say. `then` gets the results."""

        def row(key: tuple[uuid.UUID, int]) -> Message:
            start = -1 if offsets is None else offsets[key]
            return Message(partition=key[1], state_epoch=epoch, start_offset=start)

        def made(results: Results) -> None:
            done, failed = _split(new, results)
            topics = self.of(group_id)
            if done:
                topics = topics.finish_initializing(done, failed=False)
            if failed:
                topics = topics.finish_initializing(failed, failed=True)
            self._write([records.states(group_id, topics)], lambda _: then(results))

        self._request_each("InitializeShareGroupState", group_id, new, row, made)

    def delete(self, group_id: str, partitions: Partitions, then: Callable[[Results], object]) -> None:
        """Delete the states of some topics. Call `then` with the results."""

        def deleted(results: Results) -> None:
            done = _split(partitions, results)[0]
            self._write(
                [records.states(group_id, self.of(group_id).without(done, deleting=False))], lambda _: then(results)
            )

        def begun(error: ErrorCode) -> None:
            if error is ErrorCode.none:
                self._request_each(
                    "DeleteShareGroupState", group_id, partitions, lambda key: Message(partition=key[1]), deleted
                )
            else:
                then(dict.fromkeys(_keys(partitions), (ApiError(error), None)))

        self._write([records.states(group_id, self.of(group_id).without(partitions, deleting=True))], begun)

    def read(self, group_id: str, partitions: Partitions, then: Callable[[Results], object]) -> None:
        """Read the summaries of states. Call `then` with the results."""
        self._request_each(
            "ReadShareGroupStateSummary",
            group_id,
            partitions,
            lambda key: Message(partition=key[1], leader_epoch=-1),
            then,
        )

    def _request_each(
        self,
        api: str,
        group_id: str,
        partitions: Partitions,
        row: Callable[[tuple[uuid.UUID, int]], Message],
        then: Callable[[Results], object],
    ) -> None:
        """Send a request for each partition, and call `then` with all results."""
        keys = _keys(partitions)
        results: Results = {}

        def receive(key: tuple[uuid.UUID, int], error: ApiError | None, result: Any) -> None:
            results[key] = error, result
            if len(results) == len(keys):
                then(results)

        if not keys:
            then(results)
        for key in keys:
            ask_coordinator(self._broker, api, group_id, key[0], row(key), partial(receive, key))

    def forget_topic(self, topic_id: uuid.UUID) -> None:
        """Remove a deleted topic from the groups' records; the share coordinators delete its states."""
        for group_id, topics in list(self._topics.items()):
            if any(topic_id in part for part in topics):
                self._write([records.states(group_id, topics.without({topic_id: None}, deleting=False))], ignore)


def _keys(partitions: Partitions) -> list[tuple[uuid.UUID, int]]:
    return [(topic, index) for topic, (_, indexes) in partitions.items() for index in sorted(indexes)]


def _split(partitions: Partitions, results: Results) -> tuple[Partitions, Partitions]:
    """Return the partitions whose result has no error, and the partitions whose result has an error."""
    good: dict[uuid.UUID, tuple[str, frozenset[int]]] = {}
    bad: dict[uuid.UUID, tuple[str, frozenset[int]]] = {}
    for topic, (name, indexes) in partitions.items():
        failed = frozenset(index for index in indexes if results[topic, index][0] is not None)
        if indexes - failed:
            good[topic] = (name, indexes - failed)
        if failed:
            bad[topic] = (name, failed)
    return good, bad
