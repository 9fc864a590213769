"""One replica of a partition: its log, its high watermark, and whether it leads.

`become` is the only way in which its part changes: the controller's state, applied in order. What clients and
followers do comes in through the other methods, and after each the operations that wait on this partition are looked
at again: the partition itself is their key in its broker's purgatories.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.log.errors import InvalidProducerEpochError
from abeyant.broker.partition_state import NO_LEADER, PartitionState, Topic
from abeyant.broker.replica.remote import Remote
from abeyant.broker.replica.verification import Verifications
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.log import Appended, Batch, Log
    from abeyant.broker.replica.ports import Broker
    from abeyant.purgatory.ports import Stoppable

_SOON = 0.01  # seconds: when to propose again what the controller has refused, for it has news for us on their way


class Partition:
    """A replica. The key on which operations wait is the replica itself."""

    __slots__ = (
        "_lag_check",
        "broker",
        "epoch_start",
        "high_watermark",
        "index",
        "leads",
        "log",
        "min_isr",
        "min_isr_wanted",
        "remotes",
        "state",
        "topic",
        "topic_id",
        "verifications",
    )

    def __init__(self, broker: Broker, state: PartitionState, topic: Topic, log: Log) -> None:
        self.broker = broker
        self.topic = state.topic
        self.topic_id: uuid.UUID = state.topic_id
        self.index = state.partition
        self.log = log
        self.state = state._replace(leader=NO_LEADER, leader_epoch=-1, partition_epoch=-1)  # until `become`
        self.leads = False
        self.high_watermark = log.start_offset
        self.epoch_start = 0  # where the log ended when it began to lead
        self.remotes: dict[int, Remote] = {}  # its followers, while it leads
        self.verifications = Verifications(log)
        self.min_isr = 1
        self._lag_check: Stoppable | None = None
        self.configure(topic)

    def __repr__(self) -> str:
        return f"{self.topic}-{self.index}"

    # -- what the controller says

    def become(self, state: PartitionState) -> None:
        """Lead, or follow, as the controller says. States come in order; one that is known already changes nothing."""
        before = self.state
        if state.partition_epoch <= before.partition_epoch:
            return
        self.state = state
        if state.leader == self.broker.id:
            self._lead(before)
        else:
            self._follow()
        self._set_min_isr(self.min_isr_wanted)
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
        """The topic's settings have changed."""
        self.min_isr_wanted = topic.settings["min.insync.replicas"]
        self._set_min_isr(self.min_isr_wanted)
        self.log.reconfigure(topic.settings.log_config())

    def close(self) -> None:
        """It is no more, here: what waits on it learns so."""
        self._forget_followers()
        self.broker.fetchers.leave(self)
        self.leads = False
        self._check_all()

    def retire(self) -> None:
        """Its broker stops."""
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

    # -- what clients do

    def append(self, records: bytes, *, all_in_sync: bool, from_client: bool = True) -> Appended:
        """Append a batch as leader; `all_in_sync`: acks=all. Raises ApiError, or the log's LogError.

        `from_client` False is for the coordinators: their own records, and the ends of transactions.
        """
        if not self.leads:
            raise ApiError(ErrorCode.not_leader_or_follower)
        if all_in_sync and len(self.state.isr) < self.min_isr:
            raise ApiError(ErrorCode.not_enough_replicas)
        before = self.log.end_offset
        appended = self.log.append(records, self.state.leader_epoch, self.broker.now_ms(), from_client=from_client)
        if not appended.duplicate:
            for remote in self.remotes.values():
                if remote.end == before:
                    remote.fell_behind(before)
                if remote.session is not None:
                    remote.session.ready.add(self)
            if self._lag_check is None and self.remotes:
                self._watch_lag()
            if self.raise_high_watermark():
                self._check_all()
            else:
                self.broker.fetch_purgatory.check_and_complete(self)
        return appended

    def end_transaction(self, batch: Batch, *, newer_epoch: bool) -> Appended:
        """Append a coordinator's marker. Raises ApiError, or the log's LogError.

        `newer_epoch`: the marker's epoch has to be greater than that of the records, as it is where the epoch grows
        with every transaction: one that comes late does not end the next transaction (KIP-1228).
        """
        epoch = batch.producer_epoch
        if newer_epoch and self.log.in_transaction(batch.producer_id, epoch):
            raise InvalidProducerEpochError(
                f"Epoch of producer {batch.producer_id} is {epoch}, which is not greater than that of its transaction"
            )
        self.verifications.forget(batch.producer_id)
        return self.append(batch.data, all_in_sync=True, from_client=False)

    def delete_records(self, offset: int) -> int:
        """Move the log's start up to `offset`, -1 for the high watermark; return where that is. Raises ApiError."""
        if not self.leads:
            raise ApiError(ErrorCode.not_leader_or_follower)
        wanted = self.high_watermark if offset == -1 else offset
        if wanted < 0 or wanted > self.high_watermark:
            raise ApiError(ErrorCode.offset_out_of_range)
        if wanted > self.log.start_offset:
            self.log.advance_start(wanted, self.broker.now_ms())
            self.start_moved()
        return wanted

    def start_moved(self) -> None:
        """The log's start has moved: the followers are to hear of it."""
        for remote in self.remotes.values():
            if remote.session is not None:
                remote.session.ready.add(self)
        self.broker.fetch_purgatory.check_and_complete(self)

    @property
    def last_stable_offset(self) -> int:
        """Up to where a reader of committed data may read (exclusive)."""
        return self.log.last_stable_offset(self.high_watermark)

    @property
    def low_watermark(self) -> int:
        """The lowest start of a log among the replicas whose broker is alive."""
        alive = self.broker.cluster.controller.members
        starts = [remote.start for remote in self.remotes.values() if remote.broker in alive]
        return min(starts, default=self.log.start_offset)

    # -- what followers do

    def fetched(self, remote: Remote, offset: int, start: int, now: float) -> None:
        """A follower has all before `offset`: it may be in sync again, and the high watermark may rise."""
        end = self.log.end_offset
        low_before = remote.start
        remote.fetched(offset, start, end, now)
        if remote.broker not in self.state.isr and self._is_in_sync(remote):
            self._propose_isr((*self.state.isr, remote.broker))
        if self.raise_high_watermark():
            self._check_all()
        elif start != low_before:
            self.broker.delete_records_purgatory.check_and_complete(self)

    def raise_high_watermark(self) -> bool:
        """To the end of the in-sync replica that is least far; whether it rose. Kafka: `maybeIncrementLeaderHW`.

        It waits, too, for a replica that is about to come in sync, or that one never could while producers write; and
        it stays where it is while fewer than `min.insync.replicas` are in sync.
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
        for remote in self.remotes.values():
            if remote.session is not None:
                remote.session.ready.add(self)
        return True

    def follow_leader(self, records: Sequence[Batch] | None, high_watermark: int, start: int) -> None:
        """As follower, append what the leader has sent, and take over its marks.

        Some of it may be here: a follower that is told of a new state fetches anew from where it stands, while the
        answer to its last fetch is under way.
        """
        log = self.log
        if records and records[0].base_offset < log.end_offset:
            records = [batch for batch in records if batch.base_offset >= log.end_offset]
        if records:
            log.append_replicated(records, self.broker.now_ms())
        mark = min(high_watermark, log.end_offset)
        if mark > self.high_watermark or start > log.start_offset:
            self.high_watermark = max(mark, self.high_watermark)
            if start > log.start_offset:
                log.advance_start(start, self.broker.now_ms())
                self.high_watermark = max(self.high_watermark, start)
            self.broker.fetch_purgatory.check_and_complete(self)  # consumers may read from followers

    def truncate(self, offset: int) -> None:
        """As follower, forget what the leader does not have."""
        self.log.truncate_to(offset, self.broker.now_ms())
        self.high_watermark = min(self.high_watermark, self.log.end_offset)

    def start_over(self, offset: int) -> None:
        """As follower, forget everything, and begin where the leader's log begins."""
        self.log.truncate_fully(offset, self.broker.now_ms())
        self.high_watermark = offset

    # -- the in-sync set

    def _is_in_sync(self, remote: Remote) -> bool:
        """Whether it may come in: it has what is committed, and all that was there when this epoch began."""
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
        changed = self.broker.cluster.controller.alter_isr(before, isr)
        if changed is None:
            return
        observer = self.broker.cluster.observer
        if observer is not None:
            observer.in_sync_changed(self.broker, before, changed)
        if self.broker.id in changed.replicas:
            self.become(changed)

    def _watch_lag(self) -> None:
        """Have it looked at when the first follower that holds the high watermark up may have done so for too long.

        (Kafka looks at all partitions each half `replica.lag.time.max.ms`, so a follower is out somewhat later there.)
        """
        end = self.log.end_offset
        behind = [
            remote.last_caught_up(end)
            for remote in self.remotes.values()
            if remote.end < end and (remote.broker in self.state.isr or self._is_joining(remote, end))
        ]
        if self._lag_check is not None:
            self._lag_check.cancel()
            self._lag_check = None
        if behind:
            wait = min(behind) + self.broker.lag_max - self.broker.now()
            self._lag_check = self.broker.timer.call_later(max(wait, _SOON), self._check_lag)

    def _check_lag(self) -> None:
        """Propose an in-sync set without those that have not been at the end for too long. Kafka: `maybeShrinkIsr`."""
        self._lag_check = None
        if not self.leads:
            return
        end = self.log.end_offset
        latest = self.broker.now() - self.broker.lag_max
        out = {
            remote.broker
            for remote in self.remotes.values()
            if remote.end < end and remote.broker in self.state.isr and remote.last_caught_up(end) <= latest
        }
        if out:
            self._propose_isr(tuple(broker for broker in self.state.isr if broker not in out))
        if self.raise_high_watermark():  # it may have waited for one that was about to come in
            self._check_all()
        if self._lag_check is None:
            self._watch_lag()

    # -- odds and ends

    def _set_min_isr(self, wanted: int) -> None:
        self.min_isr = min(wanted, len(self.state.replicas))

    def _check_all(self) -> None:
        """Something has changed for whoever waits on this partition."""
        self.broker.produce_purgatory.check_and_complete(self)
        self.broker.fetch_purgatory.check_and_complete(self)
        self.broker.delete_records_purgatory.check_and_complete(self)
