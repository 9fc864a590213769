"""Count operations near incidents by second: the input of the rules for suspects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.columns import TIMES, Integers, codes, encode, merge_rows, microseconds, sorted_order

__all__ = [
    "ACTIVITY",
    "ACTIVITY_PARTS",
    "NEAR_S",
    "Activity",
    "Incident",
    "activity_of",
    "activity_rows",
    "count_near",
    "in_order",
    "incidents_of",
    "merge_activity",
    "times_near",
]

NEAR_S: Final = 60
"""Seconds before and after an incident in which operations are counted."""

_LONGEST_S: Final = 600
"""Only this many seconds of a longer incident are counted: its cause is near its beginning."""

_NAMES: Final = ("instance", "kind", "client_id", "group")
_GROUPED: Final = (*_NAMES, "error_code")  # with the second, the columns by which operations are counted
_MERGED: Final = {
    **dict.fromkeys(("operations", "expired", "busy_us", "local_us", "send_us"), np.add),
    "first_us": np.minimum,
    **dict.fromkeys(("last_us", "longest_us", "throttle_us", "size_bytes"), np.maximum),
}
_LEAST: Final = -(1 << 63)  # in place of a null of `size_bytes`


class Incident(NamedTuple):
    """A row of the table `incidents`, with its number: from 1, in the order of the table."""

    number: int
    kind: str
    first_us: int
    last_us: int
    operations: int
    expired: int
    instances: Sequence[str]
    keys: Sequence[str]
    trouble: str = "waited"


class Activity(NamedTuple):
    """Counts of the operations of one instance, kind, client, group and error code that started in one second."""

    instance: str
    kind: str
    client_id: str | None
    group: str | None
    """The consumer group of a JOIN_GROUP or SYNC_GROUP."""
    error_code: int | None
    second: int
    operations: int
    expired: int
    busy_us: int
    """Total time of waiting, handling and sending."""
    local_us: int
    """Total time of handling."""
    send_us: int
    """Total time of sending."""
    first_us: int
    """Earliest start."""
    last_us: int
    """Latest end of a wait."""
    longest_us: int
    """Longest wait."""
    throttle_us: int
    """Longest throttle time by a quota."""
    size_bytes: int | None
    """Most bytes of records in one operation."""


def incidents_of(table: pa.Table) -> list[Incident]:
    """Return the rows of the table `incidents`."""
    rows = table.append_column("first_us", table["first"].cast(pa.int64()))
    rows = rows.append_column("last_us", table["last"].cast(pa.int64()))
    names = [name for name in Incident._fields if name != "number"]
    columns = (rows[name].to_pylist() for name in names)
    return [
        Incident._make((number, *row, keys or ()))  # no keys where none is named
        for number, (*row, keys) in enumerate(zip(*columns, strict=True), 1)
    ]


def activity_of(operations: pa.Table, incidents: Sequence[Incident]) -> pa.Table:
    """Count the operations near the incidents (`ACTIVITY`), given an in-memory table with the columns of `observed`."""
    return in_order(count_near(operations, times_near(incidents))) if incidents else ACTIVITY.empty_table()


def activity_rows(activity: pa.Table) -> Iterator[Activity]:
    """Yield the rows of `ACTIVITY`."""
    for batch in activity.to_batches(_ROWS):
        yield from map(Activity._make, zip(*(column.to_pylist() for column in batch.columns), strict=True))


def in_order(counts: pa.Table) -> pa.Table:
    """Merge the counts of several tasks (`ACTIVITY_PARTS`) into one table in order of time (`ACTIVITY`)."""
    merged = merge_activity(counts)
    # Of one time, by name: not by how the log was cut for the tasks.
    names = [_ranks(merged[name]) for name in _GROUPED]
    return merged.take(pa.array(sorted_order([merged["first_us"].to_numpy(), *names]))).cast(ACTIVITY)


def _ranks(column: pa.ChunkedArray) -> Integers:
    """Return numbers that sort like a column's values, null last."""
    numbers, values = codes(column)
    ranks = np.empty(len(values), np.int64)
    ranks[pc.sort_indices(values).to_numpy()] = np.arange(len(values))
    return ranks[numbers]


ACTIVITY: Final = pa.schema({name: pa.string() if name in _NAMES else pa.int64() for name in Activity._fields})
_TEXT: Final = pa.dictionary(pa.int32(), pa.string())
ACTIVITY_PARTS: Final = pa.schema({name: _TEXT if name in _NAMES else pa.int64() for name in Activity._fields})
"""`ACTIVITY` with its names encoded: counts of several tasks, not merged yet."""
_ROWS: Final = 1 << 12


def times_near(incidents: Iterable[Incident]) -> list[tuple[int, int]]:
    """Return the intervals (begin, end) near incidents in microseconds, disjoint and in order."""
    near = NEAR_S * 1_000_000
    times: list[tuple[int, int]] = []
    for incident in sorted(incidents, key=lambda incident: incident.first_us):
        begin = incident.first_us - near
        end = min(incident.last_us, incident.first_us + _LONGEST_S * 1_000_000) + near
        if times and begin <= times[-1][1]:
            times[-1] = times[-1][0], max(times[-1][1], end)
        else:
            times.append((begin, end))
    return times


def count_near(operations: pa.Table, times_us: Sequence[tuple[int, int]]) -> pa.Table:
    """Count the operations that started in `times_us` (`ACTIVITY_PARTS`, in no order). O(n log n)."""
    started = operations.filter(operations["start_us"].is_valid())
    start = started["start_us"].to_numpy()
    before = np.searchsorted([begin for begin, _ in times_us], start, side="right") - 1
    near = (before >= 0) & (start <= np.array([end for _, end in times_us])[before])
    rows, start = started.filter(pa.array(near)), start[near]
    wait = rows["wait_us"].to_numpy()
    local, send, throttle = (microseconds(rows[name]) for name in TIMES)
    columns = {
        **{name: rows[name] for name in ("instance", "kind", "client_id")},
        "group": _groups(rows),
        "error_code": rows["error_code"].cast(pa.int64()),
        "second": start // 1_000_000,
        "operations": np.ones(len(start), np.int64),
        "expired": pc.equal(rows["outcome"], "expired").fill_null(False).cast(pa.int64()),
        "busy_us": wait + local + send,
        "local_us": local,
        "send_us": send,
        "first_us": start,
        "last_us": start + wait,
        "longest_us": wait,
        "throttle_us": throttle,
        "size_bytes": rows["size_bytes"],
    }
    return merge_activity(pa.table(columns))


def _groups(rows: pa.Table) -> pa.Array:
    """Return the consumer group of each JOIN_GROUP and SYNC_GROUP, from its key (`join-G`, `sync-G`); else null."""
    joins = pc.is_in(rows["kind"], pa.array(["JOIN_GROUP", "SYNC_GROUP"])).to_numpy().nonzero()[0]
    groups: list[str | None] = [None] * rows.num_rows
    for row, keys in zip(joins.tolist(), rows["keys"].take(pa.array(joins)).to_pylist(), strict=True):
        groups[row] = keys[0][len("join-") :] if keys and keys[0] is not None else None
    return pa.array(groups, pa.string())


def merge_activity(rows: pa.Table) -> pa.Table:
    """Merge counts to one row (`ACTIVITY_PARTS`) for each distinct value of `_GROUPED` and the second. O(n log n)."""
    encoded = {name: codes(rows[name]) for name in _GROUPED}
    group = [*(number for number, _ in encoded.values()), rows["second"].to_numpy()]
    counts = [(rows[name].fill_null(_LEAST).to_numpy(), reduce) for name, reduce in _MERGED.items()]
    (*numbers, second), merged = merge_rows(group, counts)
    columns = dict(zip(_MERGED, merged, strict=True)) | {"second": second}
    for (name, (_, values)), number in zip(encoded.items(), numbers, strict=True):
        columns[name] = encode(number, values)
    size = columns["size_bytes"]
    columns["size_bytes"] = pa.array(size, mask=size == _LEAST)
    return pa.table(columns).select(ACTIVITY_PARTS.names).cast(ACTIVITY_PARTS)
