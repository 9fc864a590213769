"""Count waits by length and rank them, for the percentiles, the histogram and the time-out curve.

Every task counts its own waits; equal waits become one row. The rows are dealt to shards by group (`shards`). A shard
is sorted once, and ranks are running totals over its columns. A ranked group has one row for each distinct wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from abeyant.pipeline.analysis.columns import Integers, codes, count_equal, encode, run_starts, sum_rows
from abeyant.pipeline.analysis.shards import Sharded, by_group, by_shard, shard_count
from abeyant.pipeline.schemas import ALL_INSTANCES
from abeyant.pipeline.spark.arrow import arrow_schema

__all__ = [
    "PERCENTILES",
    "Ranked",
    "count_waits",
    "known_groups",
    "percentile_columns",
    "rank",
    "rank_by_group",
    "with_all_instances",
]

PERCENTILES: Final = {"p50_ms": 50, "p95_ms": 95, "p99_ms": 99}

_OUTCOMES: Final = ("completed", "expired")


@dataclass(frozen=True)
class Ranked:
    """Whole groups of waits, ranked: a row for each distinct wait of a group, the shortest first."""

    groups: pa.Table
    """The columns by which the waits are grouped: a row for each group."""
    starts: Integers
    """Index of each group's first row."""
    group: Integers
    """Index in `groups` of each row's group."""
    wait_us: Integers
    operations: Integers
    completed: Integers
    expired: Integers
    unknown: Integers
    before: Integers
    """Operations of the same group that waited less."""
    total: Integers
    """Number of operations of each group."""

    @property
    def ends(self) -> Integers:
        """Return the index after each group's last row."""
        return np.append(self.starts[1:], len(self.wait_us))

    def sums(self, values: Integers) -> Integers:
        """Return the sum of each group."""
        return np.add.reduceat(values, self.starts)

    def percentile(self, percent: int) -> Integers:
        """Return each group's nearest-rank percentile in microseconds.

        It is the least wait that at least `percent` % of the operations do not exceed.
        """
        upto = np.cumsum(self.operations)
        target = upto[self.starts] - self.operations[self.starts] - -self.total * percent // 100
        return self.wait_us[np.searchsorted(upto, target)]


def known_groups(table: pa.Table, group: Sequence[str]) -> pa.Table:
    """Return the rows that have a wait, and no null in the columns of the group."""
    mask = pc.greater_equal(table["wait_us"], 0)
    for name in group:
        if table[name].null_count:
            mask = pc.and_(mask, table[name].is_valid())
    return table if pc.all(mask, skip_nulls=False).as_py() else table.filter(mask)


def count_waits(table: pa.Table, group: Sequence[str]) -> pa.Table:
    """Return a row for each distinct (group, wait_us, outcome), with the number of its rows as `operations`."""
    texts, (wait_us,), counts = count_equal(table, [*group, "outcome"], [table["wait_us"].to_numpy()])
    outcome = texts.pop("outcome")
    return pa.table({**texts, "wait_us": wait_us, "outcome": outcome, "operations": counts})


def rank_by_group(
    waits: DataFrame,
    group: Sequence[str],
    make: Callable[[Ranked], pa.Table],
    schema: StructType,
    *,
    all_instances: bool = False,
) -> DataFrame:
    """Rank the waits of each group; return the rows that `make` returns for the ranked groups.

    `waits` has the columns of `group`, wait_us and outcome. `make` gets whole groups. With `all_instances` each
    operation counts a second time, for the instance `*`.
    """
    shards = shard_count(waits.sparkSession)
    # All instances of a kind are in one shard, which adds them up.
    dealt_by = [name for name in group if name != "instance"] if all_instances else list(group)
    deal = partial(_deal, group=tuple(group), dealt_by=tuple(dealt_by), shards=shards)
    of_shard = partial(
        _of_shard, group=tuple(group), all_instances=all_instances, make=make, schema=arrow_schema(schema)
    )
    return by_shard(waits, deal, shards, of_shard, schema)


def rank(counts: pa.Table, group: Sequence[str]) -> Ranked:
    """Rank whole groups, given as rows of (group, wait_us, outcome, operations) in any order. O(n log n)."""
    columns = [codes(counts[name]) for name in group]
    operations, outcome = counts["operations"].to_numpy(), counts["outcome"].combine_chunks()
    masks = [pc.equal(outcome, name).fill_null(False) for name in _OUTCOMES]
    parts = [operations * mask.to_numpy(zero_copy_only=False) for mask in (*masks, outcome.is_null())]
    numbers = [number for number, _ in columns]
    (*rows, wait), (number, completed, expired, unknown) = sum_rows(
        [*numbers, counts["wait_us"].to_numpy()], [operations, *parts]
    )
    starts = run_starts(rows)
    sizes = np.diff(np.append(starts, len(wait)))
    before = np.cumsum(number) - number
    return Ranked(
        groups=pa.table(
            {
                name: values.take(pa.array(row[starts]))
                for name, (_, values), row in zip(group, columns, rows, strict=True)
            }
        ),
        starts=starts,
        group=np.repeat(np.arange(len(starts)), sizes),
        wait_us=wait,
        operations=number,
        completed=completed,
        expired=expired,
        unknown=unknown,
        before=before - np.repeat(before[starts], sizes),
        total=np.add.reduceat(number, starts),
    )


def percentile_columns(ranked: Ranked) -> dict[str, npt.NDArray[np.float64]]:
    """Return each group's percentiles and longest wait, in ms."""
    percentiles = {name: ranked.percentile(percent) / 1000 for name, percent in PERCENTILES.items()}
    return percentiles | {"max_ms": ranked.wait_us[ranked.ends - 1] / 1000}


def with_all_instances(counts: pa.Table) -> pa.Table:
    """Append the counts of all instances together, as the instance `*`."""
    columns = [name for name in counts.column_names if name not in ("instance", "operations")]
    sums = counts.group_by(columns, use_threads=False).aggregate([("operations", "sum")])
    name = pa.array([ALL_INSTANCES], counts.schema.field("instance").type.value_type)
    names = encode(np.zeros(sums.num_rows, np.int64), name)
    totals = sums.rename_columns([*columns, "operations"]).append_column("instance", names)
    return pa.concat_tables([counts, totals.select(counts.column_names)])


def _deal(table: pa.Table, group: tuple[str, ...], dealt_by: tuple[str, ...], shards: int) -> Iterator[Sharded]:
    counts = count_waits(known_groups(table, group), group)
    if counts.num_rows:
        yield "waits", counts, by_group(counts, dealt_by, shards)


def _of_shard(
    shard: dict[str, pa.Table],
    group: tuple[str, ...],
    make: Callable[[Ranked], pa.Table],
    schema: pa.Schema,
    *,
    all_instances: bool,
) -> Iterator[pa.Table]:
    counts = with_all_instances(shard["waits"]) if all_instances else shard["waits"]
    yield make(rank(counts, group)).cast(schema)
