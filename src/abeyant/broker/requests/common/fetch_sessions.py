"""Keep the sessions of incremental fetches (KIP-227): a consumer lists its partitions once, and then only changes.

A session keeps each partition's query, and the high watermark and log start that were last sent. Responses in a
session omit partitions without changes. Each broker keeps a limited number of sessions
(`max.incremental.fetch.session.cache.slots`). When all slots are taken, a session that was not used for two minutes is
evicted. If there is no such session, the client gets the session id 0, which means no session.
"""

from __future__ import annotations

import random
import uuid
from collections import OrderedDict
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.wire.schema import ErrorCode

NO_SESSION = 0
_FINAL_EPOCH = -1  # of a full fetch that ends its session
_FIRST_EPOCH = 0  # of a full fetch that begins a session
_LAST = (1 << 31) - 1
_EVICTION_AFTER = 120.0  # seconds

Key = tuple[str | None, uuid.UUID | None, int]


class SessionPartition:
    """One partition of a session: its query, and the high watermark and log start that were last sent."""

    __slots__ = ("last_marks", "query")

    def __init__(self, query: Any) -> None:
        self.query = query
        self.last_marks: tuple[int, int] | None = None  # high watermark and log start; None to send it in any case


class FetchSession:
    """The partitions that one consumer fetches from this broker."""

    __slots__ = ("epoch", "id", "partitions", "used_at", "uses_ids")

    def __init__(self, number: int, now: float, *, uses_ids: bool) -> None:
        self.id = number
        self.epoch = 1  # of the next fetch
        self.used_at = now  # seconds
        self.uses_ids = uses_ids
        self.partitions: dict[Key, SessionPartition] = {}

    def update(self, queries: list[Any], forgotten: list[Key]) -> None:
        """Add or replace the partitions in `queries`, and remove the partitions in `forgotten`."""
        for query in queries:
            partition = self.partitions.get(query.key)
            if partition is None:
                self.partitions[query.key] = SessionPartition(query)
            else:
                partition.query = query
        for key in forgotten:
            self.partitions.pop(key, None)

    def changes(self, results: list[Any]) -> list[Any]:
        """Return the results of this session's partitions that differ from the last response."""
        return [
            result
            for result in results
            if (partition := self.partitions.get(result.query.key)) is not None
            and (result.is_news or partition.last_marks != (result.high_watermark, result.start))
        ]

    def sent(self, changes: list[Any]) -> None:
        """Record the high watermarks and log starts that the response sends to the client."""
        for result in changes:
            marks = None if result.error is not ErrorCode.none else (result.high_watermark, result.start)
            self.keep(result.query.key, marks, moves=bool(result.records))

    def keep(self, key: Key, marks: tuple[int, int] | None, *, moves: bool) -> None:
        """Record that `marks` (high watermark, log start) were sent. With `moves`, the next fetch reads `key` last."""
        self.partitions[key].last_marks = marks
        if moves and len(self.partitions) > 1:
            self.partitions[key] = self.partitions.pop(key)


class FetchSessions:
    """A broker's sessions, least recently used first."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._random = random.Random()

    def __len__(self) -> int:
        return len(self._sessions)

    def session_for(
        self, request: Any, queries: list[Any], forgotten: list[Key], now: float, *, uses_ids: bool
    ) -> FetchSession | None:
        """Return the updated session of a fetch; None for a full fetch outside of a session.

        Raises ApiError if the session does not exist or its epoch does not match.
        """
        number, epoch = request.session_id, request.session_epoch
        if epoch in (_FINAL_EPOCH, _FIRST_EPOCH):
            if number != NO_SESSION:
                self._sessions.pop(number, None)
            if epoch == _FINAL_EPOCH or not queries:
                return None
            session = self._begin(now, uses_ids=uses_ids)
            if session is not None:
                session.update(queries, [])
            return session
        session = self._sessions.get(number)
        if session is None:
            raise ApiError(ErrorCode.fetch_session_id_not_found)
        if session.epoch != epoch:
            raise ApiError(ErrorCode.invalid_fetch_session_epoch)
        if session.uses_ids != uses_ids:
            raise ApiError(ErrorCode.fetch_session_topic_id_error)
        session.update(queries, forgotten)
        session.epoch = 1 if epoch == _LAST else epoch + 1
        session.used_at = now
        self._sessions.move_to_end(number)
        if not session.partitions:
            del self._sessions[number]
        return session

    def session_keys(self, request: Any) -> list[Key]:
        """Return all partitions of an incremental fetch's session; the request itself lists only changed partitions."""
        session = self._sessions.get(request.session_id) if request.session_epoch > _FIRST_EPOCH else None
        return [] if session is None else list(session.partitions)

    def end(self, number: int) -> None:
        """End a session, if there is one."""
        self._sessions.pop(number, None)

    def _begin(self, now: float, *, uses_ids: bool) -> FetchSession | None:
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or now - oldest.used_at <= _EVICTION_AFTER:
                return None
            del self._sessions[oldest.id]
        number = self._random.randint(1, _LAST)
        while number in self._sessions:
            number = self._random.randint(1, _LAST)
        session = self._sessions[number] = FetchSession(number, now, uses_ids=uses_ids)
        return session
