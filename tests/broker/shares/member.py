"""A member of a share group that speaks the protocol itself: what it has is what the broker gave it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from broker.wire import WireClient
from waiting import wait_until

HEARTBEAT, FETCH, ACKNOWLEDGE = 76, 78, 79
GAP, ACCEPT, RELEASE, REJECT, RENEW = range(5)
_NONE = timedelta(0)


def join(kafka: Cluster, group: str, topic: str, member: str = "one") -> None:
    """Let a member join, and wait for its partitions."""
    with WireClient(kafka.bootstrap) as client:
        coordinator = client.ask(10, 6, key_type=0, coordinator_keys=[group]).coordinators[0]
    count = len(kafka.controller.topics[topic].partitions)
    with WireClient(f"{coordinator.host}:{coordinator.port}") as client:
        first = {"member_epoch": 0, "subscribed_topic_names": [topic]}
        answer = client.ask(HEARTBEAT, 1, group_id=group, member_id=member, **first)
        assert answer.error_code is ErrorCode.none, answer
        epoch = answer.member_epoch

        def assigned() -> bool:
            nonlocal epoch
            beat = client.ask(HEARTBEAT, 1, group_id=group, member_id=member, member_epoch=epoch,
                              subscribed_topic_names=[topic])  # fmt: skip
            assert beat.error_code is ErrorCode.none, beat
            epoch = beat.member_epoch
            return sum(len(one.partitions) for one in beat.assignment.topic_partitions) == count

        wait_until(assigned)


class ShareMember:
    """A member's share session with the leader of one partition."""

    def __init__(self, kafka: Cluster, group: str, topic: str, member: str = "one", partition: int = 0) -> None:
        state = kafka.controller.topics[topic].partitions[partition]
        self.leader = state.leader
        self.epoch = 0
        self._named = {"group_id": group, "member_id": member}
        self._topic_id = state.topic_id
        self._partition = partition
        self._client = WireClient(f"127.0.0.1:{kafka.brokers[state.leader].port}")

    def close(self) -> None:
        """Close the connection, which ends the session."""
        self._client.socket.close()

    def fetch(self, *acknowledged: Any, wait: timedelta = _NONE, records: int = 100, **values: Any) -> Any:
        """The partition's row in the answer to a fetch, None if there is none."""
        self.send_fetch(*acknowledged, wait=wait, records=records, **values)
        return self.receive_fetch()

    def send_fetch(self, *acknowledged: Any, wait: timedelta = _NONE, records: int = 100, **values: Any) -> None:
        """Send a fetch."""
        row = {"partition_index": self._partition, "acknowledgement_batches": _batches(acknowledged)}
        topics = [{"topic_id": self._topic_id, "partitions": [row]}] if acknowledged or not self.epoch else []
        self._number = self._client.send(
            FETCH, 2, **self._named, share_session_epoch=self.epoch, max_wait=wait, min_bytes=1, max_bytes=1 << 20,
            max_records=records, topics=topics, **{"batch_size": records, **values},
        )  # fmt: skip
        self.epoch += 1

    def receive_fetch(self) -> Any:
        """The partition's row in the next answer."""
        answer = self._client.receive(FETCH, 2, self._number)
        assert answer.error_code is ErrorCode.none, answer
        return answer.responses[0].partitions[0] if answer.responses else None

    def get(self, **values: Any) -> list[tuple[int, int, int]]:
        """What a fetch acquires: first offset, last offset, delivery count."""
        return acquired(self.fetch(**values))

    def acknowledge(self, *batches: Any, **values: Any) -> ErrorCode:
        """Acknowledge (first, last, type or types); return the partition's error."""
        row = {"partition_index": self._partition, "acknowledgement_batches": _batches(batches)}
        answer = self._client.ask(
            ACKNOWLEDGE, 2, **self._named, share_session_epoch=self.epoch,
            topics=[{"topic_id": self._topic_id, "partitions": [row]}], **values,
        )  # fmt: skip
        if answer.error_code is not ErrorCode.none:
            error: ErrorCode = answer.error_code
            return error
        self.epoch += 1
        found: ErrorCode = answer.responses[0].partitions[0].error_code
        return found


def acquired(row: Any) -> list[tuple[int, int, int]]:
    """What was acquired: first offset, last offset, delivery count."""
    found = [] if row is None else row.acquired_records
    return [(one.first_offset, one.last_offset, one.delivery_count) for one in found]


def _batches(batches: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        {"first_offset": first, "last_offset": last, "acknowledge_types": kind if isinstance(kind, list) else [kind]}
        for first, last, kind in batches
    ]
