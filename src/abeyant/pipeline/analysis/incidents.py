"""Incidents: when, where and on what operations expired, or waited far longer than their kind does, in bursts.

The rule. An operation *suffers* when it

* expired, unless it is a long poll (a fetch): for that, to expire is the ordinary end; or
* waited `LONG_TIMES` times as long as 95 in 100 of those of its kind that waited, and at least `LONG_MS`.

A *burst* is a run of such operations of one kind, on any broker, in which no `GAP_S` whole seconds pass between the end
of one and the end of the next. A burst of at least `LEAST` operations is an incident.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, StringType, StructField, StructType

from abeyant.pipeline.analysis.columns import codes, observed
from abeyant.pipeline.analysis.keys import with_keys
from abeyant.pipeline.analysis.ranked import Ranked, by_ranks
from abeyant.pipeline.analysis.shards import Dealt, by_group, by_shard, shard_count
from abeyant.pipeline.schemas import INCIDENTS
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = [
    "GAP_S",
    "LEAST",
    "LONG_MS",
    "LONG_TIMES",
    "LONG_WAITS",
    "MOST_KEYS",
    "SUFFERING",
    "incident_rows",
    "incidents",
    "long_waits",
    "suffering",
]

LONG_TIMES: Final = 10
LONG_MS: Final = 100
GAP_S: Final = 10
LEAST: Final = 3
MOST_KEYS: Final = 5
"""Keys that an incident names: those on which most of its operations waited."""

LONG_WAITS: Final = StructType([StructField("kind", StringType()), StructField("long_us", DoubleType())])

_USUAL: Final = 0.95
# Rows with an instance count operations; rows with a key say how many of them waited on it.
SUFFERING: Final = pa.schema(
    {
        **dict.fromkeys(("kind", "instance", "key"), pa.string()),
        **dict.fromkeys(("second", "first_us", "last_us", "longest_us", "operations", "expired"), pa.int64()),
    }
)
# How the counts of a second, or of a burst, come from its parts.
_MERGED: Final = {
    "first_us": "min",
    "last_us": "max",
    "longest_us": "max",
    "operations": "sum",
    "expired": "sum",
}
_AGGREGATES: Final = ("_min", "_max", "_sum", "_distinct")


def incidents(operations: DataFrame) -> DataFrame:
    """Return the incidents of a log (`schemas.INCIDENTS`), by the rule at the head of this module.

    A job finds from what wait on an operation of each kind suffers, at once; the rest is lazy.
    """
    rows = observed(operations, "keys")
    waits = rows.select("kind", "wait_us", "outcome")
    long_us = {row.kind: row.long_us for row in by_ranks(waits, ["kind"], long_waits, LONG_WAITS).collect()}
    shards = shard_count(operations.sparkSession)
    return by_shard(rows, partial(_deal, long_us=long_us, shards=shards), shards, _of_shard, INCIDENTS)


def long_waits(ranked: Ranked) -> pa.Table:
    """Return from what wait on an operation suffers, of each kind: (kind, long_us)."""
    waited = ranked.operations * (ranked.wait_us > 0)
    upto = np.cumsum(waited)
    number = ranked.sums(waited)
    some = number > 0
    before = (upto - waited)[ranked.starts]
    # As `percentile` interpolates: between the two that are next to the place.
    place = (number - 1) * _USUAL
    below, above = (
        ranked.wait_us[np.searchsorted(upto, before + rank.astype(np.int64), side="right")[some]]
        for rank in (np.floor(place), np.ceil(place))
    )
    part = (place - np.floor(place))[some]
    usual = np.where(below == above, below, (1 - part) * below + part * above)
    long = np.maximum(usual * LONG_TIMES, LONG_MS * 1000.0)
    return pa.table({"kind": ranked.groups["kind"].filter(pa.array(some)), "long_us": long})


def suffering(operations: pa.Table, long_us: Mapping[str, float]) -> pa.Table:
    """Count the operations that suffer, by kind and by the second in which they end: at each instance, on each key."""
    kind, kinds = codes(operations["kind"])
    names = kinds.to_pylist()
    polls = np.array([name is None or "FETCH" in name for name in names], bool)
    limits = np.array([np.inf if name is None else long_us.get(name, np.inf) for name in names])
    wait = operations["wait_us"].to_numpy()
    expires = pc.equal(operations["outcome"], "expired").fill_null(False).to_numpy(zero_copy_only=False) & ~polls[kind]
    started = operations["start_us"].is_valid().to_numpy(zero_copy_only=False)
    suffers = (wait > 0) & started & (expires | (wait >= limits[kind]))
    struck = operations.filter(pa.array(suffers))
    first = struck["start_us"].to_numpy()
    last = first + wait[suffers]
    ones = np.ones(len(first), np.int64)
    columns = {
        "first_us": first,
        "last_us": last,
        "longest_us": wait[suffers],
        "operations": ones,
        "expired": expires[suffers].astype(np.int64),
        "second": last // 1_000_000,
    }
    rows = pa.table({**{name: struck[name] for name in ("kind", "instance", "keys")}, **columns})
    on_keys = with_keys(rows.select(["kind", "second", "keys", "operations"]))
    counts = on_keys.group_by(["kind", "second", "key"], use_threads=False).aggregate([("operations", "sum")])
    at_instances = rows.group_by(["kind", "second", "instance"], use_threads=False).aggregate(list(_MERGED.items()))
    parts = [_plain(at_instances), _plain(counts)]
    return pa.concat_tables(parts, promote_options="default").select(SUFFERING.names).cast(SUFFERING)


def incident_rows(rows: pa.Table) -> pa.Table:
    """Return the incidents (`INCIDENTS`) of all rows of `suffering`, or of all of some kinds."""
    schema = arrow_schema(INCIDENTS)
    if not rows.num_rows:
        return schema.empty_table()
    rows = rows.sort_by([("kind", "ascending"), ("second", "ascending")]).combine_chunks()
    kind, second = codes(rows["kind"])[0], rows["second"].to_numpy()
    apart = np.ones(len(kind), bool)
    apart[1:] = (kind[1:] != kind[:-1]) | (np.diff(second) > GAP_S)
    rows = rows.append_column("burst", pa.array(np.cumsum(apart)))
    is_key = rows["first_us"].is_null()
    at_instances = rows.filter(pc.invert(is_key)).group_by(["burst", "kind"], use_threads=False)
    bursts = _plain(at_instances.aggregate([*_MERGED.items(), ("instance", "distinct")]))
    bursts = bursts.filter(pc.greater_equal(bursts["operations"], LEAST))
    struck = rows.filter(is_key).group_by(["burst", "key"], use_threads=False).aggregate([("operations", "sum")])
    keys: dict[int, list[str]] = {}
    for burst, key in zip(*_most_first(_plain(struck)), strict=True):
        keys.setdefault(burst, []).append(key)
    mine = [keys.get(burst) for burst in bursts["burst"].to_pylist()]
    columns = {
        "kind": bursts["kind"],
        **{name: bursts[f"{name}_us"].cast(schema.field(name).type) for name in ("first", "last")},
        **{name: bursts[name] for name in ("operations", "expired")},
        "longest_ms": bursts["longest_us"].to_numpy() / 1000,
        "instances": [sorted(filter(None, names)) for names in bursts["instance"].to_pylist()],
        "keys_struck": [named and len(named) for named in mine],
        "keys": [named and named[:MOST_KEYS] for named in mine],
    }
    return pa.table(columns, schema)


def _most_first(struck: pa.Table) -> tuple[list[int], list[str]]:
    """Return the keys of each burst, those on which most operations waited first: (burst, key)."""
    ordered = struck.sort_by([("burst", "ascending"), ("operations", "descending"), ("key", "ascending")])
    return ordered["burst"].to_pylist(), ordered["key"].to_pylist()


def _plain(summed: pa.Table) -> pa.Table:
    """Return a table of aggregates under the names of the columns that they are of."""
    return summed.rename_columns(
        [name.rsplit("_", 1)[0] if name.endswith(_AGGREGATES) else name for name in summed.column_names]
    )


def _deal(table: pa.Table, long_us: Mapping[str, float], shards: int) -> Iterator[Dealt]:
    struck = suffering(table, long_us)
    if struck.num_rows:
        yield "suffering", struck, by_group(struck, ["kind"], shards)


def _of_shard(shard: dict[str, pa.Table]) -> Iterator[pa.Table]:
    yield incident_rows(shard["suffering"])
