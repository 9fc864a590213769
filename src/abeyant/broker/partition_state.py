"""The controller's metadata of topics and partitions, and a partition's transitions, by KRaft's rules.

A `PartitionState` is immutable; each change makes a new state with a greater partition epoch. During a reassignment a
partition has its old and its new replicas. Once all target replicas are in sync, the other replicas are removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, NamedTuple

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.settings import TopicSettings

NO_LEADER = -1


class PartitionState(NamedTuple):
    """A partition's metadata: its replicas, in-sync set, leader and epochs."""

    topic: str
    topic_id: uuid.UUID
    partition: int
    replicas: tuple[int, ...]  # the first is the preferred leader
    isr: tuple[int, ...]
    leader: int  # a broker, or NO_LEADER
    leader_epoch: int
    partition_epoch: int  # bumped by every change
    adding: tuple[int, ...] = ()  # in a reassignment
    removing: tuple[int, ...] = ()

    @property
    def reassigning(self) -> bool:
        """Return whether a reassignment is in progress."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """Return the partition's replicas after the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def original(self) -> tuple[int, ...]:
        """Return the partition's replicas before the reassignment."""
        return tuple(broker for broker in self.replicas if broker not in self.adding)

    # -- leaders and in-sync sets

    def change(self, *, leader: int | None = None, isr: tuple[int, ...] | None = None) -> PartitionState:
        """Return the state with another leader or in-sync set. A new leader starts a new leader epoch."""
        leader = self.leader if leader is None else leader
        return self._replace(
            leader=leader,
            isr=self.isr if isr is None else isr,
            leader_epoch=self.leader_epoch + (leader != self.leader),
            partition_epoch=self.partition_epoch + 1,
        )

    def elect(self, alive: Container[int], *, unclean: bool) -> PartitionState:
        """Return the state with a live in-sync replica, or if `unclean` any live replica, as leader; else unchanged."""
        for broker in self.replicas:
            if broker in self.isr and broker in alive:
                return self.change(leader=broker)
        if unclean:
            for broker in self.replicas:
                if broker in alive:
                    return self.change(leader=broker, isr=(broker,))
        return self

    def shrink(self, broker: int, alive: Container[int], *, unclean: bool) -> PartitionState:
        """Return the state without `broker` as leader, and in the in-sync set unless it is the last one there."""
        isr = tuple(other for other in self.isr if other != broker) or self.isr
        if self.leader != broker:
            return self if isr == self.isr else self.change(isr=isr)
        leaderless = self._replace(isr=isr)
        after = leaderless.elect(alive, unclean=unclean)
        return leaderless.change(leader=NO_LEADER) if after is leaderless else after

    # -- reassignments

    def reassign(self, target: Sequence[int]) -> PartitionState:
        """Return the state with a reassignment to `target`, which replaces a reassignment in progress."""
        original = self.original
        removing = tuple(broker for broker in original if broker not in target)
        replicas = (*target, *removing)
        return self._replace(
            replicas=replicas,
            adding=tuple(broker for broker in target if broker not in original),
            removing=removing,
            partition_epoch=self.partition_epoch + 1,
            isr=tuple(broker for broker in replicas if broker in self.isr),
        )

    def cancel_reassignment(self, alive: Container[int], *, unclean: bool) -> PartitionState:
        """Return the state with the replicas from before its reassignment.

        Raises ApiError if no reassignment is in progress, or none of the old replicas is in sync.
        """
        if not self.reassigning:
            raise ApiError(ErrorCode.no_reassignment_in_progress)
        replicas = self.original
        isr = tuple(broker for broker in replicas if broker in self.isr)
        if not isr:
            text = "None of the replicas it would go back to are in sync."
            raise ApiError(ErrorCode.invalid_replica_assignment, text)
        epoch = self.partition_epoch + 1
        back = self._replace(replicas=replicas, isr=isr, adding=(), removing=(), partition_epoch=epoch)
        return back if back.leader in isr else back.elect(alive, unclean=unclean)

    def finish_reassignment(self, alive: Container[int], *, unclean: bool) -> PartitionState:
        """Return the state with only its target replicas if all of them are in sync, else unchanged."""
        target = self.target
        if not self.reassigning or not set(target) <= set(self.isr):
            return self
        done = self._replace(replicas=target, isr=target, adding=(), removing=())
        if done.leader not in target:
            return done.elect(alive, unclean=unclean)
        # A new epoch fences the removed replicas, so that they stop fetching. KRaft does the same.
        return done._replace(leader_epoch=done.leader_epoch + bool(self.removing))


class Topic:
    """A topic with its settings, and the states of its partitions by index."""

    __slots__ = ("id", "name", "partitions", "settings")

    def __init__(self, name: str, topic_id: uuid.UUID, settings: TopicSettings) -> None:
        self.name = name
        self.id = topic_id
        self.settings = settings
        self.partitions: list[PartitionState] = []

    @property
    def internal(self) -> bool:
        """Return whether only coordinators write to the topic."""
        return self.name in ("__consumer_offsets", "__transaction_state", "__share_group_state")
