"""Find consumers that fetch seldom: times in which a client sent no fetch to a broker, though records waited there.

A *pause* is `PAUSE_MS` or more between the end of a client's fetch from a broker and the start of its next fetch, if
the next fetch found records at once. A consumer that fetches again as soon as it can has no pauses: it waits at the
broker. One pause says little (a group that rebalances has one). So a client's pauses at a broker count only if there
are at least `LEAST_PAUSES`, with no more than `PAUSES_APART_S` between the ends of one and the next.

Fetches are kept as *runs*: a run has no pause in it. So there are as few rows as pauses, however long the log is. Runs
of two chunks of a log, in any order, can be joined to the runs of both chunks together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.activity import Activity
from abeyant.pipeline.analysis.columns import Integers, codes, run_starts

__all__ = [
    "LEAST_PAUSES",
    "PAUSES_APART_S",
    "PAUSE_MS",
    "READING",
    "joined_reading",
    "longest_pauses",
    "pauses",
    "reading",
    "unfinished",
]

PAUSE_MS: Final = 1_000
LEAST_PAUSES: Final = 5
PAUSES_APART_S: Final = 60

READING: Final = pa.schema(
    {
        **dict.fromkeys(("kind", "instance", "client_id"), pa.string()),
        **dict.fromkeys(("first_us", "last_us"), pa.int64()),
        "found": pa.bool_(),
    }
)
"""Schema of runs: the first start, the last end, and whether the run's first fetch found records at once."""

_GROUP: Final = ("instance", "client_id")
_KIND: Final = "FETCH_CONSUMER"
_SECOND_US: Final = 1_000_000


def reading(operations: pa.Table) -> pa.Table:
    """Return the runs of consumers' fetches (`READING`) in `observed` operations. O(n log n)."""
    known = pc.and_(operations["start_us"].is_valid(), operations["client_id"].is_valid())
    fetches = operations.filter(pc.and_(known, pc.equal(operations["kind"], _KIND)))
    at_once = pc.equal(fetches["wait_us"], 0)
    has_records = pc.greater(fetches["size_bytes"].fill_null(1), 0)  # older logs do not have it
    columns = {
        **{name: fetches[name] for name in ("kind", *_GROUP)},
        "first_us": fetches["start_us"],
        "last_us": pc.add(fetches["start_us"], fetches["wait_us"]),
        "found": pc.and_(pc.and_(at_once, has_records), pc.equal(fetches["error_code"].fill_null(0), 0)),
    }
    return joined_reading(pa.table(columns, schema=READING))


def joined_reading(runs: pa.Table) -> pa.Table:
    """Join runs with no pause between them, and sort them by broker, client and time. O(n log n)."""
    runs = runs.sort_by([(name, "ascending") for name in (*_GROUP, "first_us")]).combine_chunks()
    if not runs.num_rows:
        return runs
    begins = run_starts([codes(runs[name])[0] for name in _GROUP])
    first, last = (runs[name].to_numpy() for name in ("first_us", "last_us"))
    latest = np.concatenate([np.maximum.accumulate(last[start:end]) for start, end in pairwise([*begins, len(last)])])
    is_first = np.ones(len(first), bool)
    is_first[1:] = first[1:] - latest[:-1] >= PAUSE_MS * 1000
    is_first[begins] = True
    starts = np.flatnonzero(is_first)
    first_rows = runs.take(pa.array(starts))
    at = READING.names.index("last_us")
    return first_rows.set_column(at, "last_us", pa.array(np.maximum.reduceat(last, starts))).cast(READING)


def pauses(runs: pa.Table) -> pa.Table:
    """Return the pauses between joined runs that count: kind, instance, client_id, and begin and end of each pause."""
    begins, ends, has_records, group = _pauses(runs)
    counts = has_records & np.isin(group, *_long_enough(group[has_records]))
    rows = runs.take(pa.array(np.flatnonzero(counts))).select(["kind", *_GROUP])
    return rows.append_column("first_us", pa.array(begins[counts])).append_column("last_us", pa.array(ends[counts]))


def unfinished(runs: pa.Table, before_us: int) -> pa.Table:
    """Return the joined runs that later pauses may need: each client's last run, and groups that reach `before_us`."""
    if not runs.num_rows:
        return runs
    _, _, _, group = _pauses(runs)
    starts = run_starts([group])
    reach = np.maximum.reduceat(runs["last_us"].to_numpy(), starts)
    recent = np.repeat(reach >= before_us, np.diff(np.append(starts, len(group))))
    clients = run_starts([codes(runs[name])[0] for name in _GROUP])
    recent[np.append(clients[1:], len(group)) - 1] = True
    return runs.filter(pa.array(recent))


def longest_pauses(activity: Iterable[Activity]) -> dict[str, list[int]]:
    """Return the lengths of each consumer's pauses at any broker, in µs, the longest first.

    `activity` is in order of time. A consumer without a pause has an empty list. Pauses count whether or not records
    waited: `activity` does not show that.
    """
    by_client: dict[str, list[int]] = defaultdict(list)
    latest: dict[tuple[str, str], int] = {}
    for row in activity:
        if row.kind == _KIND and row.client_id is not None:
            pair = row.instance, row.client_id
            before = latest.get(pair, row.first_us)
            by_client[row.client_id] += [row.first_us - before] if row.first_us - before >= PAUSE_MS * 1000 else []
            latest[pair] = max(before, row.last_us)
    return {client: sorted(lengths, reverse=True) for client, lengths in by_client.items()}


def _pauses(runs: pa.Table) -> tuple[Integers, Integers, npt.NDArray[np.bool_], Integers]:
    """Return each run's preceding pause: begin, end, whether the run found records at once, and its group of pauses."""
    first, last = (runs[name].to_numpy() for name in ("first_us", "last_us"))
    has_records = runs["found"].to_numpy(zero_copy_only=False).astype(bool)
    begins = np.concatenate([first[:1], last[:-1]])
    is_first = np.zeros(len(first), bool)
    if len(first):
        is_first[run_starts([codes(runs[name])[0] for name in _GROUP])] = True
        has_records = has_records & ~is_first
        is_first[1:] |= first[1:] - first[:-1] > PAUSES_APART_S * _SECOND_US
    return begins, first, has_records, np.cumsum(is_first)


def _long_enough(groups: Integers) -> tuple[Integers]:
    numbers, counts = np.unique(groups, return_counts=True)
    return (numbers[counts >= LEAST_PAUSES],)
