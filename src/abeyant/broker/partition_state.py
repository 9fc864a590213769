"""What the controller knows of topics and partitions, and tells the brokers."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from abeyant.broker.settings import TopicSettings

NO_LEADER = -1


class PartitionState(NamedTuple):
    """All that is known of a partition beyond its log."""

    topic: str
    topic_id: uuid.UUID
    partition: int
    replicas: tuple[int, ...]  # the first is the preferred leader
    isr: tuple[int, ...]
    leader: int  # a broker, or NO_LEADER
    leader_epoch: int
    partition_epoch: int  # grows with every change
    adding: tuple[int, ...] = ()  # of a reassignment under way
    removing: tuple[int, ...] = ()

    @property
    def reassigning(self) -> bool:
        """Whether its replicas are moving."""
        return bool(self.adding or self.removing)

    @property
    def wanted(self) -> tuple[int, ...]:
        """The replicas it is to have when its reassignment is over."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def present(self) -> tuple[int, ...]:
        """The replicas it had before its reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)


class Topic:
    """A topic: its partitions by index, and its settings."""

    __slots__ = ("id", "name", "partitions", "settings")

    def __init__(self, name: str, topic_id: uuid.UUID, settings: TopicSettings) -> None:
        self.name = name
        self.id = topic_id
        self.settings = settings
        self.partitions: list[PartitionState] = []

    @property
    def internal(self) -> bool:
        """Return whether only the broker's own coordinators write there."""
        return self.name in ("__consumer_offsets", "__transaction_state", "__share_group_state")
