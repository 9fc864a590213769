"""Serve a follower's fetches as leader: one session for each broker that follows this one.

A follower has one fetch in flight for all partitions that it follows on this broker. The fetch lists only partitions
whose position changed. `ready` is the set of partitions with something new for the follower, updated as logs grow and
high watermarks advance. So a waiting fetch reads no log (law K3): it completes when `ready` is not empty.

Most appends find every follower's fetch waiting, with no message in flight and no fault active. Then nothing can come
between the response, the follower's append and its next fetch, and `deliver` does all three without a message: five
calls for each follower, in place of eighty. The waiting fetch then counts as the follower's next fetch.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from abeyant.broker.delayed.operation import BrokerOperation, Waiting, follower_name
from abeyant.broker.errors import ApiError
from abeyant.broker.log import Batch, LogError
from abeyant.broker.replica.messages import Key, PartitionResponse, Position, ReplicaFetch, ReplicaResponse
from abeyant.broker.replica.remote import UNKNOWN, Remote
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.replica.partition import Partition
    from abeyant.broker.replica.ports import Broker


class Session:
    """The leader's side of a follower's fetch session."""

    def __init__(self, broker: Broker, follower: int) -> None:
        self._broker = broker
        self.follower = follower
        self.client_id = follower_name(follower)
        self._number = 0
        self._partitions: dict[Partition, None] = {}  # in the order in which they were added
        self.errors: list[PartitionResponse] = []  # for the next response
        self._operation: DelayedReplicaFetch | None = None
        self._fetch: ReplicaFetch | None = None  # the last one
        self.ready: dict[Partition, None] = {}  # in the order in which they became ready
        self.fetched_at = 0.0  # when its last fetch arrived, in seconds

    def fetch(self, fetch: ReplicaFetch) -> None:
        """Record the follower's positions, then wait until there is something new for the follower."""
        now = self._broker.now()
        if self._operation is not None:  # it follows another partition now, and fetches anew
            self._broker.fetch_purgatory.cancel(self._operation)
            self._operation = None
        if fetch.number != self._number:
            self._begin(fetch.number)
        for topic, index in fetch.forgotten:
            partition = self._broker.partitions.get((topic, index))
            if partition is not None and self.follower in partition.remotes:
                partition.remotes[self.follower].session = None
                self.leave(partition)
        self.fetched_at = now
        self._fetch = fetch
        for position in fetch.positions:
            self._add_position(position, now)
        self._wait(self._broker.replica_fetch_wait)

    def deliver(self, partition: Partition, remote: Remote, batch: Batch, now: float, now_ms: int) -> Partition | None:
        """Append the leader's newest batch to the follower's replica, and count that as the follower's next fetch.

        Return the replica. If messages are needed, change nothing and return None: the caller then adds the partition
        to `ready`.
        """
        if self._operation is None or self.ready or self.errors or partition.leader_throttled:
            return None
        broker = self._broker
        follower = broker.cluster.brokers.get(self.follower)
        if follower is None or follower.paused or follower.stopped:
            return None
        replica: Partition | None = follower.fetchers.waiting_replica(broker.id, self._number, partition.key)
        if replica is None or replica.state.leader_epoch != partition.state.leader_epoch or replica.follower_throttled:
            return None
        log = replica.log
        if log.end_offset != batch.base_offset or log.start_offset != remote.start:
            return None
        try:
            log.append_next(batch, now_ms)
        except LogError:
            return None  # its fetcher will meet the same error, log it and try again later
        self.fetched_at = now
        if broker.cluster.clock.held:  # where every deadline is exact
            broker.fetch_purgatory.cancel(self._operation)
            self._wait(broker.replica_fetch_wait)
        return replica

    def leave(self, partition: Partition) -> None:
        """Remove a partition that the follower no longer follows on this broker."""
        self._partitions.pop(partition, None)
        self.ready.pop(partition, None)

    @property
    def fetch_wait(self) -> float:
        """Return the maximum wait of a fetch in seconds: `replica.fetch.wait.max.ms`."""
        return self._broker.replica_fetch_wait

    def partition_keys(self) -> list[Key]:
        """Return the partitions that the follower follows on this broker."""
        return [partition.key for partition in self._partitions]

    @property
    def has_news(self) -> bool:
        """Return whether the next response has something new for the follower: records, offsets or errors."""
        return bool(self.ready or self.errors)

    def end_wait(self, since: float) -> None:
        """Respond to the fetch that began to wait at `since`.

        If `deliver` has renewed the fetch and there is nothing to send, wait for the rest of its time instead.
        """
        waited = self.fetched_at - since
        if waited > 0 and not self.has_news:
            self._wait(waited)
        else:
            self._respond_soon()

    def _wait(self, seconds: float) -> None:
        self._operation = operation = DelayedReplicaFetch(self, seconds, self.fetched_at)
        self._broker.fetch_purgatory.try_complete_else_watch(operation, [*self._partitions] or [self])

    def _respond_soon(self) -> None:
        """Send the response after the pending messages are handled, so that one response covers them all."""
        self._operation = None
        self._broker.cluster.network.send(self._broker, self._answer, self._number)

    # -- inside

    def _begin(self, number: int) -> None:
        self._number = number
        for partition in self._partitions:
            remote = partition.remotes.get(self.follower)
            if remote is not None:
                remote.session = None
        self._partitions.clear()
        self.ready.clear()
        self.errors.clear()

    def _add_position(self, position: Position, now: float) -> None:
        """Record the position of one partition, after the checks that Kafka's leader makes."""
        partition = self._broker.partitions.get((position.topic, position.partition))
        try:
            if partition is None:
                raise ApiError(ErrorCode.not_leader_or_follower)
            partition.check_leader(position.leader_epoch)
            remote = partition.remotes.get(self.follower)
            if remote is None:
                raise ApiError(ErrorCode.unknown_topic_or_partition)
        except ApiError as error:
            self.errors.append(PartitionResponse(*position[:3], error.code))
            return
        if remote.session is not self:
            self._partitions[partition] = None
            remote.session = self
            remote.sent_high_watermark = remote.sent_start = UNKNOWN
        self._follow(partition, remote, position, now)

    def _follow(self, partition: Partition, remote: Remote, position: Position, now: float) -> None:
        log = partition.log
        if position.last_epoch >= 0:
            epoch, end = log.epoch_end(position.last_epoch)
            if epoch == -1 or end == -1 or position.offset < log.start_offset:
                self._out_of_range(partition, position)
                return
            if epoch < position.last_epoch or end < position.offset:
                self.errors.append(PartitionResponse(*position[:3], None, truncate_to=end, end=epoch))
                return
        elif not log.start_offset <= position.offset <= log.end_offset:
            self._out_of_range(partition, position)
            return
        partition.record_fetch(remote, position.offset, position.start, now)
        if (
            remote.end < log.end_offset
            or remote.sent_high_watermark < partition.high_watermark
            or remote.sent_start < log.start_offset
        ):
            self.ready[partition] = None

    def _out_of_range(self, partition: Partition, position: Position) -> None:
        error, log = ErrorCode.offset_out_of_range, partition.log
        self.errors.append(PartitionResponse(*position[:3], error, start=log.start_offset, end=log.end_offset))

    def _answer(self, number: int) -> None:
        if number != self._number or self._operation is not None:
            return  # the follower has started a new session meanwhile
        responses, self.errors = self.errors, []
        remaining = self._broker.replica_fetch_bytes
        ready, self.ready = self.ready, {}
        for partition in ready:
            remote = partition.remotes.get(self.follower)
            if remote is None or remote.session is not self or not partition.leads:
                continue
            log = partition.log
            epoch = partition.state.leader_epoch
            records = None
            if self._holds_back(partition, remote):
                if remote.sent_high_watermark >= partition.high_watermark and remote.sent_start >= log.start_offset:
                    continue
            elif remote.end < log.end_offset:
                if remaining <= 0:
                    self.ready[partition] = None
                    continue
                try:
                    limit = min(remaining, self._broker.replica_partition_bytes)
                    records = log.read_batches(remote.end, limit, log.end_offset, min_one=True)
                except LogError as error:
                    responses.append(PartitionResponse(*partition.key, epoch, ErrorCode(error.code)))
                    continue
                size = sum(batch.size for batch in records)
                remaining -= size
                if partition.leader_throttled:
                    self._broker.leader_throttle.record(size)
            mark = remote.sent_high_watermark = partition.high_watermark
            start = remote.sent_start = log.start_offset
            responses.append(PartitionResponse(*partition.key, epoch, None, records, mark, start, log.end_offset))
        response = ReplicaResponse(self._broker.id, number, responses)
        if self._fetch is not None:
            self._broker.answered["ReplicaFetch"] += 1
        observer = self._broker.cluster._observer
        if observer is not None and self._fetch is not None:
            observer.log_replica_fetch(self._broker, self._fetch, response, self.fetched_at)
        self._broker.answer_follower(self.follower, response)

    def _holds_back(self, partition: Partition, remote: Remote) -> bool:
        """Return whether to withhold records from a throttled, lagging replica. If so, schedule the next attempt."""
        if not partition.leader_throttled or self.follower in partition.state.isr:
            return False
        seconds = self._broker.leader_throttle.excess()
        if not seconds or remote.end >= partition.log.end_offset:
            return False

        def again() -> None:
            if remote.session is self:
                self.ready[partition] = None
                self._broker.fetch_purgatory.check_and_complete(partition)

        self._broker.leader_throttle.hold(partition.key, self.client_id, seconds, again)
        return True


class DelayedReplicaFetch(BrokerOperation):
    """A follower's fetch in the leader's Fetch purgatory, keyed by all partitions of the session."""

    __slots__ = ("_session",)

    kind = "Fetch"

    def __init__(self, session: Session, timeout: float, since: float) -> None:
        """Wait for at most `timeout` seconds: what is left of `replica.fetch.wait.max.ms`."""
        super().__init__(timeout, session.client_id, since)
        self._session = session

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions that the follower follows on this broker."""
        return self._session.partition_keys()

    def try_complete(self) -> bool:
        """Complete if a partition is in the session's `ready`, or there is an error to send. Reads no log."""
        session = self._session
        return bool(session.ready or session.errors) and self.force_complete()

    def on_complete(self) -> None:
        """Send the response, even an empty one, unless `Session.deliver` has renewed the fetch meanwhile."""
        self._session.end_wait(self.since)

    def describe(self, broker: int) -> Waiting:
        """Return the fetch's row in `Cluster.waiting`, with the times of the session's last fetch."""
        since, seconds = self._session.fetched_at, self._session.fetch_wait
        return super().describe(broker)._replace(since=since, deadline=since + seconds)
