"""A follower's fetch loop: fetch from a leader, append the records, fetch again.

There is one `Fetcher` for each leader that this broker follows, with one fetch in flight for all partitions. In Kafka
the loop is a thread; here each response triggers the next fetch. A fetch carries the follower's log end offsets to the
leader, which then advances the high watermark.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import follower_name
from abeyant.broker.log import LogError
from abeyant.broker.replica.messages import Key, PartitionResponse, Position, ReplicaFetch, ReplicaResponse
from abeyant.broker.wire.schema import ErrorCode
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.replica.ports import Broker

_numbers = count(1)  # session numbers, unique over all brokers, to recognise late responses


class Fetchers:
    """All fetchers of a broker, one per leader."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._by_leader: dict[int, Fetcher] = {}
        self._following: dict[Partition, Fetcher] = {}

    def follow(self, partition: Partition) -> None:
        """Start fetching a partition from its leader."""
        leader = partition.state.leader
        fetcher = self._following.get(partition)
        if fetcher is not None and fetcher.leader != leader:
            fetcher.forget(partition)
        fetcher = self._by_leader.get(leader)
        if fetcher is None:
            fetcher = self._by_leader[leader] = Fetcher(self._broker, leader)
        self._following[partition] = fetcher
        fetcher.add(partition)

    def leave(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        fetcher = self._following.pop(partition, None)
        if fetcher is not None:
            fetcher.forget(partition)

    def waiting_replica(self, leader: int, number: int, key: Key) -> Partition | None:
        """Return the replica of `key` if its fetcher only waits for a response in session `number`; else None."""
        one = self._by_leader.get(leader)
        if one is None or number != one._number or one._changed or one._forgotten or one._scheduled:
            return None
        return one._partitions.get(key)

    def receive(self, response: ReplicaResponse) -> None:
        """Append the records in a leader's response, and fetch again."""
        fetcher = self._by_leader.get(response.leader)
        if fetcher is not None:
            fetcher.receive(response)

    def failed(self, leader: int, number: int) -> None:
        """Start a new session with the leader after the backoff, because the fetch of session `number` was lost."""
        fetcher = self._by_leader.get(leader)
        if fetcher is not None:
            fetcher.failed(number)


class Fetcher:
    """The fetch loop for all partitions that this broker follows on one leader."""

    def __init__(self, broker: Broker, leader: int) -> None:
        self._broker = broker
        self.leader = leader
        self._number = next(_numbers)
        self._partitions: dict[Key, Partition] = {}
        self._changed: dict[Key, Partition] = {}  # the next fetch includes their positions
        self._forgotten: list[Key] = []
        self._caught_up: set[Key] = set()  # throttled partitions that have caught up
        self._scheduled = False

    def add(self, partition: Partition) -> None:
        """Start fetching a partition, or continue with it in a new leader epoch."""
        self._partitions[partition.key] = self._changed[partition.key] = partition
        self._fetch_soon()

    def forget(self, partition: Partition) -> None:
        """Stop fetching a partition."""
        if self._partitions.pop(partition.key, None) is not None:
            self._changed.pop(partition.key, None)
            self._caught_up.discard(partition.key)
            self._forgotten.append(partition.key)

    def begin(self) -> None:
        """Start a new session, whose first fetch has the positions of all partitions."""
        self._number = next(_numbers)
        self._changed = dict(self._partitions)
        self._forgotten.clear()
        self._fetch_soon()

    def failed(self, number: int) -> None:
        """Start a new session after the backoff, because the fetch of session `number` was lost."""
        if number == self._number:
            self._broker.timer.call_later(self._broker.replica_fetch_backoff, self._begin_unless_new, number)

    def receive(self, response: ReplicaResponse) -> None:
        """Append the records in the leader's response, and fetch again."""
        if response.number != self._number:
            return
        for one in response.partitions:
            partition = self._partitions.get((one.topic, one.partition))
            if partition is None or partition.state.leader_epoch != one.leader_epoch:
                continue
            try:
                moved = self._apply(partition, one)
            except LogError as error:
                logger("broker").error("broker %d cannot append to %r: %s", self._broker.id, partition, error)
                moved = self._retry_later(partition)
            if moved:
                self._changed[partition.key] = partition
        self._fetch()

    # -- inside

    def _apply(self, partition: Partition, response: PartitionResponse) -> bool:
        """Apply the response for one partition. Return whether its position changed."""
        if response.error is ErrorCode.offset_out_of_range:
            if response.end < partition.log.end_offset:
                partition.truncate(response.end)
            else:
                partition.start_over(response.start)
            return True
        if response.error is not None:
            return self._retry_later(partition)
        if response.truncate_to >= 0:
            self._truncate(partition, response.end, response.truncate_to)
            return True
        before = partition.log.end_offset, partition.log.start_offset
        partition.follow_leader(response.records, response.high_watermark, response.start)
        if partition.follower_throttled:
            self._broker.follower_throttle.record(sum(batch.size for batch in response.records or ()))
            caught_up = partition.log.end_offset >= response.high_watermark
            (self._caught_up.add if caught_up else self._caught_up.discard)(partition.key)
        return before != (partition.log.end_offset, partition.log.start_offset)

    def _truncate(self, partition: Partition, epoch: int, end: int) -> None:
        """Truncate the log to where it diverges from the leader's: the end of the last common epoch (KIP-595)."""
        log = partition.log
        own_epoch, own_end = log.epoch_end(epoch)
        if own_epoch != epoch or own_end == -1:
            own_end = max(own_end, log.start_offset) if own_epoch != -1 else end
        partition.truncate(min(end, own_end, log.end_offset))

    def _retry_later(self, partition: Partition) -> bool:
        """Fetch the partition again after the backoff, unless its state changes earlier. Return False."""
        self._broker.timer.call_later(
            self._broker.replica_fetch_backoff, self._retry, partition, partition.state.partition_epoch
        )
        return False

    def _retry(self, partition: Partition, epoch: int) -> None:
        if partition.state.partition_epoch == epoch and self._partitions.get(partition.key) is partition:
            self._changed[partition.key] = partition
            self._fetch_soon()

    def _begin_unless_new(self, number: int) -> None:
        if number == self._number:
            self.begin()

    def _fetch_soon(self) -> None:
        """Fetch after the controller's pending messages are delivered, so that one fetch covers them all."""
        if not self._scheduled:
            self._scheduled = True
            self._broker.cluster.network.send(self._broker, self._fetch)

    def _fetch(self) -> None:
        self._scheduled = False
        if not self._partitions:
            self._number = next(_numbers)  # a response in flight does not belong to the next session
            self._forgotten.clear()
            return
        positions = [_position(one) for one in self._changed.values() if not self._holds_back(one)]
        self._changed.clear()
        forgotten, self._forgotten = self._forgotten, []
        fetch = ReplicaFetch(self._broker.id, self._number, positions, forgotten)
        self._broker.ask_leader(self.leader, fetch)

    def _holds_back(self, partition: Partition) -> bool:
        """Return whether to leave a lagging, throttled replica out of this fetch. If so, schedule its next fetch."""
        if not partition.follower_throttled or partition.key in self._caught_up:
            return False
        throttle = self._broker.follower_throttle
        seconds = throttle.excess()
        if not seconds:
            return False

        def again() -> None:
            if self._partitions.get(partition.key) is partition:
                self._changed[partition.key] = partition
                self._fetch_soon()

        self._forgotten.append(partition.key)
        throttle.hold(partition.key, follower_name(self._broker.id), seconds, again)
        return True


def _position(partition: Partition) -> Position:
    log = partition.log
    epoch = log.epochs.latest if log.end_offset > 0 else None
    return Position(
        partition.topic, partition.index, partition.state.leader_epoch, log.end_offset,
        -1 if epoch is None else epoch, log.start_offset,
    )  # fmt: skip
