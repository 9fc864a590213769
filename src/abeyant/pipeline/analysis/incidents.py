"""Find incidents: bursts of operations that expired, or took far longer than is usual for their kind.

An operation *suffers* from the first of these troubles that it has:

    waited      it expired, and is no long poll (a fetch), which ordinarily expires; or it waited `LONG_TIMES` times as
                long as is usual for its kind, and at least `LONG_MS`. Usual is the 95th percentile of the waits that
                were not 0. For operations that wait on replication, it is at most three times the median, or
                `LEAST_USUAL_MS` if that is more: so a lasting fault does not become usual
    throttled   a quota made its client pause for `LONG_MS`
    handled     its handling took `LONG_MS`
    sent        sending the response took `LONG_MS`
    rebalanced  it joined a group, and waited `LONG_MS`
    refused     a client's produce or fetch got the error that the leader is elsewhere or too few replicas are in sync
    paused      a consumer's fetch came late though records were waiting, as did others of its fetches (`pauses`)

A *burst* is a run of operations of one kind and trouble, on any broker, in which each operation ends at most `GAP_S`
whole seconds after the previous operation (`PAUSES_APART_S` for `paused`). A burst of at least `LEAST` operations is an
incident. A healthy cluster, too, has a few requests that are handled, sent or joined slowly: bursts of these troubles
need `LEAST_MANY` operations, unless one operation took `STUCK_MS`, or `UNREAD_MS` to send, as only to a slow reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from abeyant.pipeline.analysis.columns import TIMES, codes, decoded, microseconds, observed
from abeyant.pipeline.analysis.keys import with_keys
from abeyant.pipeline.analysis.pauses import PAUSES_APART_S, joined_reading, pauses, reading
from abeyant.pipeline.analysis.ranked import Ranked, rank_by_group
from abeyant.pipeline.analysis.shards import Sharded, by_group, by_shard, shard_count
from abeyant.pipeline.request_log.operation import LONG_POLLS
from abeyant.pipeline.schemas import INCIDENTS
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = [
    "GAP_S",
    "LEAST",
    "LEAST_MANY",
    "LEAST_USUAL_MS",
    "LONG_MS",
    "LONG_TIMES",
    "LONG_WAITS",
    "MOST_KEYS",
    "STUCK_MS",
    "SUFFERING",
    "UNREAD_MS",
    "gap_s",
    "incident_rows",
    "incidents",
    "long_waits",
    "paused",
    "suffering",
]

LONG_TIMES: Final = 10
LONG_MS: Final = 100
GAP_S: Final = 10
LEAST: Final = 3
LEAST_MANY: Final = 10
LEAST_USUAL_MS: Final = 25
STUCK_MS: Final = 10_000
UNREAD_MS: Final = 2_000
MOST_KEYS: Final = 5
"""Maximum keys that an incident names: the keys on which most of its operations waited."""

LONG_WAITS: Final = StructType([StructField("kind", StringType()), StructField("long_us", DoubleType())])

_MANY: Final = ("handled", "sent", "rebalanced")
_REPLICATED: Final = ("PRODUCE", "OFFSET_COMMIT", "TXN_OFFSET_COMMIT")
_USUAL: Final = 0.95
_MEDIANS: Final = 3
_REFUSALS: Final = (6, 19, 20, 74)  # NOT_LEADER_OR_FOLLOWER, NOT_ENOUGH_REPLICAS (after append), FENCED_LEADER_EPOCH
_REFUSED: Final = ("PRODUCE", "FETCH_CONSUMER", "SHARE_FETCH")
# Rows with an instance count operations; rows with a key say how many of them waited on it.
SUFFERING: Final = pa.schema(
    {
        **dict.fromkeys(("kind", "trouble", "instance", "key"), pa.string()),
        **dict.fromkeys(("second", "first_us", "last_us", "longest_us", "operations", "expired"), pa.int64()),
    }
)
# Aggregates that merge the counts of parts of a second, or of a burst.
_MERGED: Final = {
    "first_us": "min",
    "last_us": "max",
    "longest_us": "max",
    "operations": "sum",
    "expired": "sum",
}
_BURST: Final = ("kind", "trouble")
_AGGREGATES: Final = ("_min", "_max", "_sum", "_distinct")


def incidents(operations: DataFrame) -> DataFrame:
    """Return the incidents of a log (`schemas.INCIDENTS`): bursts of operations that expired or took very long.

    A job runs at once, to find the shortest wait of each kind that counts as suffering; the rest is lazy.
    """
    rows = observed(operations, "keys", "error_code", "client_id", "size_bytes", *TIMES)
    waits = rows.select("kind", "wait_us", "outcome")
    long_us = {row.kind: row.long_us for row in rank_by_group(waits, ["kind"], long_waits, LONG_WAITS).collect()}
    shards = shard_count(operations.sparkSession)
    return by_shard(rows, partial(_deal, long_us=long_us, shards=shards), shards, _of_shard, INCIDENTS)


def long_waits(ranked: Ranked) -> pa.Table:
    """Return the shortest wait of each kind that counts as suffering, in µs: (kind, long_us)."""
    waited = ranked.operations * (ranked.wait_us > 0)
    upto = np.cumsum(waited)
    number = ranked.sums(waited)
    has_waits = number > 0
    before = (upto - waited)[ranked.starts]

    def percentile(share: float) -> npt.NDArray[np.float64]:
        """Return each kind's percentile of the waits, in µs, interpolated as Spark's `percentile` does."""
        place = (number - 1) * share
        below, above = (
            ranked.wait_us[np.searchsorted(upto, before + rank.astype(np.int64), side="right")[has_waits]]
            for rank in (np.floor(place), np.ceil(place))
        )
        part = (place - np.floor(place))[has_waits]
        percentiles: npt.NDArray[np.float64] = np.where(below == above, below, (1 - part) * below + part * above)
        return percentiles

    kinds = ranked.groups["kind"].filter(pa.array(has_waits))
    replicated = np.array([kind in _REPLICATED for kind in kinds.to_pylist()], bool)
    usual = percentile(_USUAL)
    limit = np.maximum(_MEDIANS * percentile(0.5), LEAST_USUAL_MS * 1000)
    usual = np.where(replicated, np.minimum(usual, limit), usual)
    return pa.table({"kind": kinds, "long_us": np.maximum(usual * LONG_TIMES, LONG_MS * 1000.0)})


def suffering(operations: pa.Table, long_us: Mapping[str, float]) -> pa.Table:
    """Count the operations that suffer by kind, trouble and second of their end: once by instance, and once by key."""
    kind, kinds = codes(operations["kind"])
    names = kinds.to_pylist()
    polls = np.array([name is None or name in LONG_POLLS for name in names], bool)
    limits = np.array([np.inf if name is None else long_us.get(name, np.inf) for name in names])
    wait = operations["wait_us"].to_numpy()
    expires = pc.equal(operations["outcome"], "expired").fill_null(False).to_numpy(zero_copy_only=False) & ~polls[kind]
    started = operations["start_us"].is_valid().to_numpy(zero_copy_only=False)
    local, send, throttle = (microseconds(operations[name]) for name in TIMES)
    joins = np.array([name == "JOIN_GROUP" for name in names], bool)[kind]
    clients = np.array([name in _REFUSED for name in names], bool)[kind]
    refused = pc.is_in(operations["error_code"].cast(pa.int64()), pa.array(_REFUSALS)).to_numpy()
    none, limit = np.zeros(len(wait), np.int64), LONG_MS * 1000
    troubles = {  # mask of operations that have it, its length, and the parts of that before and after the wait
        "waited": ((wait > 0) & (expires | (wait >= limits[kind])), wait, none, none),
        "throttled": (throttle >= limit, throttle, none, throttle),
        "handled": (local >= limit, local, local, none),
        "sent": (send >= limit, send, none, send),
        "rebalanced": (joins & (wait >= limit), wait, none, none),
        "refused": (clients & refused, wait, none, none),
    }
    remaining, parts = started, [SUFFERING.empty_table()]
    for trouble, (has, length, before, after) in troubles.items():
        suffers = has & remaining
        remaining &= ~has
        if not suffers.any():
            continue
        struck = operations.filter(pa.array(suffers))
        start = struck["start_us"].to_numpy()
        last = start + (wait + after)[suffers]
        columns = {
            "trouble": pa.repeat(trouble, len(start)),
            "first_us": start - before[suffers],
            "last_us": last,
            "longest_us": length[suffers],
            "operations": np.ones(len(start), np.int64),
            "expired": expires[suffers].astype(np.int64),
            "second": last // 1_000_000,
        }
        rows = pa.table({**{name: struck[name] for name in ("kind", "instance", "keys")}, **columns})
        on_keys = with_keys(rows.select([*_BURST, "second", "keys", "operations"]))
        counts = on_keys.group_by([*_BURST, "second", "key"], use_threads=False).aggregate([("operations", "sum")])
        by_instance = rows.group_by([*_BURST, "second", "instance"], use_threads=False)
        parts += [_plain(by_instance.aggregate(list(_MERGED.items()))), _plain(counts)]
    return pa.concat_tables(parts, promote_options="permissive").select(SUFFERING.names).cast(SUFFERING)


def paused(runs: pa.Table) -> pa.Table:
    """Return the fetches that came late, as rows of `SUFFERING`, given the joined runs of all fetches (`READING`)."""
    late = pauses(runs)
    first, last = (late[name].to_numpy() for name in ("first_us", "last_us"))
    columns = {
        **{name: late[name] for name in ("kind", "instance", "first_us", "last_us")},
        "trouble": pa.repeat("paused", len(first)),
        "key": pa.nulls(len(first), pa.string()),
        "longest_us": last - first,
        "operations": np.ones(len(first), np.int64),
        "expired": np.zeros(len(first), np.int64),
        "second": last // 1_000_000,
    }
    return pa.table(columns).select(SUFFERING.names).cast(SUFFERING)


def gap_s(trouble: str) -> int:
    """Return how many whole seconds without an operation in this trouble end a burst."""
    return PAUSES_APART_S if trouble == "paused" else GAP_S


def incident_rows(rows: pa.Table) -> pa.Table:
    """Return the incidents (`INCIDENTS`), given the rows of `suffering` of all kinds, or all rows of some kinds."""
    schema = arrow_schema(INCIDENTS)
    if not rows.num_rows:
        return schema.empty_table()
    rows = rows.sort_by([(name, "ascending") for name in (*_BURST, "second")]).combine_chunks()
    (kind, _), (trouble, troubles) = (codes(rows[name]) for name in _BURST)
    gaps = np.array([gap_s(name) for name in troubles.to_pylist()])[trouble]
    is_first = np.ones(len(kind), bool)
    is_first[1:] = (np.diff(kind) != 0) | (np.diff(trouble) != 0) | (np.diff(rows["second"].to_numpy()) > gaps[1:])
    rows = rows.append_column("burst", pa.array(np.cumsum(is_first)))
    is_key = rows["first_us"].is_null()
    at_instances = rows.filter(pc.invert(is_key)).group_by(["burst", *_BURST], use_threads=False)
    bursts = _plain(at_instances.aggregate([*_MERGED.items(), ("instance", "distinct")]))
    stuck_ms = pc.if_else(pc.equal(bursts["trouble"], "sent"), UNREAD_MS, STUCK_MS)
    is_stuck = pc.greater_equal(bursts["longest_us"], pc.multiply(stuck_ms, 1000))
    many = pc.and_(pc.is_in(bursts["trouble"], pa.array(_MANY)), pc.invert(is_stuck))
    bursts = bursts.filter(pc.greater_equal(bursts["operations"], pc.if_else(many, LEAST_MANY, LEAST)))
    struck = rows.filter(is_key).group_by(["burst", "key"], use_threads=False).aggregate([("operations", "sum")])
    keys: dict[int, list[str]] = {}
    for burst, key in zip(*_most_first(_plain(struck)), strict=True):
        keys.setdefault(burst, []).append(key)
    burst_keys = [keys.get(burst) for burst in bursts["burst"].to_pylist()]
    columns = {
        **{name: bursts[name] for name in _BURST},
        **{name: bursts[f"{name}_us"].cast(schema.field(name).type) for name in ("first", "last")},
        **{name: bursts[name] for name in ("operations", "expired")},
        "longest_ms": bursts["longest_us"].to_numpy() / 1000,
        "instances": [sorted(filter(None, names)) for names in bursts["instance"].to_pylist()],
        "keys_struck": [names and len(names) for names in burst_keys],
        "keys": [names and names[:MOST_KEYS] for names in burst_keys],
    }
    return pa.table(columns, schema)


def _most_first(struck: pa.Table) -> tuple[list[int], list[str]]:
    """Return the keys of each burst, by falling number of operations that waited on the key: (bursts, keys)."""
    ordered = struck.sort_by([("burst", "ascending"), ("operations", "descending"), ("key", "ascending")])
    return ordered["burst"].to_pylist(), ordered["key"].to_pylist()


def _plain(summed: pa.Table) -> pa.Table:
    """Rename aggregated columns to the columns that they were computed from: `bytes_sum` to `bytes`. Decode text."""
    names = [name.rsplit("_", 1)[0] if name.endswith(_AGGREGATES) else name for name in summed.column_names]
    return decoded(summed.rename_columns(names))


def _deal(table: pa.Table, long_us: Mapping[str, float], shards: int) -> Iterator[Sharded]:
    struck = suffering(table, long_us)
    if struck.num_rows:
        yield "suffering", struck, by_group(struck, ["kind"], shards)
    runs = reading(table)
    if runs.num_rows:
        yield "reading", runs, by_group(runs, ["kind"], shards)


def _of_shard(shard: dict[str, pa.Table]) -> Iterator[pa.Table]:
    struck = [shard["suffering"]] if "suffering" in shard else []
    late = [paused(joined_reading(shard["reading"]))] if "reading" in shard else []
    yield incident_rows(pa.concat_tables(struck + late))
