"""A member of a streams group that speaks the protocol itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from broker.wire import WireClient

HEARTBEAT, DESCRIBE = 88, 89
WORDS: dict[str, Any] = {
    "epoch": 0,
    "subtopologies": [
        {
            "subtopology_id": "0", "source_topics": ["lines"], "repartition_sink_topics": ["words-repartition"],
            "state_changelog_topics": [], "repartition_source_topics": [], "copartition_groups": [],
        },
        {
            "subtopology_id": "1", "source_topics": [], "repartition_source_topics": [{"name": "words-repartition"}],
            "state_changelog_topics": [
                {"name": "words-changelog", "topic_configs": [{"key": "cleanup.policy", "value": "compact"}]}
            ],
            "copartition_groups": [],
        },
    ],
}  # fmt: skip
"""A word count: lines are split and repartitioned, and words are counted."""

Given = dict[str, list[int]]
"""Subtopology -> the partitions of its tasks."""


class StreamsMember:
    """A member; it has what the broker gave it last."""

    def __init__(self, kafka: Cluster, member: str, process: str | None = None, **more: Any) -> None:
        self._kafka = kafka
        self._more = {"topology": WORDS, "process_id": process or member, **more}
        self._client: WireClient | None = None
        self.id = member
        self.epoch = 0
        self.active: Given = {}
        self.standby: Given = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.reconnect()

    def reconnect(self) -> None:
        """Close the connection; the next heartbeat goes to whoever coordinates the group then."""
        if self._client is not None:
            self._client.socket.close()
            self._client = None

    def ask(self, key: int, version: int, **values: Any) -> Any:
        """Ask the coordinator."""
        if self._client is None:
            running = next(broker for broker in self._kafka.brokers.values() if not broker.stopped)
            with WireClient(f"127.0.0.1:{running.port}") as client:
                (found,) = client.ask(10, 6, key_type=0, coordinator_keys=["app"]).coordinators
            self._client = WireClient(f"{found.host}:{found.port}")
        return self._client.ask(key, version, **values)

    def send(self, **more: Any) -> Any:
        """Send a heartbeat: everything to join, else what it has."""
        none = {"client_tags": None, "task_offsets": None, "task_end_offsets": None}
        body: dict[str, Any] = {
            "group_id": "app", "member_id": self.id, "member_epoch": self.epoch, "warmup_tasks": [],
            "active_tasks": _rows(self.active), "standby_tasks": _rows(self.standby), **none,
        }  # fmt: skip
        if self.epoch == 0:
            body |= {"rebalance_timeout": timedelta(seconds=60), "active_tasks": [], "standby_tasks": [], **self._more}
        return self.ask(HEARTBEAT, 0, **(body | more))

    def beat(self, **more: Any) -> Any:
        """Send a heartbeat, and do as the answer says. Revoking takes one heartbeat more."""
        answer = self.send(**more)
        assert answer.error_code is ErrorCode.none, answer
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            self.active = {row.subtopology_id: list(row.partitions) for row in answer.active_tasks}
            self.standby = {row.subtopology_id: list(row.partitions) for row in answer.standby_tasks}
        return answer

    @property
    def tasks(self) -> set[tuple[str, int]]:
        """The active tasks that it has."""
        return {(name, index) for name, indexes in self.active.items() for index in indexes}

    def describe(self) -> Any:
        """The group, as StreamsGroupDescribe has it."""
        (group,) = self.ask(DESCRIBE, 0, group_ids=["app"]).groups
        return group


def _rows(tasks: Mapping[str, list[int]]) -> list[dict[str, Any]]:
    return [{"subtopology_id": name, "partitions": indexes} for name, indexes in tasks.items()]
