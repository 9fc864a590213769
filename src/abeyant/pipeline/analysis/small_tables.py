"""Compute the tables of an analysis that are small however long the log is, in three Spark jobs, as Arrow tables.

1. `waits_tables` counts waits by group, sorts the counts once, and ranks them.
2. `time_tables` needs from `waits_tables` which keys to count by time, and how long a wait of each kind is unusual.
3. `incident_tables` needs from `time_tables` the times of the incidents. Without incidents it runs no job.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from abeyant.pipeline.analysis.activity import (
    ACTIVITY_PARTS,
    Incident,
    count_near,
    in_order,
    merge_activity,
    times_near,
)
from abeyant.pipeline.analysis.by_time import (
    Slices,
    added_up,
    first_keys,
    keys_by_time,
    requests_by_time,
    waits_by_time,
)
from abeyant.pipeline.analysis.columns import TIMES, LogRows, observed, observed_columns
from abeyant.pipeline.analysis.incident_waits import FOUND, first_waits, incident_waits, waits_during
from abeyant.pipeline.analysis.incidents import LONG_WAITS, SUFFERING, incident_rows, long_waits, paused, suffering
from abeyant.pipeline.analysis.keys import KEY, by_key_rows, with_keys
from abeyant.pipeline.analysis.lags import FETCH_RUNS, LAG_SLICES, fetch_runs, joined, lag_rows
from abeyant.pipeline.analysis.packed import Packed, collected, merging, packed
from abeyant.pipeline.analysis.pauses import READING, joined_reading, reading
from abeyant.pipeline.analysis.ranked import count_waits, known_groups, rank, with_all_instances
from abeyant.pipeline.analysis.shards import Sharded, by_group, by_shard, shard_count
from abeyant.pipeline.analysis.summary import summary_rows, waits_rows
from abeyant.pipeline.analysis.timeout_curve import CURVE_POINTS, timeout_curve_rows
from abeyant.pipeline.request_log.rows import COUNTED, observed_rows
from abeyant.pipeline.schemas import ALL_INSTANCES, REQUESTS_BY_KIND, TABLES
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.packed import PACKED

__all__ = ["incident_tables", "time_tables", "waits_tables"]

_SERIES: Final = ("instance", "kind")
_BY_TIME: Final = ("keys", "error_code", "client_id", "size_bytes", *TIMES)
_COUNTED: Final[Mapping[str, tuple[str, ...]]] = {
    "waits_by_time": ("operations",),
    "keys_by_time": ("operations",),
    "requests_by_time": ("requests", "waited"),
}
"""Tables by time, and the columns that are summed in each."""
_JOINED: Final[Mapping[str, Callable[[pa.Table], pa.Table]]] = {"fetch_runs": joined, "reading": joined_reading}


def waits_tables(operations: LogRows, number: int) -> dict[str, pa.Table]:
    """Return the tables of ranked waits, and `long_waits`, in one job. `number` is the number of operations."""
    shards = shard_count(operations.sparkSession, number)
    rows = by_shard(observed(operations, "keys"), partial(_counts, shards=shards), shards, _of_shard, PACKED)
    schemas = {name: arrow_schema(TABLES[name]) for name in ("summary", "waits", "timeout_curve", "by_key")}
    return collected(rows, schemas | {"long_waits": arrow_schema(LONG_WAITS)})


def time_tables(operations: LogRows, slices: Slices, waits: Mapping[str, pa.Table], end_us: int) -> dict[str, pa.Table]:
    """Return the tables by time, `requests_by_kind`, `incidents` and `lags`, in one job.

    `waits` is the result of `waits_tables`. The log's requests, counted by the second, are read from `operations`, too.
    `end_us` is the end of the last operation.
    """
    long_us = dict(zip(*(waits["long_waits"][name].to_pylist() for name in LONG_WAITS.names), strict=True))
    count = partial(_by_time, slices=slices, first=first_keys(waits["by_key"]), long_us=long_us)
    rows = operations.map_named(count, {"operations": observed_columns(_BY_TIME), "requests": COUNTED.names}, PACKED)
    schemas = {name: arrow_schema(TABLES[name]) for name in _COUNTED}
    tables = collected(rows, schemas | {"suffering": SUFFERING, "fetch_runs": FETCH_RUNS, "reading": READING})
    summed = {name: added_up(tables[name], schemas[name].names, counts) for name, counts in _COUNTED.items()}
    by_kind = added_up(summed["requests_by_time"].drop_columns(["at"]), REQUESTS_BY_KIND.names, ("requests", "waited"))
    late = paused(joined_reading(tables["reading"]))
    return summed | {
        "requests_by_kind": by_kind,
        "incidents": incident_rows(pa.concat_tables([tables["suffering"], late])),
        "lags": lag_rows(joined(tables["fetch_runs"]), replace(slices, slices=LAG_SLICES), end_us),
    }


def _counts(table: pa.Table, shards: int) -> Iterator[Sharded]:
    waited = known_groups(table, _SERIES)
    series, on_keys = count_waits(waited, _SERIES), count_waits(with_keys(waited), KEY)
    # All instances of a kind are in one shard, which adds them up.
    yield "series", series, by_group(series, ["kind"], shards)
    yield "keys", on_keys, by_group(on_keys, KEY, shards)


def _of_shard(shard: dict[str, pa.Table]) -> Iterator[pa.Table]:
    return packed(_tables(shard))


def _tables(shard: dict[str, pa.Table]) -> Iterator[Packed]:
    if "keys" in shard:
        yield "by_key", by_key_rows(rank(shard["keys"], KEY))
    if "series" in shard:
        counts = with_all_instances(shard["series"])
        ranked = rank(counts, _SERIES)
        yield "summary", summary_rows(ranked)
        yield "waits", waits_rows(ranked)
        yield "timeout_curve", timeout_curve_rows(ranked, CURVE_POINTS)
        everywhere = counts.filter(pc.equal(counts["instance"], ALL_INSTANCES))
        yield "long_waits", long_waits(rank(everywhere, ("kind",)))


def incident_tables(operations: LogRows, incidents: Sequence[Incident]) -> dict[str, pa.Table]:
    """Return the counts near incidents (`activity`), and `incident_waits`, in one job; without incidents in no job."""
    schemas = {"activity": ACTIVITY_PARTS, "incident_waits": FOUND}
    tables = {name: schema.empty_table() for name, schema in schemas.items()}
    if incidents:
        columns = ("client_id", "error_code", "keys", *TIMES, "size_bytes", "timeout_ms")
        count = partial(_near_incidents, incidents=incidents)
        tables = collected(observed(operations, *columns).mapInArrow(count, PACKED), schemas)
    return {"activity": in_order(tables["activity"]), "incident_waits": incident_waits(tables["incident_waits"])}


def _near_incidents(batches: Iterable[pa.RecordBatch], *, incidents: Sequence[Incident]) -> Iterator[pa.RecordBatch]:
    times_us = times_near(incidents)

    def count(table: pa.Table) -> Iterator[Packed]:
        yield "activity", count_near(table, times_us)
        for waits in waits_during(table, incidents):
            yield "incident_waits", waits

    def merge(name: str, rows: pa.Table) -> pa.Table:
        return merge_activity(rows) if name == "activity" else first_waits(rows)

    return merging(batches, count, merge)


def _by_time(
    log: Iterable[tuple[str, pa.Table]], *, slices: Slices, first: pa.Table, long_us: Mapping[str, float]
) -> Iterator[pa.RecordBatch]:
    requests: list[pa.RecordBatch] = []

    def operations() -> Iterator[pa.RecordBatch]:
        for name, rows in log:
            if name == "operations":
                yield from observed_rows(rows, _BY_TIME).to_batches()
            elif name == "requests":
                requests.extend(rows.to_batches())

    def count(table: pa.Table) -> Iterator[Packed]:
        yield "waits_by_time", waits_by_time(table, slices)
        yield "keys_by_time", keys_by_time(table, slices, first)
        yield "suffering", suffering(table, long_us)
        yield "fetch_runs", fetch_runs(table, replace(slices, slices=LAG_SLICES))
        yield "reading", reading(table)

    def count_requests(table: pa.Table) -> Iterator[Packed]:
        yield "requests_by_time", requests_by_time(table, slices)

    yield from merging(operations(), count, _merge)
    yield from merging(requests, count_requests, _merge)


def _merge(name: str, rows: pa.Table) -> pa.Table:
    if name in _JOINED:
        return _JOINED[name](rows)
    counts: Sequence[str] | None = _COUNTED.get(name)
    return rows if counts is None else added_up(rows, rows.column_names, counts)
