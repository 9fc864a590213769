"""The controller: topics, brokers and settings; `leaders` has the partitions. It is one object, without consensus.

Changes are sent to the brokers as messages, like the records of Kafka's controller. So a paused broker gets all
changes later, in order.

A paused broker sends no heartbeats. To model that, pausing starts a timer of `broker.session.timeout.ms`. When the
timer expires, the broker is fenced: it leads no partition and is in no in-sync set until it is resumed.
"""

from __future__ import annotations

import uuid
from base64 import urlsafe_b64encode
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from abeyant.broker.acls import Acls
from abeyant.broker.definitions import ConfigError
from abeyant.broker.delegation_tokens import DelegationTokens
from abeyant.broker.errors import ApiError
from abeyant.broker.features import ELIGIBLE_REPLICAS, Features, Update
from abeyant.broker.group_settings import GroupSettings
from abeyant.broker.leaders import Leaders, Member
from abeyant.broker.loggers import Loggers
from abeyant.broker.metadata_store import MetadataStore
from abeyant.broker.network import Network
from abeyant.broker.partition_state import NO_LEADER, PartitionState, Topic
from abeyant.broker.placement import check_assignments, check_name, check_replicas, place_replicas
from abeyant.broker.quotas.limits import MutationQuotas, Record
from abeyant.broker.quotas.table import QuotaTable
from abeyant.broker.scram_users import ScramUsers
from abeyant.broker.security.credentials import Credentials
from abeyant.broker.settings import MIN_ISR
from abeyant.broker.telemetry.subscriptions import Subscriptions
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError
from abeyant.reporting import logger
from abeyant.timer import TimerTask

if TYPE_CHECKING:
    from abeyant.broker.clock import Clock
    from abeyant.broker.log.journal import Journal
    from abeyant.broker.settings import Settings, TopicSettings


class Controller:
    """The cluster's controller. Use from the loop's thread only."""

    def __init__(
        self,
        clock: Clock,
        network: Network,
        settings: Settings,
        brokers: Collection[int],
        journal: Journal | None = None,
        credentials: Credentials | None = None,
    ) -> None:
        """Create the controller of `brokers`, the ids of all brokers, started or not.

        With a `journal`, continue from its state, and write every change to it before the change is sent to brokers.
        Raises AbeyantError if a topic's settings contradict the brokers' settings.
        """
        self._brokers = brokers
        self._clock = clock
        self._network = network
        self._settings = settings
        self._next_producer = 0
        self._sessions: dict[int, TimerTask] = {}  # of paused brokers
        self.members: dict[int, Member] = {}  # brokers that are registered and not fenced
        self.topics: dict[str, Topic] = {}
        self.by_id: dict[uuid.UUID, Topic] = {}
        self.topics_version = 0
        """Number of topics created since the start."""
        # In Kafka's form of ids.
        self.cluster_id = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._store = MetadataStore(journal)
        self.groups = GroupSettings(settings, self._store)
        self.client_metrics = Subscriptions(self._store)
        self.loggers = Loggers()
        self.features = Features(self._store)
        self.acls = Acls(settings, self._store)
        self.quotas = QuotaTable(self._store)
        credentials = credentials or Credentials()
        self.scram = ScramUsers(credentials, self._store)
        self.tokens = DelegationTokens(credentials, settings, self._store, clock)
        self.mutation_quotas = MutationQuotas(self.quotas, settings, clock.now)
        self._restore()
        self.leaders = Leaders(self.topics, self.by_id, self.members, brokers, self._store, network, settings, clock)

    def _restore(self) -> None:
        """Restore the state from the journal. Partitions get a leader, in a new epoch, when their brokers register."""
        store = self._store
        self.cluster_id = store.cluster_id(self.cluster_id)
        self._next_producer = store.next_producer()
        for broker, changes in store.broker_settings():
            self._settings.change(broker, changes)
        for name, topic_id, config in store.topics():
            try:
                topic = Topic(name, topic_id, self.topic_settings(config))
            except ApiError as error:
                raise AbeyantError(f"topic {name!r} contradicts these settings: {error.message}") from None
            topic.partitions = [state.change(leader=NO_LEADER) for state in store.partitions(topic)]
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
        """Add a broker that has started or returned. Send it all settings and the states of its partitions."""
        self.members[member.id] = member
        self._network.send(member, member.keep_only, frozenset(self.by_id))
        self._network.send(member, member.apply_settings)
        self.leaders.returned(member)

    def unregister(self, broker: int) -> None:
        """Remove a broker that is stopping, or whose session expired, and elect new leaders for its partitions."""
        self._cancel_session(broker)
        if self.members.pop(broker, None) is None:
            return
        self.leaders.left(broker)

    def start_session(self, broker: int) -> None:
        """Start the session time-out of a paused broker, after which the broker is fenced."""
        if broker in self.members and broker not in self._sessions:
            session: float = self._settings["broker.session.timeout.ms"] / 1000
            self._sessions[broker] = self._clock.timer.call_later(session, self.unregister, broker)

    def end_session(self, member: Member) -> None:
        """Cancel the session time-out of a broker whose pause ends. Register the broker again if it was fenced."""
        self._cancel_session(member.id)
        if member.id not in self.members:
            self.register(member)

    def _cancel_session(self, broker: int) -> None:
        task = self._sessions.pop(broker, None)
        if task is not None:
            task.cancel()

    @property
    def controller_id(self) -> int:
        """Return the id that responses name as the controller's: the lowest id of the live brokers."""
        return self.leaders.controller_id

    @property
    def changes(self) -> int:
        """Return the number of metadata changes, which DescribeQuorum shows as the log end offset."""
        return self._store.changes

    # -- topics

    def topic(self, name: str) -> Topic:
        """Return a topic by its name. Raises ApiError if it does not exist."""
        topic = self.topics.get(name)
        if topic is None:
            raise ApiError(ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition.")
        return topic

    def topic_of(self, name: str | None, topic_id: uuid.UUID | None) -> Topic:
        """Return a topic by its id, or without an id by its name. Raises ApiError if it does not exist."""
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
        quota: Record | None = None,
    ) -> Topic:
        """Create a topic. For `partitions` and `replication`, -1 means the default.

        With `validate_only`, only check the arguments. Raises ApiError, also if the client's `quota` is exhausted.
        """
        check_name(name, self.topics)
        replicas = self._replicas_for(partitions, replication, assignments)
        topic = Topic(name, uuid.uuid4(), self.topic_settings(config))
        topic.partitions = [self._new_partition(topic, index, brokers) for index, brokers in enumerate(replicas)]
        if quota is not None:
            quota(len(topic.partitions))
        if not validate_only:
            self._store.put_topic(topic)
            self.topics[name] = topic
            self.by_id[topic.id] = topic
            self.topics_version += 1
            for state in topic.partitions:
                self.leaders.send(state, topic)
        return topic

    def _new_partition(self, topic: Topic, index: int, brokers: tuple[int, ...]) -> PartitionState:
        isr = tuple(broker for broker in brokers if broker in self.members)
        if not isr:
            raise ApiError(
                ErrorCode.invalid_replica_assignment,
                f"All brokers specified in the manual partition assignment for partition {index} are fenced or in "
                "controlled shutdown.",
            )
        return PartitionState(topic.name, topic.id, index, brokers, isr, isr[0], 0, 0)

    def _replicas_for(
        self, partitions: int, replication: int, assignments: Mapping[int, Sequence[int]]
    ) -> list[tuple[int, ...]]:
        if assignments:
            return check_assignments(partitions, replication, assignments, self._brokers)
        if partitions == -1:
            partitions = self._settings["num.partitions"]
        if replication == -1:
            replication = self._settings["default.replication.factor"]
        return place_replicas(0, partitions, replication, sorted(self.members), self._racks())

    def _racks(self) -> dict[int, str | None]:
        return {broker: self._settings.rack(broker) for broker in self.members}

    def topic_settings(self, config: Mapping[str, str | None]) -> TopicSettings:
        """Return the settings of a topic with `config`. Raises ApiError for an invalid setting."""
        missing = next((name for name, value in config.items() if value is None), None)
        if missing is not None:
            raise ApiError(ErrorCode.invalid_config, f"Null value not supported for topic configs: {missing}")
        try:
            return self._settings.for_topic({name: value for name, value in config.items() if value is not None})
        except ConfigError as error:
            raise ApiError(ErrorCode.invalid_config, str(error)) from None

    def delete_topic(self, topic: Topic) -> None:
        """Delete a topic and its replicas."""
        self._store.forget_topic(topic)
        del self.topics[topic.name]
        del self.by_id[topic.id]
        for member in self.members.values():
            self._network.send(member, member.forget_topic, topic)

    def create_partitions(
        self,
        topic: Topic,
        count: int,
        assignments: Sequence[Sequence[int]] | None,
        *,
        validate_only: bool,
        quota: Record | None = None,
    ) -> None:
        """Add partitions to a topic, up to `count`. Raises ApiError, also if the client's `quota` is exhausted."""
        present = len(topic.partitions)
        if count == present:
            raise ApiError(ErrorCode.invalid_partitions, f"Topic already has {present} partition(s).")
        if count < present:
            raise ApiError(
                ErrorCode.invalid_partitions,
                f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase.",
            )
        increase = count - present
        replication = len(topic.partitions[0].replicas)
        if assignments is None:
            replicas = place_replicas(present, increase, replication, sorted(self.members), self._racks())
        else:
            if len(assignments) != increase:
                raise ApiError(
                    ErrorCode.invalid_replica_assignment,
                    f"Attempted to add {increase} additional partition(s), but only {len(assignments)} assignment(s) "
                    "were specified.",
                )
            for brokers in assignments:
                check_replicas(brokers, self._brokers, replication)
            replicas = [tuple(brokers) for brokers in assignments]
        if quota is not None:
            quota(increase)
        states = [self._new_partition(topic, index, brokers) for index, brokers in enumerate(replicas, present)]
        if not validate_only:
            for state in states:
                self._store.put_partition(state)
            topic.partitions.extend(states)
            for state in states:
                self.leaders.send(state, topic)

    def configure(self, topic: Topic, config: Mapping[str, str | None]) -> None:
        """Replace the settings of a topic. Raises ApiError.

        If the new settings allow unclean leaders, elect a leader now for each partition that has none. (Kafka looks for
        such partitions every five minutes.)
        """
        settings = self.topic_settings(config)
        self._store.put_settings(topic, settings)
        topic.settings = settings
        for member in self.members.values():
            self._network.send(member, member.apply_topic_settings, topic)
        self.leaders.elect_missing(topic)

    def configure_brokers(self, broker: int | None, changes: Mapping[str, str]) -> None:
        """Replace the dynamic settings of one broker, or with None the settings for all brokers. Raises ApiError."""
        self._store.put_broker_settings(broker, changes)
        self._settings.change(broker, changes)
        # Topics fall back on these. One message per broker for all its topics, before the client's next request.
        for member in self.members.values():
            self._network.send(member, member.apply_settings)
        for topic in self.topics.values():
            self.leaders.elect_missing(topic)

    def update_features(self, updates: Iterable[Update], *, validate_only: bool) -> None:
        """Change the levels of features, all or none. Raises ApiError.

        If eligible leader replicas are turned on, set one `min.insync.replicas` for all brokers, as Kafka does, and
        remove the values of single brokers.
        """
        changed = self.features.update(updates, self.controller_id, validate_only=validate_only)
        if ELIGIBLE_REPLICAS in changed and self.features.level(ELIGIBLE_REPLICAS):
            defaults = self._settings.dynamic(None)
            self.configure_brokers(None, {MIN_ISR: str(self._settings[MIN_ISR])} | defaults)
            for broker in self._brokers:
                overrides = self._settings.dynamic(broker)
                if overrides.pop(MIN_ISR, None) is not None:
                    self.configure_brokers(broker, overrides)

    # -- other

    def replicas_of(self, broker: int) -> set[tuple[str, int]]:
        """Return the partitions of which a broker has a replica."""
        return {
            (state.topic, state.partition)
            for topic in self.topics.values()
            for state in topic.partitions
            if broker in state.replicas
        }

    def allocate_producer_id(self) -> int:
        """Return a new producer id. Raises ApiError."""
        self._store.reserve_producer_ids(self._next_producer)
        self._next_producer += 1
        return self._next_producer - 1

    def close(self) -> None:
        """Cancel all timers, and restore the levels of loggers."""
        self.loggers.close()
        self.tokens.close()
        self.leaders.close()
        for task in self._sessions.values():
            task.cancel()
        self._sessions.clear()
