"""ShareFetch (key 78, versions 1-2): acquire records for a member of a share group, at once or once some are available.

A request may carry acknowledgements, which are applied first.
Kafka: `KafkaApis.handleShareFetchRequest`, `DelayedShareFetch`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from itertools import chain

from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.shares import (
    Results,
    TopicPartition,
    acknowledge,
    by_topic,
    lock_timeout,
    message_of,
    name_leaders,
    new_row,
    require_member,
    require_topic,
)
from abeyant.broker.shares.partition import Phase, SharePartition
from abeyant.broker.shares.partitions import release_all
from abeyant.broker.shares.reading import Demand, read
from abeyant.broker.shares.sessions import FINAL, INITIAL, ShareSession
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"ShareFetchRequest": {"share_acquire_mode": 0, "is_renew_ack": False}}
_MODES = _BATCH_OPTIMIZED, _RECORD_LIMIT = 0, 1  # acquire modes (KIP-1206)
Rows = dict[TopicPartition, Message]


class DelayedShareFetch(BrokerOperation):
    """A share fetch in the ShareFetch purgatory, keyed by its share partitions."""

    __slots__ = ("_answer", "_min_bytes", "shares")

    kind = "ShareFetch"

    def __init__(
        self,
        timeout: float,
        min_bytes: int,
        shares: list[SharePartition],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait at most `timeout` seconds, then call `answer`, which acquires the records."""
        super().__init__(timeout, client_id, since)
        self.shares = shares
        self._min_bytes = min_bytes
        self._answer = answer

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topic and index of each partition."""
        return (share.partition.key for share in self.shares)

    def try_complete(self) -> bool:
        """Complete when `min_bytes` can be acquired, or when this broker can no longer read a share partition."""
        total, any_acquirable = 0, False
        for share in self.shares:
            if share.phase is Phase.FENCED:
                return self.force_complete()
            if share.acquirable:
                any_acquirable = True
                total += share.available_bytes()
        return any_acquirable and total >= self._min_bytes and self.force_complete()

    def on_complete(self) -> None:
        """Call `answer`, which acquires the records."""
        self._answer()


class _ShareFetch:
    """One request, which gets its response once its acknowledgements are stored and its records acquired."""

    def __init__(self, call: Call, session: ShareSession | None, subsequent: bool) -> None:
        self._call = call
        self._session = session
        self._subsequent = subsequent
        self._rows: Rows | None = None
        self._acknowledged: Results | None = None
        self._acquired_of: list[SharePartition] = []

    def begin(self) -> None:
        """Apply the acknowledgements, and fetch without waiting until they are stored."""
        request = self._call.request
        if _has_acknowledgements(self._call):
            acknowledge(self._call, self._set_acknowledged)
        else:
            self._acknowledged = {}
        if self._session is None or request.is_renew_ack:
            self._set_rows({})
        else:
            self._fetch(list(self._session.partitions))

    def _fetch(self, keys: list[TopicPartition]) -> None:
        call, request = self._call, self._call.request
        turn = request.share_session_epoch % len(keys) if keys else 0
        rows: Rows = {}
        shares: list[SharePartition] = []
        wants = request.max_records > 0 and request.max_bytes > 0
        for key in [*keys[turn:], *keys[:turn]]:
            try:
                name = require_topic(call, *key)
                if wants:
                    partition = call.partition(name, None, key[1])
                    opened = partial(self._opened, rows, key)
                    shares.append(call.broker.shares.open(request.group_id, partition, opened))
            except ApiError as error:
                rows[key] = _row(key[1], error)
        if not shares:
            self._set_rows(rows)
            return
        operation = DelayedShareFetch(
            request.max_wait.total_seconds(), min(request.min_bytes, request.max_bytes), shares, call.client_id,
            call.since, lambda: self._set_rows(self._acquire(rows, shares)),
        )  # fmt: skip
        if request.max_wait > timedelta(0):
            call.broker.share_fetch_purgatory.try_complete_else_watch(operation, shares)
        elif not operation.try_complete():
            operation.force_complete()

    def _opened(self, rows: Rows, key: TopicPartition, error: ApiError | None) -> None:
        if error is not None:
            rows[key] = _row(key[1], error)

    def _acquire(self, rows: Rows, shares: list[SharePartition]) -> Rows:
        request = self._call.request
        acquirable = [share for share in shares if share.acquirable]
        max_bytes = min(request.max_bytes, self._call.broker.cluster.settings["fetch.max.bytes"])
        demand = Demand(
            request.member_id, self._call.client_id, max_bytes // max(len(acquirable), 1), request.max_records,
            request.batch_size, strict=request.share_acquire_mode == _RECORD_LIMIT,
        )  # fmt: skip
        for share in shares:
            key = share.partition.topic_id, share.partition.index
            if share.phase is Phase.FENCED:
                rows.setdefault(key, _row(key[1], ApiError(ErrorCode.not_leader_or_follower)))
        for share in acquirable:
            records, acquired = read(share, demand)
            if acquired:
                self._acquired_of.append(share)
            row = rows[share.partition.topic_id, share.partition.index] = _row(share.partition.index, None)
            row.records = records
            row.acquired_records = [
                Message(first_offset=one.first, last_offset=one.last, delivery_count=one.deliveries) for one in acquired
            ]
        return rows

    def _set_acknowledged(self, results: Results) -> None:
        self._acknowledged = results
        self._answer()

    def _set_rows(self, rows: Rows) -> None:
        self._rows = rows
        self._answer()

    def _answer(self) -> None:
        rows, acknowledged = self._rows, self._acknowledged
        if rows is None or acknowledged is None:
            return
        call, request = self._call, self._call.request
        endpoints = name_leaders(call, rows.items())
        if self._subsequent and self._session is not None:
            rows = _news(self._session, rows)
        for key, error in acknowledged.items():
            row = rows.setdefault(key, _row(key[1], None))
            row.acknowledge_error_code = 0 if error is None else error.code.value
            row.acknowledge_error_message = message_of(error)
        if request.share_session_epoch == FINAL:
            call.broker.share_sessions.end(request.group_id, request.member_id)
        call.answer(
            Message(
                acquisition_lock_timeout=lock_timeout(call), responses=by_topic(rows.items()), node_endpoints=endpoints
            )
        )
        self._release_unsent()

    def _release_unsent(self) -> None:
        """Release the acquired records if the connection was lost during the wait, unless the member has a new session.

        Kafka notices a lost connection only when it sends the response, and ends the session then.
        """
        call, request = self._call, self._call.request
        if (
            self._acquired_of
            and call.connection.closed
            and not call.broker.share_sessions.has(request.group_id, request.member_id)
        ):
            release_all(self._acquired_of, request.member_id, call.broker.shares)


def handle(call: Call) -> None:
    """Begin or continue the share session, and fetch."""
    require_member(call)
    if call.request.share_acquire_mode not in _MODES:
        raise ApiError(ErrorCode.invalid_request)
    _check_renewal(call)
    try:
        session, subsequent = _session(call)
    except ApiError as error:
        if error.code is not ErrorCode.share_session_limit_reached:
            raise
        _refuse_later(call, error)
        return
    _ShareFetch(call, session, subsequent).begin()


def _session(call: Call) -> tuple[ShareSession | None, bool]:
    """Return the share session (None at the final epoch), and whether an earlier request began it. Raises ApiError."""
    request, sessions = call.request, call.broker.share_sessions
    named = [(topic.topic_id, row.partition_index) for topic in request.topics for row in topic.partitions]
    if request.share_session_epoch == INITIAL:
        if _has_acknowledgements(call):
            raise ApiError(ErrorCode.invalid_request)
        return sessions.begin(request.group_id, request.member_id, call.connection, named), False
    session = sessions.require(request.group_id, request.member_id, request.share_session_epoch)
    if request.share_session_epoch == FINAL:
        return None, True
    for key in named:
        session.partitions.setdefault(key, True)
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            session.partitions.pop((topic.topic_id, index), None)
    session.advance()
    return session, True


def _refuse_later(call: Call, error: ApiError) -> None:
    """Respond with the error after the fetch's maximum wait, so that the client does not retry at once."""
    operation = DelayedShareFetch(
        call.request.max_wait.total_seconds(), 0, [], call.client_id, call.since,
        lambda: call.answer(Message(error_code=error.code)),
    )  # fmt: skip
    call.broker.share_fetch_purgatory.try_complete_else_watch(operation, [operation])


def _has_acknowledgements(call: Call) -> bool:
    rows = chain.from_iterable(topic.partitions for topic in call.request.topics)
    return any(row.acknowledgement_batches for row in rows)


def _check_renewal(call: Call) -> None:
    """Raise ApiError if a request that renews locks also fetches records."""
    request = call.request
    if not request.is_renew_ack:
        return
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait > timedelta(0):
        raise ApiError(ErrorCode.invalid_request)


def _row(index: int, error: ApiError | None) -> Message:
    """Return a partition's row of the response, without records."""
    row = new_row(index, error)
    row.acknowledge_error_code = 0
    row.records = b""
    row.acquired_records = []
    return row


def _news(session: ShareSession, rows: Rows) -> Rows:
    """Return the rows that a response in a session must include. Note in the session which partitions failed."""
    found: Rows = {}
    for key, row in rows.items():
        failed = row.error_code is not ErrorCode.none
        if row.records or failed or session.partitions.get(key):
            found[key] = row
        if key in session.partitions:
            session.partitions[key] = failed
    return found
