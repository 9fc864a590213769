"""The controller: which topics there are, who leads their partitions, who is in sync. One object, no consensus.

It keeps one immutable `PartitionState` a partition, replaces it at every change, and sends it to the brokers that hold
a replica, as Kafka's controller does with its records. So a broker that was paused learns of the changes in order.
Rules are those of KRaft's controller: of leader epochs, of who is elected (`elections.py`), of when a reassignment is
over (`reassignment.py`).

A broker that is paused cannot send heartbeats. That is a timer of `broker.session.timeout.ms` here, which starts when
it is paused; when it is over the broker is fenced: it leads nothing and is in sync with nobody until it is back.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from abeyant.broker import elections, reassignment
from abeyant.broker.errors import ApiError
from abeyant.broker.group_settings import GroupSettings
from abeyant.broker.metadata_store import MetadataStore
from abeyant.broker.partition_state import NO_LEADER, PartitionState, Topic
from abeyant.broker.placement import assigned, check_name, check_replicas, placed
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError
from abeyant.reporting import logger
from abeyant.timer import TimerTask

if TYPE_CHECKING:
    from abeyant.broker.clock import Clock
    from abeyant.broker.log.journal import Journal
    from abeyant.broker.settings import Settings, TopicSettings


class Member(Protocol):
    """What the controller sees of a broker."""

    id: int

    def tell(self, state: PartitionState, topic: Topic) -> None:
        """A partition of which it holds a replica, or held one, has changed."""

    def tell_topics(self, present: frozenset[uuid.UUID]) -> None:
        """What there is; others were deleted while it could not be told."""

    def tell_deleted(self, topic: Topic) -> None:
        """A topic is gone."""

    def tell_broker_settings(self) -> None:
        """The brokers' settings have changed."""

    def tell_settings(self, topic: Topic) -> None:
        """A topic's settings have changed."""


class Controller:
    """Use from the loop's thread only."""

    def __init__(
        self, clock: Clock, settings: Settings, brokers: Collection[int], journal: Journal | None = None
    ) -> None:
        """`brokers`: the ids of all there are, whether they have started or not.

        With a `journal` it goes on where it was when the last process ended, and keeps every change before it tells it.
        Raises AbeyantError where a topic's settings contradict the brokers'.
        """
        self._brokers = brokers
        self._clock = clock
        self._settings = settings
        self._next_producer = 0
        self._silent: dict[int, TimerTask] = {}  # the sessions of paused brokers
        self._rebalance: TimerTask | None = None
        self.members: dict[int, Member] = {}  # brokers that are registered and not fenced
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[uuid.UUID, Topic] = {}
        # As Kafka writes ids that are shown to people.
        self.cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self.changed: Callable[[PartitionState], object] | None = None  # for faults and tests: called at every change
        self._memory = MetadataStore(journal)
        self.groups = GroupSettings(settings, self._memory)
        self._recall()
        self._schedule_rebalance()

    def _recall(self) -> None:
        """What the journal knows. Nobody leads anything yet: who registers will, in a new epoch."""
        memory = self._memory
        self.cluster_id = memory.cluster_id(self.cluster_id)
        self._next_producer = memory.next_producer()
        for broker, given in memory.broker_settings():
            self._settings.change(broker, given)
        for name, topic_id, config in memory.topics():
            try:
                topic = Topic(name, topic_id, self.topic_settings(config))
            except ApiError as error:
                raise AbeyantError(f"topic {name!r} cannot be kept with these settings: {error.message}") from None
            topic.partitions = [elections.changed(state, leader=NO_LEADER) for state in memory.partitions(topic)]
            self.topics[name] = topic
            self.by_id[topic_id] = topic
        holders = {broker for topic in self.topics.values() for state in topic.partitions for broker in state.replicas}
        if absent := sorted(holders.difference(self._brokers)):
            logger("broker").warning(
                "brokers %s, which have replicas in the data directory, are not in this cluster: partitions that need "
                "them have no leader; start as many brokers as before, with the same node.id",
                ", ".join(map(str, absent)),
            )

    # -- brokers

    def register(self, member: Member) -> None:
        """A broker has started, or is back."""
        self.members[member.id] = member
        member.tell_topics(frozenset(self.by_id))
        member.tell_broker_settings()  # they may have changed while it was fenced, and so may a topic's
        for topic in self.topics.values():
            for state in list(topic.partitions):
                if member.id not in state.replicas:
                    continue
                elected = state
                if state.leader == NO_LEADER:
                    elected = elections.elected(state, self.members, unclean=self._unclean(topic))
                if elected is state or not self._put_if_kept(elected, topic):
                    member.tell(state, topic)

    def unregister(self, broker: int) -> None:
        """A broker stops, or has been silent for too long: others lead what it led, where they can."""
        self._end_session(broker)
        if self.members.pop(broker, None) is None:
            return
        for topic in self.topics.values():
            for state in list(topic.partitions):
                if broker in state.isr:
                    self._put_if_kept(
                        elections.without(state, broker, self.members, unclean=self._unclean(topic)), topic
                    )

    def silent(self, broker: int) -> None:
        """A broker has been paused: its session ends by and by."""
        if broker in self.members and broker not in self._silent:
            session: float = self._settings["broker.session.timeout.ms"] / 1000
            self._silent[broker] = self._clock.timer.call_later(session, self.unregister, broker)

    def heard(self, member: Member) -> None:
        """A broker that was silent is back."""
        self._end_session(member.id)
        if member.id not in self.members:
            self.register(member)

    def _end_session(self, broker: int) -> None:
        task = self._silent.pop(broker, None)
        if task is not None:
            task.cancel()

    @property
    def controller_id(self) -> int:
        """The broker that clients are told is the controller: the lowest there is."""
        return min(self.members, default=NO_LEADER)

    @property
    def changes(self) -> int:
        """How many it has made, as a quorum counts them in its log."""
        return self._memory.changes

    # -- topics

    def topic(self, name: str) -> Topic:
        """By name. Raises ApiError where there is none."""
        topic = self.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition.")
        return topic

    def topic_of(self, name: str | None, topic_id: uuid.UUID | None) -> Topic:
        """By its id, or where a version has none, by name."""
        if topic_id is None:
            return self.topic(name or "")
        topic = self.by_id.get(topic_id)
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_id, "This server does not host this topic ID.")
        return topic

    def create_topic(
        self,
        name: str,
        partitions: int,
        replication: int,
        assignments: Mapping[int, Sequence[int]],
        config: Mapping[str, str | None],
        *,
        validate_only: bool = False,
    ) -> Topic:
        """Make a topic; -1 stands for the default number of partitions or replicas. Raises ApiError."""
        check_name(name, self.topics)
        replicas = self._replicas_for(partitions, replication, assignments)
        topic = Topic(name, uuid.uuid4(), self.topic_settings(config))
        for index, brokers in enumerate(replicas):
            isr = tuple(broker for broker in brokers if broker in self.members)
            if not isr:
                raise ApiError(
                    ErrorCode.invalid_replica_assignment,
                    f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                    "controlled shutdown.",
                )
            topic.partitions.append(PartitionState(name, topic.id, index, brokers, isr, isr[0], 0, 0))
        if not validate_only:
            self._memory.keep_topic(topic)
            self.topics[name] = topic
            self.by_id[topic.id] = topic
            for state in topic.partitions:
                self._tell(state, topic)
        return topic

    def _replicas_for(
        self, partitions: int, replication: int, assignments: Mapping[int, Sequence[int]]
    ) -> list[tuple[int, ...]]:
        if assignments:
            return assigned(partitions, replication, assignments, self._brokers)
        if partitions == -1:
            partitions = self._settings["num.partitions"]
        if replication == -1:
            replication = self._settings["default.replication.factor"]
        return placed(0, partitions, replication, sorted(self.members))

    def topic_settings(self, config: Mapping[str, str | None]) -> TopicSettings:
        """A topic's settings. Raises ApiError for what they must not be."""
        from abeyant.broker.settings import ConfigError

        missing = next((name for name, value in config.items() if value is None), None)
        if missing is not None:
            raise ApiError(ErrorCode.invalid_config, f"Null value not supported for topic configs: {missing}")
        try:
            return self._settings.for_topic({name: value for name, value in config.items() if value is not None})
        except ConfigError as error:
            raise ApiError(ErrorCode.invalid_config, str(error)) from None

    def delete_topic(self, topic: Topic) -> None:
        """Forget a topic; its replicas are deleted."""
        self._memory.forget_topic(topic)
        del self.topics[topic.name]
        del self.by_id[topic.id]
        for member in list(self.members.values()):
            member.tell_deleted(topic)

    def create_partitions(
        self, topic: Topic, count: int, assignments: Sequence[Sequence[int]] | None, *, validate_only: bool
    ) -> None:
        """Give a topic more partitions, `count` in all. Raises ApiError."""
        present = len(topic.partitions)
        if count == present:
            raise ApiError(ErrorCode.invalid_partitions, f"Topic already has {present} partition(s).")
        if count < present:
            raise ApiError(
                ErrorCode.invalid_partitions,
                f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase.",
            )
        more = count - present
        replication = len(topic.partitions[0].replicas)
        if assignments is None:
            replicas = placed(present, more, replication, sorted(self.members))
        else:
            if len(assignments) != more:
                raise ApiError(
                    ErrorCode.invalid_replica_assignment,
                    f"Attempted to add {more} additional partition(s), but only {len(assignments)} assignment(s) were "
                    "specified.",
                )
            for brokers in assignments:
                check_replicas(brokers, self._brokers, replication)
            replicas = [tuple(brokers) for brokers in assignments]
        states = []
        for index, brokers in enumerate(replicas, present):
            isr = tuple(broker for broker in brokers if broker in self.members)
            if not isr:
                raise ApiError(
                    ErrorCode.invalid_replica_assignment,
                    "All brokers specified in the manual partition assignment for partition "
                    f"{index} are fenced or in controlled shutdown.",
                )
            states.append(PartitionState(topic.name, topic.id, index, brokers, isr, isr[0], 0, 0))
        if not validate_only:
            for state in states:
                self._memory.keep_partition(state)
            topic.partitions.extend(states)
            for state in states:
                self._tell(state, topic)

    def configure(self, topic: Topic, config: Mapping[str, str | None]) -> None:
        """Give a topic other settings, all at once. Raises ApiError."""
        settings = self.topic_settings(config)
        self._memory.keep_settings(topic, settings)
        topic.settings = settings
        self._configured(topic)

    def configure_brokers(self, broker: int | None, given: Mapping[str, str]) -> None:
        """Let `given` be all that is changed of a broker's settings, or with None of all brokers'. Raises ApiError."""
        self._memory.keep_broker_settings(broker, given)
        self._settings.change(broker, given)
        # One message a broker for all its topics, which fall back on these: so a client's next request sees the change.
        for member in list(self.members.values()):
            member.tell_broker_settings()
        for topic in self.topics.values():
            self._elect_where_allowed(topic)

    def _configured(self, topic: Topic) -> None:
        """Tell of settings that may be other ones now. Where unclean leaders are allowed now, elect them.

        (Kafka looks for partitions without a leader every five minutes.)
        """
        for member in list(self.members.values()):
            member.tell_settings(topic)
        self._elect_where_allowed(topic)

    def _elect_where_allowed(self, topic: Topic) -> None:
        for state in list(topic.partitions):
            if state.leader == NO_LEADER:
                self._put_if_kept(elections.elected(state, self.members, unclean=self._unclean(topic)), topic)

    # -- leaders and in-sync sets

    def alter_isr(self, state: PartitionState, isr: Iterable[int]) -> PartitionState | None:
        """A leader wants another in-sync set. None where what it knows, `state`, is not so any more.

        Kafka: AlterPartition. Fenced brokers do not come in.
        """
        topic = self.by_id.get(state.topic_id)
        if topic is None:
            return None
        present = topic.partitions[state.partition]
        if present.partition_epoch != state.partition_epoch or present.leader not in self.members:
            return None
        wanted = set(isr)
        if any(broker not in self.members for broker in wanted - set(present.isr)):
            return None
        ordered = tuple(broker for broker in present.replicas if broker in wanted)
        changed = elections.changed(present, isr=ordered)
        changed = reassignment.finished(changed, self.members, unclean=self._unclean(topic))
        try:
            self._put(changed, topic)
        except ApiError:  # it cannot be kept: the leader will propose it again
            return None
        return changed

    def elect_preferred(self, state: PartitionState) -> PartitionState:
        """Let the preferred replica lead. Raises ApiError."""
        topic = self.topics[state.topic]
        preferred = state.replicas[0]
        if state.leader == preferred:
            raise ApiError(ErrorCode.election_not_needed, None)
        if preferred not in state.isr or preferred not in self.members:
            raise ApiError(ErrorCode.preferred_leader_not_available, "The preferred leader was not available.")
        elected = elections.changed(state, leader=preferred)
        self._put(elected, topic)
        return elected

    def elect_unclean(self, state: PartitionState) -> PartitionState:
        """Let any replica lead that is alive, where none that is in sync is. Raises ApiError."""
        topic = self.topics[state.topic]
        if state.leader != NO_LEADER:
            raise ApiError(ErrorCode.election_not_needed, None)
        elected = elections.elected(state, self.members, unclean=True)
        if elected is state:
            raise ApiError(
                ErrorCode.eligible_leaders_not_available, "Eligible topic partition leaders are not available."
            )
        self._put(elected, topic)
        return elected

    def _schedule_rebalance(self) -> None:
        if self._settings["auto.leader.rebalance.enable"]:
            interval: float = self._settings["leader.imbalance.check.interval.seconds"]
            self._rebalance = self._clock.timer.call_later(interval, self._rebalance_leaders)

    def _rebalance_leaders(self) -> None:
        """Give leadership back to the preferred replicas that are in sync again."""
        for topic in self.topics.values():
            for state in list(topic.partitions):
                preferred = state.replicas[0]
                if state.leader not in (preferred, NO_LEADER) and preferred in state.isr and preferred in self.members:
                    self._put_if_kept(elections.changed(state, leader=preferred), topic)
        self._schedule_rebalance()

    # -- reassignments

    def reassign(self, state: PartitionState, replicas: Sequence[int] | None, *, factor_may_change: bool) -> None:
        """Move a partition to other brokers; None takes a reassignment under way back. Raises ApiError."""
        topic = self.topics[state.topic]
        if replicas is None:
            self._put(reassignment.taken_back(state, self.members, unclean=self._unclean(topic)), topic)
            return
        check_replicas(replicas, self._brokers, None)
        if not factor_may_change and len(replicas) != len(state.present):
            raise ApiError(
                ErrorCode.invalid_replication_factor,
                f"The replication factor is changed from {len(state.present)} to {len(replicas)}",
            )
        moving = reassignment.begun(state, replicas)
        self._put(reassignment.finished(moving, self.members, unclean=self._unclean(topic)), topic)

    # -- odds and ends

    def replicas_of(self, broker: int) -> set[tuple[str, int]]:
        """The partitions of which a broker is to hold a replica."""
        return {
            (state.topic, state.partition)
            for topic in self.topics.values()
            for state in topic.partitions
            if broker in state.replicas
        }

    def allocate_producer_id(self) -> int:
        """A producer id that nobody has."""
        self._memory.keep_producer(self._next_producer)
        self._next_producer += 1
        return self._next_producer - 1

    def close(self) -> None:
        """Start nothing any more."""
        for task in [*self._silent.values(), self._rebalance]:
            if task is not None:
                task.cancel()
        self._silent.clear()

    def _put(self, state: PartitionState, topic: Topic) -> None:
        """Replace what is known of a partition, and tell its brokers, old and new."""
        before = topic.partitions[state.partition]
        if before is state:
            return
        self._memory.keep_partition(state)
        topic.partitions[state.partition] = state
        self._tell(state, topic, before.replicas)
        if self.changed is not None:
            self.changed(state)

    def _put_if_kept(self, state: PartitionState, topic: Topic) -> bool:
        """The same where nobody could be told of an error: what cannot be kept stays as it is. Whether it was kept."""
        try:
            self._put(state, topic)
        except ApiError as error:
            logger("broker").error("%s-%d stays as it is: %s", state.topic, state.partition, error.message)
            return False
        return True

    def _tell(self, state: PartitionState, topic: Topic, also: tuple[int, ...] = ()) -> None:
        for broker in dict.fromkeys((*state.replicas, *also)):
            member = self.members.get(broker)
            if member is not None:
                member.tell(state, topic)

    def _unclean(self, topic: Topic) -> bool:
        """Return whether a replica out of sync may lead where no other is left, by the controller's own settings."""
        allowed: bool = topic.settings.value("unclean.leader.election.enable", self.controller_id)
        return allowed
