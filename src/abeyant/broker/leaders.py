"""Elect leaders, change in-sync sets and reassign partitions for the controller, and send the new states to brokers.

Each change of a partition makes a new `PartitionState`. The state is written to the journal, kept, and sent to the
brokers that have or had a replica.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from abeyant.broker.errors import ApiError
from abeyant.broker.network import Network, Receiver
from abeyant.broker.partition_state import NO_LEADER, PartitionState, Topic
from abeyant.broker.placement import check_replicas
from abeyant.broker.wire.schema import ErrorCode
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.clock import Clock
    from abeyant.broker.metadata_store import MetadataStore
    from abeyant.broker.settings import Settings
    from abeyant.timer import TimerTask


class Member(Receiver, Protocol):
    """A broker registered with the controller. Calls of its methods are messages, which a paused broker gets later."""

    id: int

    def apply_state(self, state: PartitionState, topic: Topic) -> None:
        """Apply the new state of a partition of which this broker has or had a replica."""

    def keep_only(self, topic_ids: frozenset[uuid.UUID]) -> None:
        """Delete the replicas of topics not in `topic_ids`: these were deleted while this broker was away."""

    def forget_topic(self, topic: Topic) -> None:
        """Delete the replicas of a deleted topic."""

    def apply_settings(self) -> None:
        """Apply the settings of brokers and of all topics, which may have changed."""

    def apply_topic_settings(self, topic: Topic) -> None:
        """Apply the settings of a topic."""


class Leaders:
    """The leaders and in-sync sets of all partitions. Use from the loop's thread only."""

    def __init__(
        self,
        topics: Mapping[str, Topic],
        by_id: Mapping[uuid.UUID, Topic],
        members: Mapping[int, Member],
        brokers: Collection[int],
        store: MetadataStore,
        network: Network,
        settings: Settings,
        clock: Clock,
    ) -> None:
        """Share `topics`, `by_id` and `members` with the controller, which changes them.

        `members` are the brokers of `brokers` that are registered and not fenced.
        """
        self._topics = topics
        self._by_id = by_id
        self._members = members
        self._brokers = brokers
        self._store = store
        self._network = network
        self._settings = settings
        self._clock = clock
        self._rebalance: TimerTask | None = None
        self._schedule_rebalance()

    @property
    def controller_id(self) -> int:
        """Return the id that responses name as the controller's: the lowest id of the live brokers."""
        return min(self._members, default=NO_LEADER)

    def close(self) -> None:
        """Cancel the timer that elects preferred leaders."""
        if self._rebalance is not None:
            self._rebalance.cancel()

    def returned(self, member: Member) -> None:
        """Send a broker that has started or returned the states of its partitions. Elect missing leaders."""
        for topic in self._topics.values():
            for state in list(topic.partitions):
                if member.id not in state.replicas:
                    continue
                new_state = (
                    state.elect(self._members, unclean=self._unclean(topic)) if state.leader == NO_LEADER else state
                )
                if not self._try_put(new_state, topic):
                    self._network.send(member, member.apply_state, state, topic)

    def left(self, broker: int) -> None:
        """Remove a broker that is stopping or fenced from the in-sync sets, and elect other leaders where it led."""
        for topic in self._topics.values():
            for state in list(topic.partitions):
                if broker in state.isr:
                    self._try_put(state.shrink(broker, self._members, unclean=self._unclean(topic)), topic)

    def elect_missing(self, topic: Topic) -> None:
        """Elect a leader for each of a topic's partitions that has none, where a replica can lead."""
        for state in list(topic.partitions):
            if state.leader == NO_LEADER:
                self._try_put(state.elect(self._members, unclean=self._unclean(topic)), topic)

    def alter_isr(self, state: PartitionState, isr: Iterable[int]) -> PartitionState | None:
        """Change a partition's in-sync set to `isr`, as its leader proposes; return the new state.

        `state` is the leader's view. Return None, and change nothing, if this view is outdated, a fenced broker would
        join, or the change cannot be stored. Kafka: AlterPartition.
        """
        topic = self._by_id.get(state.topic_id)
        if topic is None:
            return None
        current = topic.partitions[state.partition]
        if current.partition_epoch != state.partition_epoch or current.leader not in self._members:
            return None
        new_isr = set(isr)
        if any(broker not in self._members for broker in new_isr - set(current.isr)):
            return None
        ordered = tuple(broker for broker in current.replicas if broker in new_isr)
        new_state = current.change(isr=ordered).finish_reassignment(self._members, unclean=self._unclean(topic))
        try:
            self._put(new_state, topic)
        except ApiError:  # for instance a full disk; the leader will propose it again
            return None
        return new_state

    def elect_preferred(self, state: PartitionState) -> PartitionState:
        """Elect the preferred replica, the first one, as leader. Raises ApiError."""
        topic = self._topics[state.topic]
        preferred = state.replicas[0]
        if state.leader == preferred:
            raise ApiError(ErrorCode.election_not_needed, None)
        if preferred not in state.isr or preferred not in self._members:
            raise ApiError(ErrorCode.preferred_leader_not_available, "The preferred leader was not available.")
        new_state = state.change(leader=preferred)
        self._put(new_state, topic)
        return new_state

    def move_leader(self, state: PartitionState, leader: int) -> PartitionState:
        """Elect another in-sync replica, as a reassignment or a controlled shutdown does. Raises ApiError."""
        topic = self._topics[state.topic]
        if leader == state.leader:
            raise ApiError(ErrorCode.election_not_needed, None)
        if leader not in state.isr or leader not in self._members:
            raise ApiError(ErrorCode.eligible_leaders_not_available, f"Broker {leader} is not in sync, or not alive.")
        new_state = state.change(leader=leader)
        self._put(new_state, topic)
        return new_state

    def elect_unclean(self, state: PartitionState) -> PartitionState:
        """Elect any live replica of a partition without a leader, in sync or not. Raises ApiError."""
        topic = self._topics[state.topic]
        if state.leader != NO_LEADER:
            raise ApiError(ErrorCode.election_not_needed, None)
        new_state = state.elect(self._members, unclean=True)
        if new_state is state:
            raise ApiError(
                ErrorCode.eligible_leaders_not_available, "Eligible topic partition leaders are not available."
            )
        self._put(new_state, topic)
        return new_state

    def _schedule_rebalance(self) -> None:
        if self._settings["auto.leader.rebalance.enable"]:
            interval: float = self._settings["leader.imbalance.check.interval.seconds"]
            self._rebalance = self._clock.timer.call_later(interval, self._rebalance_leaders)

    def _rebalance_leaders(self) -> None:
        """Elect the preferred replica of each partition in which it is in sync again."""
        for topic in self._topics.values():
            for state in list(topic.partitions):
                preferred = state.replicas[0]
                if state.leader not in (preferred, NO_LEADER) and preferred in state.isr and preferred in self._members:
                    self._try_put(state.change(leader=preferred), topic)
        self._schedule_rebalance()

    def reassign(self, state: PartitionState, replicas: Sequence[int] | None, *, factor_may_change: bool) -> None:
        """Reassign a partition to the brokers `replicas`, or with None cancel its reassignment. Raises ApiError."""
        topic = self._topics[state.topic]
        if replicas is None:
            self._put(state.cancel_reassignment(self._members, unclean=self._unclean(topic)), topic)
            return
        check_replicas(replicas, self._brokers, None)
        if not factor_may_change and len(replicas) != len(state.original):
            raise ApiError(
                ErrorCode.invalid_replication_factor,
                f"The replication factor is changed from {len(state.original)} to {len(replicas)}",
            )
        new_state = state.reassign(replicas).finish_reassignment(self._members, unclean=self._unclean(topic))
        self._put(new_state, topic)

    def _put(self, state: PartitionState, topic: Topic) -> None:
        """Store a partition's new state and send it to its old and new brokers. Raises ApiError."""
        old_state = topic.partitions[state.partition]
        if old_state is state:
            return
        self._store.put_partition(state)
        topic.partitions[state.partition] = state
        self.send(state, topic, old_state.replicas)

    def _try_put(self, state: PartitionState, topic: Topic) -> bool:
        """Call `_put`, but log an error instead of raising it, as no client waits. Return whether the state changed."""
        if topic.partitions[state.partition] is state:
            return False
        try:
            self._put(state, topic)
        except ApiError as error:
            logger("broker").error("%s-%d: cannot store its new state: %s", state.topic, state.partition, error.message)
            return False
        return True

    def send(self, state: PartitionState, topic: Topic, also: tuple[int, ...] = ()) -> None:
        """Send a partition's state to the brokers that have a replica, and to `also`."""
        for broker in dict.fromkeys((*state.replicas, *also)):
            member = self._members.get(broker)
            if member is not None:
                self._network.send(member, member.apply_state, state, topic)

    def _unclean(self, topic: Topic) -> bool:
        """Return whether the topic allows unclean leaders: out-of-sync replicas, if no in-sync replica can lead."""
        unclean: bool = topic.settings.value("unclean.leader.election.enable", self.controller_id)
        return unclean
