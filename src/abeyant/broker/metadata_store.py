"""Store the controller's metadata in its journal, if it has one: topics, partitions, settings, producer ids.

Each change is written before it takes effect. So a smaller in-sync set is in the journal before anything is
acknowledged without the replicas that left the set (law K1).
"""

from __future__ import annotations

import json
import uuid
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import PartitionState
from abeyant.broker.security.credentials import Credential, DelegationToken
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.log.journal import Journal
    from abeyant.broker.partition_state import Topic
    from abeyant.broker.settings import TopicSettings

_PRODUCER_BLOCK = 1_000  # ids reserved at a time; a restart skips at most as many


class MetadataStore:
    """The controller's metadata in a journal, if there is one. Methods that write raise ApiError for a disk error."""

    def __init__(self, journal: Journal | None) -> None:
        """Write to `journal`; with None, store nothing."""
        self._journal = journal
        self.changes = 1  # since the process started, which counts as one

    def cluster_id(self, fresh: str) -> str:
        """Return the cluster's id. The first time, store `fresh` as the id."""
        if self._journal is None:
            return fresh
        if self._journal.get("cluster") is None:
            self._put("cluster", fresh)
        cluster_id: str = self._journal["cluster"]
        return cluster_id

    def next_producer(self) -> int:
        """Return the first unreserved producer id."""
        producer_id: int = 0 if self._journal is None else self._journal.get("producers", 0)
        return producer_id

    def reserve_producer_ids(self, producer_id: int) -> None:
        """Reserve a block of producer ids if `producer_id`, about to be allocated, is the first of a block."""
        if producer_id % _PRODUCER_BLOCK == 0:
            self._put("producers", producer_id + _PRODUCER_BLOCK)

    def topics(self) -> Iterator[tuple[str, uuid.UUID, dict[str, str]]]:
        """Yield every topic's name, id and settings."""
        if self._journal is not None:
            for key, (topic_id, config) in self._journal.items("topic/"):
                yield key.removeprefix("topic/"), uuid.UUID(topic_id), config

    def partitions(self, topic: Topic) -> list[PartitionState]:
        """Return a topic's partitions by index."""
        assert self._journal is not None
        states = []
        for key, (replicas, isr, leader, leader_epoch, partition_epoch, adding, removing) in self._journal.items(
            f"partition/{topic.id}/"
        ):
            index = int(key.rpartition("/")[2])
            states.append(
                PartitionState(
                    topic.name, topic.id, index, tuple(replicas), tuple(isr), leader, leader_epoch, partition_epoch,
                    tuple(adding), tuple(removing),
                )
            )  # fmt: skip
        return sorted(states, key=lambda state: state.partition)

    def put_topic(self, topic: Topic) -> None:
        """Store a new topic. Its partitions are stored first, so that a restart finds the whole topic or nothing."""
        for state in topic.partitions:
            self.put_partition(state)
        self.put_settings(topic, topic.settings)

    def put_settings(self, topic: Topic, settings: TopicSettings) -> None:
        """Store a topic's settings."""
        self._put(f"topic/{topic.name}", [str(topic.id), settings.own])

    def broker_settings(self) -> Iterator[tuple[int | None, dict[str, str]]]:
        """Yield each broker's id and dynamic settings; the settings for all brokers have the id None."""
        if self._journal is not None:
            for key, settings in self._journal.items("settings/"):
                broker = key.removeprefix("settings/")
                yield int(broker) if broker else None, settings

    def put_broker_settings(self, broker: int | None, settings: Mapping[str, str]) -> None:
        """Store the dynamic settings of one broker, or with None the settings for all brokers."""
        self._put(f"settings/{'' if broker is None else broker}", dict(settings))

    def group_settings(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield each group's id and settings."""
        if self._journal is not None:
            for key, settings in self._journal.items("group/"):
                yield key.removeprefix("group/"), settings

    def put_group_settings(self, group_id: str, settings: Mapping[str, str]) -> None:
        """Store all settings of a group."""
        self._put(f"group/{group_id}", dict(settings) or None)

    def client_metrics(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Yield the name and the settings of each subscription to clients' metrics."""
        if self._journal is not None:
            for key, settings in self._journal.items("client-metrics/"):
                yield key.removeprefix("client-metrics/"), settings

    def put_client_metrics(self, name: str, settings: Mapping[str, str]) -> None:
        """Store all settings of a subscription to clients' metrics."""
        self._put(f"client-metrics/{name}", dict(settings) or None)

    def quotas(self) -> Iterator[tuple[tuple[tuple[str, str | None], ...], dict[str, float]]]:
        """Yield each entity, as pairs of a type and a name, with its quotas."""
        if self._journal is not None:
            for key, values in self._journal.items("quota/"):
                yield tuple((kind, name) for kind, name in json.loads(key.removeprefix("quota/"))), values

    def put_quotas(self, entity: tuple[tuple[str, str | None], ...], values: Mapping[str, float]) -> None:
        """Store all quotas of an entity."""
        self._put(f"quota/{json.dumps(entity)}", dict(values) or None)

    def credentials(self) -> Iterator[tuple[str, str, Credential]]:
        """Yield every SCRAM credential, after its mechanism and its user."""
        if self._journal is not None:
            for key, (*parts, iterations) in self._journal.items("scram/"):
                _, mechanism, user = key.split("/", 2)
                salt, stored, server = map(b64decode, parts)
                yield mechanism, user, Credential(salt, stored, server, iterations)

    def put_credential(self, mechanism: str, user: str, credential: Credential | None) -> None:
        """Store a user's SCRAM credential; None removes the stored credential."""
        value = None
        if credential is not None:
            value = [*(b64encode(part).decode() for part in credential[:3]), credential.iterations]
        self._put(f"scram/{mechanism}/{user}", value)

    def tokens(self) -> Iterator[DelegationToken]:
        """Yield the delegation tokens, without their HMACs."""
        if self._journal is not None:
            for key, (owner, requester, renewers, issued, expires, last) in self._journal.items("token/"):
                number = key.removeprefix("token/")
                yield DelegationToken(number, owner, requester, tuple(renewers), issued, expires, last, b"")

    def put_token(self, number: str, token: DelegationToken | None) -> None:
        """Store a delegation token without its HMAC, which is computed from the secret; None removes the token."""
        self._put(f"token/{number}", None if token is None else token[1:-1])

    def acls(self) -> Iterator[list[Any]]:
        """Yield the fields of each ACL."""
        if self._journal is not None:
            for key, _ in self._journal.items("acl/"):
                yield json.loads(key.removeprefix("acl/"))

    def put_acl(self, acl: Sequence[Any], *, exists: bool) -> None:
        """Store an ACL, or remove it."""
        self._put(f"acl/{json.dumps(acl)}", True if exists else None)

    def features(self) -> tuple[int, dict[str, int]]:
        """Return the epoch of the finalized features, and their stored levels; 0 and {} before the first change."""
        features: list[Any] = [0, {}] if self._journal is None else self._journal.get("features", [0, {}])
        return features[0], features[1]

    def put_features(self, epoch: int, levels: Mapping[str, int]) -> None:
        """Store the finalized features."""
        self._put("features", [epoch, dict(levels)])

    def put_partition(self, state: PartitionState) -> None:
        """Store a partition's state."""
        self._put(f"partition/{state.topic_id}/{state.partition}", [*state[3:]])

    def forget_topic(self, topic: Topic) -> None:
        """Remove a topic, before it is deleted."""
        self._put(f"topic/{topic.name}", None)
        with suppress(ApiError):  # the topic is gone, even if the disk is too full for the rest
            for state in topic.partitions:
                self._put(f"partition/{topic.id}/{state.partition}", None)

    def _put(self, name: str, value: Any) -> None:
        self.changes += 1
        if self._journal is None:
            return
        from abeyant.broker.log.errors import StorageError

        try:
            self._journal.put(name, value)
        except StorageError as error:
            raise ApiError(ErrorCode.kafka_storage_error, str(error)) from None
