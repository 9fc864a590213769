"""The methods of `Cluster` that seed records, commit offsets, set quotas, and read groups and transactions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from abeyant.broker.api.base import BaseCluster, settled

if TYPE_CHECKING:
    from abeyant.broker.api.contents import GroupState, NewRecord, TransactionState
    from abeyant.broker.telemetry.clients import PushedMetrics


class ContentsApi(BaseCluster):
    """Methods of a `Cluster` that read and change its contents. Each imports its implementation when it is called."""

    @settled
    def seed(self, topic: str, records: Iterable[bytes | NewRecord | None], partition: int = 0) -> list[int]:
        """Append records to a partition as test data, as a producer with acks=1 does, and return their offsets.

        Each of `records` is a value, or a `NewRecord` with key, headers and timestamp. Raises AbeyantError for an
        unknown partition, for a partition without a leader, or if the topic rejects a record.
        """
        from abeyant.broker.api.contents import seed

        return seed(self, topic, partition, records)

    # -- groups

    @settled
    def groups(self) -> list[str]:
        """Return the ids of all groups, sorted.

        Raises AbeyantError if a partition of `__consumer_offsets` has no running leader, since it may have groups.
        """
        from abeyant.broker.api.contents import groups

        return groups(self)

    @settled
    def group(self, group: str) -> GroupState:
        """Return a group: its state, its members, and its committed offsets with their lag.

        Raises AbeyantError if there is no such group, or if its coordinator does not run.
        """
        from abeyant.broker.api.contents import group_state

        return group_state(self, group)

    @settled
    def commit(self, group: str, offsets: Mapping[tuple[str, int], int]) -> None:
        """Commit offsets, by topic and partition, for a group without members; create the group if needed.

        Raises AbeyantError for an unknown partition, for a group with members, if the group's coordinator does not
        run, or if an in-sync replica does not replicate the commit.
        """
        from abeyant.broker.api.contents import commit

        commit(self, group, offsets)

    @settled
    def expire_member(self, group: str, member: str) -> None:
        """Expire the session of a member now, as if its session time-out had passed without a heartbeat.

        `member` is its member id, its `group.instance.id`, or its client id if no other member has the same. Raises
        AbeyantError if there is no such group or member, or if its coordinator is stopped, paused or not ready.
        """
        from abeyant.broker.api.coordinators import expire_member

        expire_member(self, group, member)

    @settled
    def expire_lock(self, group: str, topic: str, partition: int | None = None, *, member: str | None = None) -> int:
        """Expire a share group's locks on a topic now; return how many. The locked records are delivered again.

        By default all locks expire; else only the locks of a partition, or of a member, named by its member id or
        client id. Raises AbeyantError if there is no such lock.
        """
        from abeyant.broker.api.shares import expire_locks

        return expire_locks(self, group, topic, partition, member)

    # -- clients' metrics

    @settled
    def pushed_metrics(self) -> list[PushedMetrics]:
        """Return the metrics that clients have pushed (KIP-714), broker by broker, the latest push last.

        Includes clients that have disconnected, as long as their broker runs.
        """
        return [row for broker in self.brokers.values() if not broker.stopped for row in broker.telemetry.pushed()]

    # -- quotas

    @settled
    def set_quotas(
        self,
        quotas: Mapping[str, float | None],
        *,
        user: str | None = None,
        client_id: str | None = None,
        ip: str | None = None,
    ) -> None:
        """Set client quotas, as AlterClientQuotas does. They apply from the next request on.

        `quotas` maps Kafka's names to values, `{"producer_byte_rate": 1_000}` (bytes per second); None removes a
        quota. Quotas are for a user, a client id, both, or an address (`ip`). With none of these, set the default for
        all client ids, or with `connection_creation_rate` the default for all addresses. Raises AbeyantError for an
        unknown name or an invalid value.
        """
        from abeyant.broker.api.client_quotas import set_quotas

        set_quotas(self, quotas, user, client_id, ip)

    # -- transactions

    @settled
    def transactions(self) -> list[TransactionState]:
        """Return all transactional ids with their states, and the seconds until an open transaction times out.

        Raises AbeyantError if a partition of `__transaction_state` has no running leader, since it may have ids.
        """
        from abeyant.broker.api.contents import transactions

        return transactions(self)

    @settled
    def fence(self, transactional_id: str) -> None:
        """Fence the producer of a transactional id, as another producer with the same id does.

        The producer's open transaction is aborted, and its further requests are refused. Raises AbeyantError for an
        unknown id, if its coordinator does not run, or while its transaction is being committed or aborted.
        """
        from abeyant.broker.api.coordinators import fence_producer

        fence_producer(self, transactional_id)
