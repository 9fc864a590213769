"""A group's requests, asked for over a socket: one connection is one client."""

from __future__ import annotations

from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from abeyant.broker import Cluster
from abeyant.broker.coordinator.topics import OFFSETS, partition_for
from abeyant.broker.wire.apis import BY_NAME
from broker.wire import WireClient

SECOND = timedelta(seconds=1)
JOIN = 11


class GroupClient:
    """At the broker that coordinates a group, or at a given one."""

    def __init__(
        self, kafka: Cluster, group: str = "group", broker: int | None = None, user: tuple[str, str] | None = None
    ) -> None:
        self.group = group
        self.kafka = kafka
        where = coordinator(kafka, group, user) if broker is None else broker
        self.client = WireClient(f"127.0.0.1:{kafka.brokers[where].port}", user)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.socket.close()

    def ask(self, api: str, version: int | None = None, **values: Any) -> Any:
        """Ask, by default in the highest version."""
        known = BY_NAME[api]
        given = {"group_id": self.group, **values}
        return self.client.ask(known.key, known.highest if version is None else version, **given)

    def send_join(self, member_id: str = "", instance: str | None = None, session: float = 45.0) -> int:
        """Ask to join, and do not wait for the answer. `session` in seconds."""
        return self.client.send(
            JOIN, 5, group_id=self.group, session_timeout=session * SECOND, rebalance_timeout=60 * SECOND,
            member_id=member_id, group_instance_id=instance, protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b"\0\0\0\0\0\1\0\1t\0\0\0\0"}],
        )  # fmt: skip

    def join(self, member_id: str = "", instance: str | None = None, session: float = 45.0) -> Any:
        """Join, with an id if one is asked for."""
        said = self.client.receive(JOIN, 5, self.send_join(member_id, instance, session))
        if said.error_code.name == "member_id_required":
            said = self.client.receive(JOIN, 5, self.send_join(said.member_id, instance, session))
        return said

    def sync(self, joined: Any, *assignments: bytes) -> Any:
        """Ask what it has; the leader gives all their assignments."""
        given = [
            {"member_id": member.member_id, "assignment": assignment}
            for member, assignment in zip(joined.members, assignments, strict=False)
        ]
        return self.ask(
            "SyncGroup", 3, member_id=joined.member_id, generation_id=joined.generation_id, assignments=given
        )

    def heartbeat(self, joined: Any) -> str:
        """Be alive."""
        said = self.ask("Heartbeat", member_id=joined.member_id, generation_id=joined.generation_id)
        return str(said.error_code.name)

    def commit(self, offset: int, joined: Any = None, topic: str = "t", partition: int = 0) -> str:
        """Commit one offset, as a member or as nobody."""
        as_member = {} if joined is None else {
            "member_id": joined.member_id, "generation_id_or_member_epoch": joined.generation_id,
        }  # fmt: skip
        said = self.ask(
            "OffsetCommit", 8, **{"member_id": "", **as_member},
            topics=[{"name": topic, "partitions": [
                {"partition_index": partition, "committed_offset": offset, "committed_metadata": "note"},
            ]}],
        )  # fmt: skip
        return str(said.topics[0].partitions[0].error_code.name)

    def fetch(self, topic: str = "t", partition: int = 0) -> int:
        """The offset that was committed, -1 for none."""
        said = self.ask("OffsetFetch", 7, topics=[{"name": topic, "partition_indexes": [partition]}])
        found: int = said.topics[0].partitions[0].committed_offset
        return found

    def describe(self) -> Any:
        """The group."""
        return self.ask("DescribeGroups", groups=[self.group]).groups[0]


def coordinator(kafka: Cluster, group: str, user: tuple[str, str] | None = None) -> int:
    """The broker that coordinates a group."""
    with WireClient(kafka.bootstrap, user) as client:
        (said,) = client.ask(10, 6, key_type=0, coordinator_keys=[group]).coordinators
    node: int = said.node_id
    return node


def offsets_partition(kafka: Cluster, group: str = "group") -> int:
    """Where a group's records are."""
    return partition_for(group, len(kafka.controller.topics[OFFSETS.name].partitions))
