"""A broker's shards: one for each partition of the coordinator's topic that the broker leads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from abeyant.broker.coordinator.shard import Shard
from abeyant.broker.coordinator.topics import InternalTopic, partition_for
from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker
    from abeyant.broker.replica.partition import Partition

ShardT = TypeVar("ShardT", bound=Shard)


class Coordinator(Generic[ShardT]):
    """A broker's shards of one internal topic, by partition. Use from the loop's thread only."""

    def __init__(self, broker: Broker, topic: InternalTopic, make: Callable[[Broker, Partition], ShardT]) -> None:
        """Start without shards. `make` creates the shard of a partition that this broker begins to lead."""
        self.topic = topic
        self.shards: dict[int, ShardT] = {}
        self._broker = broker
        self._make = make

    def update(self, partition: Partition) -> None:
        """Load a partition's shard if this broker leads the partition now, else drop the shard.

        A shard survives a new leader epoch of the same leader, as no other broker has written meanwhile.
        """
        shard = self.shards.get(partition.index)
        if partition.leads:
            if shard is None:
                shard = self.shards[partition.index] = self._make(self._broker, partition)
                self._broker.cluster.network.send(self._broker, shard.load)
        elif shard is not None:
            del self.shards[partition.index]
            shard.end()

    def shard(self, key: str) -> ShardT:
        """Return the shard of a group, a transactional id or a share partition.

        Raises ApiError: NOT_COORDINATOR if this broker lacks the shard, COORDINATOR_LOAD_IN_PROGRESS while it loads.
        """
        topic = self._broker.cluster.controller.topics.get(self.topic.name)
        shard = None if topic is None else self.shards.get(partition_for(key, len(topic.partitions)))
        if shard is None:
            raise ApiError(ErrorCode.not_coordinator)
        if shard.loading:
            raise ApiError(ErrorCode.coordinator_load_in_progress)
        return shard

    def loaded(self) -> list[ShardT]:
        """Return the loaded shards, in partition order."""
        return [shard for _, shard in sorted(self.shards.items()) if not shard.loading]

    def current(self) -> list[ShardT]:
        """Return the loaded shards whose partitions this broker leads according to the controller, in partition order.

        Leave out shards that another broker took over while this one was paused, and that are not dropped yet.
        """
        topic = self._broker.cluster.controller.topics.get(self.topic.name)
        led = set() if topic is None else {one.partition for one in topic.partitions if one.leader == self._broker.id}
        return [shard for shard in self.loaded() if shard.partition.index in led]
