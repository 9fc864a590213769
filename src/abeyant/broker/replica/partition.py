"""One replica of a partition: its log, its high watermark, and its followers while it is leader. Kafka: `Partition`.

Leadership changes only through `become`, which applies the controller's states in order. The other methods serve
clients and followers. Each method checks the delayed operations that it may complete: the partition is the key of
these operations in the broker's purgatories.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from abeyant.broker.clock import until_scan
from abeyant.broker.errors import ApiError
from abeyant.broker.log.errors import InvalidProducerEpochError
from abeyant.broker.partition_state import NO_LEADER, PartitionState, Topic
from abeyant.broker.replica.remote import Remote
from abeyant.broker.replica.verification import Verifications
from abeyant.broker.wire.schema import ErrorCode
from abeyant.broker.wire.single import compact_name

if TYPE_CHECKING:
    from abeyant.broker.log import Appended, Batch, Log
    from abeyant.broker.replica.ports import Broker
    from abeyant.purgatory.ports import Stoppable


_NONE: Mapping[Any, Any] = {}


class Partition:
    """This broker's replica of a partition."""

    def __init__(self, broker: Broker, state: PartitionState, topic: Topic, log: Log) -> None:
        self.broker = broker
        self.topic = state.topic
        self.topic_id: uuid.UUID = state.topic_id
        self.index = state.partition
        self.key = (self.topic, self.index)
        self.wire_name, self.wire_id = compact_name(self.topic), self.topic_id.bytes  # as responses have them
        self.internal = topic.internal
        self.log = log
        self.state = state._replace(leader=NO_LEADER, leader_epoch=-1, partition_epoch=-1)  # until `become`
        self.leads = False
        self.high_watermark = log.start_offset
        self.epoch_start = 0  # the log end offset when it began to lead
        self.remotes: dict[int, Remote] = {}  # its followers, while it leads
        self.verifications = Verifications(log)
        self.min_isr = 1
        self.watchers: dict[object, Callable[[], object]] = {}  # called after a change of leader, offsets or log start
        self._lag_check: Stoppable | None = None
        self.configure(topic)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    # -- states of the controller

    def become(self, state: PartitionState) -> None:
        """Become leader or follower as the controller's `state` says. Ignore a state that is not newer."""
        before = self.state
        if state.partition_epoch <= before.partition_epoch:
            return
        self.state = state
        if state.leader == self.broker.id:
            self._lead(before)
        else:
            self._follow()
        self._set_min_isr(self.min_isr_setting)
        self.raise_high_watermark()
        self._check_all()

    def _lead(self, before: PartitionState) -> None:
        state = self.state
        now = self.broker.now()
        if not self.leads or before.leader_epoch != state.leader_epoch:
            self._forget_followers()
            if not self.leads:
                self.broker.fetchers.leave(self)
            self.leads = True
            self.epoch_start = self.log.end_offset
            self.log.start_epoch(state.leader_epoch)
        for broker in state.replicas:
            if broker != self.broker.id and broker not in self.remotes:
                self.remotes[broker] = Remote(broker, now if broker in state.isr else 0.0)
        for broker in [broker for broker in self.remotes if broker not in state.replicas]:
            self._forget(self.remotes.pop(broker))
        self._watch_lag()

    def _follow(self) -> None:
        self._forget_followers()
        self.leads = False
        self.verifications.clear()
        if self.state.leader == NO_LEADER:
            self.broker.fetchers.leave(self)
        else:
            self.broker.fetchers.follow(self)

    def configure(self, topic: Topic) -> None:
        """Apply the topic's settings to this replica and its log."""
        self.min_isr_setting = topic.settings.value("min.insync.replicas", self.broker.id)
        self._set_min_isr(self.min_isr_setting)
        self.log.config = topic.settings.log_config(self.broker.id)
        self.leader_throttled = self._is_throttled(topic, "leader")
        self.follower_throttled = self._is_throttled(topic, "follower")

    def _is_throttled(self, topic: Topic, side: str) -> bool:
        """Return whether the topic's settings throttle this replica as `side`: "leader" or "follower"."""
        name = f"{side}.replication.throttled.replicas"
        if name not in topic.settings.own:
            return False
        replicas = topic.settings[name]
        return "*" in replicas or f"{self.index}:{self.broker.id}" in replicas

    def close(self) -> None:
        """Stop replicating and check pending operations, as the replica is being removed from this broker."""
        self._forget_followers()
        self.broker.fetchers.leave(self)
        self.leads = False
        self._check_all()

    def retire(self) -> None:
        """Close the log, as the broker is stopping."""
        self._forget_followers()
        self.leads = False
        self.log.close()

    def _forget_followers(self) -> None:
        for remote in self.remotes.values():
            self._forget(remote)
        self.remotes.clear()
        if self._lag_check is not None:
            self._lag_check.cancel()
            self._lag_check = None

    def _forget(self, remote: Remote) -> None:
        if remote.session is not None:
            remote.session.leave(self)

    # -- requests of clients

    def check_leader(self, epoch: int, *, leader_only: bool = True) -> None:
        """Raise ApiError unless this replica is leader, and `epoch` is the leader epoch (KIP-320) or -1.

        Without `leader_only`, a follower passes too.
        """
        if epoch >= 0:
            if epoch < self.state.leader_epoch:
                raise ApiError(ErrorCode.fenced_leader_epoch)
            if epoch > self.state.leader_epoch:
                raise ApiError(ErrorCode.unknown_leader_epoch)
        if leader_only and not self.leads:
            raise ApiError(ErrorCode.not_leader_or_follower)

    def append(self, records: bytes, *, all_in_sync: bool, from_client: bool = True) -> Appended:
        """Append a batch as leader; `all_in_sync` means acks=all. Raises ApiError, or the log's LogError.

        `from_client=False` is for a coordinator's records and transaction markers.
        """
        if not self.leads:
            raise ApiError(ErrorCode.not_leader_or_follower)
        if all_in_sync and len(self.state.isr) < self.min_isr:
            raise ApiError(ErrorCode.not_enough_replicas)
        before = self.log.end_offset
        now_ms = self.broker.now_ms()
        appended = self.log.append(records, self.state.leader_epoch, now_ms, from_client=from_client)
        if not appended.duplicate:
            current = self._deliver(before, now_ms)
            if len(current) < len(self.remotes):
                for remote in self.remotes.values():
                    if remote.end == before:
                        remote.record_lag(before)
                    if remote.session is not None and remote not in current:
                        remote.session.ready[self] = None
                if self._lag_check is None:
                    self._watch_lag()
            if self.raise_high_watermark(current):
                self._check_all()
            else:
                self.broker.fetch_purgatory.check_and_complete(self)
        return appended

    def _deliver(self, before: int, now_ms: int) -> dict[Remote, Partition]:
        """Append the batch at offset `before` to in-sync followers that wait for it, without messages.

        Return these followers with their replicas. The other followers have to fetch the batch.
        """
        broker = self.broker
        cluster = broker.cluster
        current: dict[Remote, Partition] = {}
        if not self.remotes or cluster._gate is not None or cluster._observer is not None:
            return current
        if broker.paused or not cluster.network.idle:
            return current
        log, isr, now = self.log, self.state.isr, broker.now()
        end = log.end_offset
        (batch,) = log.read_batches(before, 0, end, min_one=True)
        for remote in self.remotes.values():
            session = remote.session
            if session is not None and remote.end == before and remote.broker in isr:
                replica = session.deliver(self, remote, batch, now, now_ms)
                if replica is not None:
                    remote.record_fetch(end, remote.start, end, now)
                    current[remote] = replica
        broker.answered["ReplicaFetch"] += len(current)
        return current

    def end_transaction(self, batch: Batch, *, newer_epoch: bool) -> Appended:
        """Append a coordinator's transaction marker. Raises ApiError, or the log's LogError.

        `newer_epoch` is for producers whose epoch grows with every transaction: the marker's epoch must then be greater
        than the open transaction's. So a late marker cannot end the next transaction (KIP-1228).
        """
        epoch = batch.producer_epoch
        if newer_epoch and self.log.producers.in_transaction(batch.producer_id, epoch):
            raise InvalidProducerEpochError(
                f"Epoch of producer {batch.producer_id} is {epoch}, not greater than the epoch of its open transaction"
            )
        self.verifications.forget(batch.producer_id)
        return self.append(batch.data, all_in_sync=True, from_client=False)

    def delete_records(self, offset: int) -> int:
        """Advance the log start to `offset` (-1: to the high watermark), and return this offset. Raises ApiError."""
        if not self.leads:
            raise ApiError(ErrorCode.not_leader_or_follower)
        target = self.high_watermark if offset == -1 else offset
        if target < 0 or target > self.high_watermark:
            raise ApiError(ErrorCode.offset_out_of_range)
        if target > self.log.start_offset:
            self.log.advance_start(target, self.broker.now_ms())
            self.start_moved()
        return target

    def start_moved(self) -> None:
        """Announce a new log start to followers, waiting fetches and watchers."""
        self._notify_followers()
        self.broker.fetch_purgatory.check_and_complete(self)
        self._call_watchers()

    @property
    def last_stable_offset(self) -> int:
        """Return the offset up to which (exclusive) read_committed consumers may read."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def low_watermark(self) -> int:
        """Return the lowest log start offset among followers on live brokers; without any, this replica's log start."""
        alive = self.broker.cluster.controller.members
        starts = [remote.start for remote in self.remotes.values() if remote.broker in alive]
        return min(starts, default=self.log.start_offset)

    # -- fetches of followers

    def record_fetch(self, remote: Remote, offset: int, start: int, now: float) -> None:
        """Record that a follower has the offsets from `start` up to `offset`.

        Then add the follower to the ISR and advance the high watermark, if possible.
        """
        end = self.log.end_offset
        low_before = remote.start
        remote.record_fetch(offset, start, end, now)
        if remote.broker not in self.state.isr and self._is_in_sync(remote):
            self._propose_isr((*self.state.isr, remote.broker))
        if self.raise_high_watermark():
            self._check_all()
        elif start != low_before:
            self.broker.delete_records_purgatory.check_and_complete(self)

    def raise_high_watermark(self, current: Mapping[Remote, Partition] = _NONE) -> bool:
        """Advance the high watermark to the lowest in-sync log end offset. Return whether it moved.

        The replicas in `current` adopt the high watermark at once, other followers by their next fetch. A follower that
        was caught up less than `replica.lag.time.max.ms` ago counts as in sync: otherwise it could never join the ISR
        while producers write. The high watermark does not move while the ISR is smaller than `min.insync.replicas`.
        Kafka: `maybeIncrementLeaderHW`.
        """
        if not self.leads or len(self.state.isr) < self.min_isr:
            return False
        isr = self.state.isr
        mark = end = self.log.end_offset
        for remote in self.remotes.values():
            if remote.end < mark and (remote.broker in isr or self._is_joining(remote, end)):
                mark = remote.end
        if mark <= self.high_watermark:
            return False
        self.high_watermark = mark
        if len(current) < len(self.remotes):
            self._notify_followers(current)
        for remote, replica in current.items():
            remote.sent_high_watermark = mark
            replica.adopt_high_watermark(mark, replica.log.start_offset)
        return True

    def follow_leader(self, records: Sequence[Batch] | None, high_watermark: int, start: int) -> None:
        """Append the leader's records, and adopt its high watermark and log start.

        Skip records that this replica already has: after a state change a follower fetches again from its log end while
        the response to its last fetch is in flight.
        """
        log = self.log
        if records and records[0].base_offset < log.end_offset:
            records = [batch for batch in records if batch.base_offset >= log.end_offset]
        if records:
            log.append_replicated(records, self.broker.now_ms())
        self.adopt_high_watermark(high_watermark, start)

    def adopt_high_watermark(self, high_watermark: int, start: int) -> None:
        """Adopt the leader's high watermark and log start."""
        log = self.log
        mark = min(high_watermark, log.end_offset)
        if mark > self.high_watermark or start > log.start_offset:
            self.high_watermark = max(mark, self.high_watermark)
            if start > log.start_offset:
                log.advance_start(start, self.broker.now_ms())
                self.high_watermark = max(self.high_watermark, start)
            self.broker.fetch_purgatory.check_and_complete(self)  # consumers may read from followers

    def truncate(self, offset: int) -> None:
        """Truncate the log to `offset`, where it diverges from the leader's log."""
        self.log.truncate_to(offset, self.broker.now_ms())
        self.high_watermark = min(self.high_watermark, self.log.end_offset)

    def start_over(self, offset: int) -> None:
        """Drop the whole log and restart it at `offset`, the leader's log start."""
        self.log.truncate_fully(offset, self.broker.now_ms())
        self.high_watermark = offset

    # -- the in-sync set

    def _is_in_sync(self, remote: Remote) -> bool:
        """Return whether a follower may join the ISR.

        Its broker must be alive, and its log must reach the high watermark and the start of this leader epoch.
        """
        return (
            remote.end >= self.high_watermark
            and remote.end >= self.epoch_start
            and remote.broker in self.broker.cluster.controller.members
        )

    def _is_joining(self, remote: Remote, end: int) -> bool:
        return (
            remote.end != -1
            and self.broker.now() - remote.last_caught_up(end) < self.broker.lag_max
            and remote.broker in self.broker.cluster.controller.members
        )

    def _propose_isr(self, isr: tuple[int, ...]) -> None:
        before = self.state
        new_state = self.broker.cluster.controller.leaders.alter_isr(before, isr)
        if new_state is None:
            return
        self.broker.answered["AlterPartition"] += 1
        observer = self.broker.cluster._observer
        if observer is not None:
            observer.log_isr_change(self.broker, before, new_state)
        if self.broker.id in new_state.replicas:
            self.become(new_state)

    def _watch_lag(self) -> None:
        """Schedule the lag check for the time of the first scan that can find a follower lagging for too long.

        As in Kafka, scans are every half of `replica.lag.time.max.ms`, counted from the broker's start.
        """
        end = self.log.end_offset
        catch_up_times = [
            remote.last_caught_up(end)
            for remote in self.remotes.values()
            if remote.end < end and (remote.broker in self.state.isr or self._is_joining(remote, end))
        ]
        if self._lag_check is not None:
            self._lag_check.cancel()
            self._lag_check = None
        if catch_up_times:
            broker = self.broker
            now_ms = broker.now_ms()
            due_ms = now_ms + int((min(catch_up_times) + broker.lag_max - broker.now()) * 1000)
            interval_ms = max(int(broker.lag_max * 1000) // 2, 1)
            delay = until_scan(broker.started_ms, interval_ms, due_ms, now_ms)
            self._lag_check = broker.timer.call_later(delay, self._check_lag)

    def _check_lag(self) -> None:
        """Remove replicas that lagged for too long from the in-sync set. Kafka: `maybeShrinkIsr`."""
        self._lag_check = None
        if not self.leads:
            return
        end = self.log.end_offset
        latest = self.broker.now() - self.broker.lag_max
        lagging = {
            remote.broker
            for remote in self.remotes.values()
            if remote.end < end and remote.broker in self.state.isr and remote.last_caught_up(end) <= latest
        }
        if lagging:
            self._propose_isr(tuple(broker for broker in self.state.isr if broker not in lagging))
        if self.raise_high_watermark():  # it may have waited for a joining replica
            self._check_all()
        if self._lag_check is None:
            self._watch_lag()

    # -- helpers

    def _notify_followers(self, exempt: Mapping[Remote, Partition] = _NONE) -> None:
        for remote in self.remotes.values():
            if remote.session is not None and remote not in exempt:
                remote.session.ready[self] = None

    def _set_min_isr(self, setting: int) -> None:
        self.min_isr = min(setting, len(self.state.replicas))

    def _check_all(self) -> None:
        """Complete this partition's pending operations that can complete, and call its watchers."""
        self.broker.produce_purgatory.check_and_complete(self)
        self.broker.fetch_purgatory.check_and_complete(self)
        self.broker.delete_records_purgatory.check_and_complete(self)
        if self.watchers:
            self._call_watchers()

    def _call_watchers(self) -> None:
        for callback in list(self.watchers.values()):
            callback()
