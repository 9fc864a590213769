"""The tables of the pipeline: their Spark schemas.

Times are Spark timestamps (microseconds); numbers carry their unit in the name. In every table that sums over
instances, the instance `*` stands for all of them together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from abeyant.errors import RejectedRowsWarning, SchemaError
from abeyant.tables.defaults import REJECT_REASON

__all__ = [
    "ALL_INSTANCES",
    "ANSWERS",
    "DETAILS",
    "EVENTS",
    "FURTHER",
    "HOW_LONG",
    "OPERATIONS",
    "OUTCOMES",
    "PENDING_WATCHES",
    "REJECTED_ROW",
    "REJECTED_ROWS",
    "REJECT_REASON",
    "TABLES",
    "RejectedRowsWarning",
    "SchemaError",
]

ALL_INSTANCES: Final = "*"

_STRING, _LONG, _DOUBLE, _TIME = StringType(), LongType(), DoubleType(), TimestampType()

WATCHES: Final = ArrayType(StructType([StructField("key", _STRING, False), StructField("required", _LONG)]), False)


def _table(**columns: DataType) -> StructType:
    return StructType([StructField(name, kind) for name, kind in columns.items()])


OPERATIONS: Final = _table(
    instance=_STRING,  # one purgatory: a broker, a tenant
    op_id=_STRING,  # unique within its instance; from a log: the file and line, `kafka-request.log:17`
    kind=_STRING,  # PRODUCE, FETCH_CONSUMER, ...
    start=_TIME,  # when the wait began
    timeout_ms=_LONG,  # null where the operation has none or the log does not show it
    watches=WATCHES,  # `required`: the least progress of the key; null where unknown
    condition=_STRING,  # `all` or `any` of the watches
)
"""Operations: the input of `resolve`, the replay and the analysis."""

HOW_LONG: Final = ("timeout_ms", "timeout", "deadline")
"""The columns that may hold an operation's time limit. If a table has several, the first in this order is read."""
FURTHER: Final[Mapping[str, DataType]] = {
    "cancel_key": _STRING,
    "extend_key": _STRING,
    "pause_key": _STRING,
    "extend_ms": _LONG,
    "extend": DayTimeIntervalType(),
}
"""Optional columns of operations that `resolve` reads. Duplicates of an operation are compared in this order."""

OBSERVED: Final = StructType(
    [
        *OPERATIONS.fields,
        StructField("outcome", _STRING),  # `completed`, `expired`, null where the log does not show it
        StructField("waited_ms", _DOUBLE),  # 0 for an operation that completed at its start
        StructField("api", _STRING),  # the request's name in the protocol, as in requests_by_kind
        StructField("error_code", IntegerType()),  # Kafka's, 0 for none, null where no response is logged
        StructField("client_id", _STRING),
        StructField("local_ms", _DOUBLE),  # handling, before the wait
        StructField("send_ms", _DOUBLE),  # sending the response
        StructField("throttle_ms", _DOUBLE),  # for which a quota made the client pause
        StructField(
            "size_bytes", _LONG
        ),  # of records: of a produce's request, a fetch's response; null where not logged
    ]
)
"""Operations that a log shows, with their outcomes."""

EVENTS: Final = _table(instance=_STRING, key=_STRING, at=_TIME, progress=_LONG)

REJECTED_ROW: Final = "_unreadable_row"
"""The column that a source may add to operations and events beside `REJECT_REASON`: the row itself, as JSON."""

OUTCOMES: Final = _table(instance=_STRING, op_id=_STRING, kind=_STRING, outcome=_STRING, at=_TIME, waited_ms=_DOUBLE)

_BY: Final = _table(key=_STRING, at=_TIME)
DETAILS: Final = StructType(
    [
        *OUTCOMES.fields,
        StructField("completed_by", _BY),  # the watch that completed it, and since when it was met
        StructField("cancelled_by", _BY),
        StructField("counted", _LONG),  # number of events counted
    ]
)
"""The columns of outcomes with `details=True`."""

REJECTED_ROWS: Final = _table(
    table=_STRING,  # `operations` or `events`
    reason=_STRING,  # as in `rejected_operations` and `rejected_events`, or `late: ...`
    row=_STRING,  # the whole row, as JSON
)
"""The rejected rows of a stream: rows that have no part in any outcome, and why."""

ANSWERS: Final = StructType([*OUTCOMES.fields, *REJECTED_ROWS.fields])
"""The rows that `resolve_stream` returns: outcomes (`reason` is null) and rejected rows (`outcome` is null)."""

PENDING_WATCHES: Final = _table(
    instance=_STRING,
    op_id=_STRING,
    kind=_STRING,
    key=_STRING,
    required=_LONG,
    start=_TIME,  # when the wait began
    deadline=_TIME,  # when it expires
)
"""The rows that `read_pending` returns: one for each watch that an operation still waits for."""

REJECTED: Final = _table(
    instance=_STRING,
    file=_STRING,
    line_number=_LONG,  # from 1; where a file is damaged, the line that could not be reached
    reason=_STRING,
    excerpt=_STRING,  # the beginning of the line, printable
)

REQUESTS_BY_KIND: Final = _table(instance=_STRING, api=_STRING, requests=_LONG, waited=_LONG)

_PERCENTILES: Final = {"p50_ms": _DOUBLE, "p95_ms": _DOUBLE, "p99_ms": _DOUBLE, "max_ms": _DOUBLE}

SUMMARY: Final = _table(
    instance=_STRING,
    kind=_STRING,
    operations=_LONG,
    waited=_LONG,  # operations with a wait above 0
    completed=_LONG,
    expired=_LONG,
    unknown=_LONG,
    expired_share=_DOUBLE,  # of those whose outcome is known; null when none is
    **_PERCENTILES,  # nearest rank, over all operations, those that did not wait among them
)

BY_KEY: Final = _table(
    instance=_STRING,
    kind=_STRING,
    key=_STRING,
    operations=_LONG,
    completed=_LONG,
    expired=_LONG,
    expired_share=_DOUBLE,
    **_PERCENTILES,
    total_waited_ms=_DOUBLE,
)

PENDING: Final = _table(instance=_STRING, kind=_STRING, at=_TIME, pending=_LONG)
"""The number of pending operations over time: a row for each change; `pending` holds from `at` to the next row."""

TIMEOUT_CURVE: Final = _table(
    instance=_STRING,
    kind=_STRING,
    timeout_ms=_DOUBLE,
    at_risk=_LONG,  # operations that waited at least `timeout_ms`
    completed=_LONG,  # of those, operations that completed after exactly `timeout_ms`
    share_expiring=_DOUBLE,  # share that would expire with this time-out
    low=_DOUBLE,  # 95 % confidence band of share_expiring
    high=_DOUBLE,
)

WAITS: Final = _table(
    instance=_STRING,
    kind=_STRING,
    outcome=_STRING,  # `completed`, `expired`, `unknown`
    low_ms=_DOUBLE,  # waits in [low_ms, high_ms); both 0 for those that did not wait
    high_ms=_DOUBLE,
    operations=_LONG,
)

WAITS_BY_TIME: Final = _table(
    instance=_STRING,
    kind=_STRING,
    at=_TIME,  # when the slice of time begins in which they started
    outcome=_STRING,
    step=_LONG,  # waits from 10 ** (step / 10) ms on, to those of the next step; null for those that did not wait
    operations=_LONG,
)

KEYS_BY_TIME: Final = _table(
    instance=_STRING,
    kind=_STRING,
    key=_STRING,  # only those that are among the first in `by_key`
    at=_TIME,
    outcome=_STRING,
    step=_LONG,
    operations=_LONG,
)

REQUESTS_BY_TIME: Final = _table(instance=_STRING, api=_STRING, at=_TIME, requests=_LONG, waited=_LONG)

LAGS: Final = _table(
    instance=_STRING,  # the leader's log
    replica=_LONG,  # broker id of the follower
    at=_TIME,  # begin of the time slice
    lag_ms=_DOUBLE,  # longest time in it in which the follower had sent no fetch, and none was waiting
)
"""The lag of followers behind leaders, by time slice: see `analysis.lags`."""

INCIDENTS: Final = _table(
    kind=_STRING,
    trouble=_STRING,  # `waited` (expired, or waited long), `throttled`, `handled`, `sent`, `rebalanced`, `refused`
    first=_TIME,  # the first of its operations' starts
    last=_TIME,  # the last of their ends
    operations=_LONG,  # that had this trouble
    expired=_LONG,  # of these; long polls are not counted here
    longest_ms=_DOUBLE,
    instances=ArrayType(_STRING, False),  # on which they waited
    keys_struck=_LONG,  # number of keys they waited on; null where none is named
    keys=ArrayType(_STRING, False),  # the keys that most of them waited on
)
"""Bursts of expiries, long waits and other troubles: see `analysis.incidents`."""

INCIDENT_WAITS: Final = _table(
    incident=_LONG,  # its number, from 1, in the order of INCIDENTS
    instance=_STRING,
    kind=_STRING,
    key=_STRING,  # the first, of those that the incident names if it waited on one
    start=_TIME,
    timeout_ms=_LONG,
    waited_ms=_DOUBLE,
    outcome=_STRING,
)
"""Operations that waited during the worst incidents, at most 250 of each: see `analysis.incident_waits`."""

SUSPECTS: Final = _table(
    incident=_LONG,  # its number, from 1, in the order of INCIDENTS: by first start, kind, trouble
    suspect=_STRING,  # `broker 2`, `group payments`, `client app-b`
    kind=_STRING,  # the rule that named it
    evidence=_STRING,  # one sentence
    confidence=_DOUBLE,  # from 0 to 1; the likeliest suspect of an incident comes first
    first=_TIME,
    last=_TIME,
)
"""The suspected causes of incidents: see `analysis.suspects`. An incident without a row has no suspect."""

REPLAYED: Final = _table(
    instance=_STRING,
    tick_ms=_DOUBLE,
    wheel_size=_LONG,
    timeout_ms=_LONG,  # null: each operation's own
    purge_interval=_LONG,  # null: no purges were replayed
    operations=_LONG,  # of the trace
    left_out=_LONG,  # of the instance, but not in the trace: no start, no known end, or no time-out
    completed=_LONG,
    expired=_LONG,
    unknown=_LONG,  # of the expired: the log ends their wait before this time-out, so they may have completed
    completed_at_start=_LONG,  # of the completed: the condition held at the start, so no timer was started
    overtaken=_LONG,  # of the expired: the condition came true before the wheel's tick; null without events
    first=_TIME,  # the first start
    last=_TIME,  # when the last timer had ended
    timers=_LONG,  # started: one for each operation that had to wait
    pending_most=_LONG,
    pending_mean=_DOUBLE,  # over the time from first to last
    lateness_mean_ms=_DOUBLE,  # from the deadline to the expiry of an operation; null where nothing expired
    lateness_most_ms=_DOUBLE,
    cascades=_LONG,  # times that a timer moved to a lower wheel before its deadline
    levels=_LONG,  # wheels needed
    wakeups=_LONG,  # instants at which the driver woke
    bucket_operations=_LONG,  # buckets put into the delay queue and taken out of it
    memory_bytes=_LONG,  # of the wheel with most pending: tasks and buckets
    watched_most=_LONG,  # with a purge interval, in Kafka's design: entries on watch lists, of ended operations too
    purges=_LONG,
    purged_past=_LONG,  # entries that purges looked at
)
"""A row for each instance and configuration of a replay."""

REPLAYED_PENDING: Final = _table(instance=_STRING, timeout_ms=_LONG, at=_TIME, pending=_LONG)

WHAT_IF: Final = _table(
    instance=_STRING,
    kind=_STRING,
    timeout_ms=_LONG,
    operations=_LONG,
    completed=_LONG,
    expired=_LONG,  # for certain
    unknown=_LONG,  # the log ends their wait before this time-out: completed or expired
    expired_share=_DOUBLE,  # at least, the unknown having completed
    expired_share_most=_DOUBLE,  # at most, the unknown having expired
    **_PERCENTILES,  # nearest rank, over all operations; null where it depends on unknown ones
)

OWN_TIMEOUTS: Final = _table(
    instance=_STRING,
    kind=_STRING,
    operations=_LONG,  # that have a time-out
    least_ms=_LONG,
    median_ms=_LONG,
    most_ms=_LONG,
    expired_least_ms=_LONG,  # of those that expired
    expired_most_ms=_LONG,
)
"""The time-outs that operations had, by instance (`*`: all) and kind."""

CLIENT_TIMEOUTS: Final = _table(
    kind=_STRING,
    client_id=_STRING,
    timeout_ms=_LONG,
    operations=_LONG,
    expired=_LONG,
)
"""The time-outs that operations had, by kind and client, on all instances."""

REPLICATION: Final = _table(
    instance=_STRING,
    op_id=_STRING,  # of the request that shows it
    key=_STRING,
    what=_STRING,  # see `kafka_replication`
    at=_TIME,
    offset=_LONG,
    replica=_LONG,
    in_sync=ArrayType(_LONG),
    handling_ms=_DOUBLE,
    timeout_ms=_LONG,
    outcome=_STRING,
    waited_ms=_DOUBLE,
)
"""The facts that a request log shows about replication."""

HIGH_WATERMARKS: Final = StructType(
    [
        *EVENTS.fields,  # the instance is the leader, the key a partition, the progress its high watermark
        StructField("cause", _STRING),  # `fetch` of a follower, `isr` change, `append` where the leader is alone
        StructField("replica", _LONG),  # broker id of the follower that fetched
        StructField("handling_ms", _DOUBLE),  # how long the leader handled it, until `at`
    ]
)

PRODUCES: Final = StructType([*OPERATIONS.fields, *(OBSERVED[name] for name in ("outcome", "waited_ms"))])
"""Produces with acks=all that were appended: as operations on high watermarks, with their outcomes in the log."""

PREDICTIONS: Final = _table(
    instance=_STRING,
    op_id=_STRING,
    start=_TIME,
    timeout_ms=_LONG,
    logged=_STRING,  # the outcome in the log
    logged_ms=_DOUBLE,  # the wait in the log
    predicted=_STRING,
    predicted_ms=_DOUBLE,
    error_ms=_DOUBLE,  # predicted_ms - logged_ms
    cause=_STRING,  # of the high watermark that completes it, as in HIGH_WATERMARKS; null where that is at its start
    replica=_LONG,
    handling_ms=_DOUBLE,
    explanation=_STRING,
)

TABLES: Final[Mapping[str, StructType]] = {
    "operations": OBSERVED,
    "rejected": REJECTED,
    "requests_by_kind": REQUESTS_BY_KIND,
    "summary": SUMMARY,
    "by_key": BY_KEY,
    "pending": PENDING,
    "pending_plot": PENDING,
    "timeout_curve": TIMEOUT_CURVE,
    "waits": WAITS,
    "lags": LAGS,
    "incidents": INCIDENTS,
    "suspects": SUSPECTS,
    "incident_waits": INCIDENT_WAITS,
    "waits_by_time": WAITS_BY_TIME,
    "keys_by_time": KEYS_BY_TIME,
    "requests_by_time": REQUESTS_BY_TIME,
}
"""The tables of an analysis, by the name of their Parquet directory."""
