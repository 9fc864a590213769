"""Share sessions: the partitions that a member fetches here, and its next request's epoch. Kafka: `ShareSessionCache`.

A session ends with the connection that began it. Then the member's records become available to other members.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from abeyant.broker.errors import ApiError
from abeyant.broker.shares.partitions import SharePartitions, release_all
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.wire.connection import Connection

TopicPartition = tuple[uuid.UUID | None, int]
"""A topic's id and a partition's index."""

INITIAL, FINAL = 0, -1  # epochs of requests that begin and end a session
_LAST_EPOCH = (1 << 31) - 1


class ShareSession:
    """One member's session: its partitions, and the epoch of its next request."""

    __slots__ = ("connection", "epoch", "group", "member", "partitions")

    def __init__(self, group: str, member: str, connection: Connection, partitions: Iterable[TopicPartition]) -> None:
        self.group = group
        self.member = member
        self.connection = connection
        self.epoch = 1
        self.partitions: dict[TopicPartition, bool] = dict.fromkeys(partitions, False)
        """The partitions to fetch; True for a partition that the next response has to include."""

    def advance(self) -> None:
        """Advance to the next epoch."""
        self.epoch = 1 if self.epoch == _LAST_EPOCH else self.epoch + 1


class ShareSessions:
    """The share sessions of one broker. Use from the loop's thread only."""

    def __init__(self, shares: SharePartitions, limit: int) -> None:
        """Keep at most `limit` sessions."""
        self._shares = shares
        self._limit = limit
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._members: Counter[str] = Counter()  # by group
        self._begun_by: dict[Connection, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def has(self, group: str, member: str) -> bool:
        """Return whether the member has a session."""
        return (group, member) in self._sessions

    def require(self, group: str, member: str, epoch: int) -> ShareSession:
        """Return a member's session. Raises ApiError if there is none, or if `epoch` is neither its next nor FINAL."""
        session = self._sessions.get((group, member))
        if session is None:
            raise ApiError(ErrorCode.share_session_not_found)
        if epoch not in (FINAL, session.epoch):
            raise ApiError(ErrorCode.invalid_share_session_epoch)
        return session

    def begin(
        self, group: str, member: str, connection: Connection, partitions: Iterable[TopicPartition]
    ) -> ShareSession:
        """Begin a session, which replaces the member's old session. Raises ApiError if there are too many sessions."""
        self._remove(group, member)
        if len(self._sessions) >= self._limit:
            raise ApiError(ErrorCode.share_session_limit_reached)
        session = self._sessions[group, member] = ShareSession(group, member, connection, partitions)
        self._members[group] += 1
        self._begun_by[connection] = session
        return session

    def end(self, group: str, member: str) -> None:
        """End a member's session, and release the member's records."""
        session = self._remove(group, member)
        if session is not None:
            found = [self._shares.get(group, topic, index) for topic, index in session.partitions if topic is not None]
            release_all([share for share in found if share is not None], member, self._shares)

    def disconnected(self, connection: Connection) -> None:
        """End the session that a closed connection began, if it is still open. Forget a group without sessions."""
        session = self._begun_by.pop(connection, None)
        if session is None:
            return
        if self._sessions.get((session.group, session.member)) is session:
            self.end(session.group, session.member)
        if not self._members[session.group]:
            del self._members[session.group]
            self._shares.forget_group(session.group)

    def _remove(self, group: str, member: str) -> ShareSession | None:
        session = self._sessions.pop((group, member), None)
        if session is not None:
            self._members[group] -= 1
        return session
