"""Count the operations pending at any time: an exact sweep, not samples.

Time is cut into slices, and each slice is a shard. A task sweeps a slice for each instance, then for all instances
together. The tasks that read the operations have counted before how many are pending when a slice begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.analysis.columns import Integers, LogRows, codes, encode, observed, run_starts, sum_rows, tables
from abeyant.pipeline.analysis.ranked import known_groups
from abeyant.pipeline.analysis.shards import Sharded, ShardRows, shard_count, shuffle_to_shards
from abeyant.pipeline.schemas import ALL_INSTANCES, PENDING
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.columns import check_table
from abeyant.pipeline.spark.packed import packed_rows

__all__ = ["PLOT_POINTS", "Span", "drawn_rows", "pending_over_time", "pending_plot", "pending_rows", "plot_rows"]

PLOT_POINTS: Final = 2000

_BEFORE: Final = -(1 << 63)
"""The value of `at` in rows that hold the number pending when a slice begins."""


class Span(NamedTuple):
    """The first and last instant at which an operation is pending, in microseconds, and how many operations waited."""

    first_us: int = 0
    last_us: int = 0
    waited: int = 0

    @staticmethod
    def columns() -> list[Column]:
        """Return the aggregates that `of` reads, over a table of operations with `start` and `waited_ms`."""
        wait, start = F.round(F.col("waited_ms") * 1000).cast("long"), F.unix_micros("start")
        known = (wait > 0) & start.isNotNull()
        ends = {"first_us": F.min(F.when(known, start)), "last_us": F.max(F.when(known, start + wait))}
        return [*(column.alias(name) for name, column in ends.items()), F.count_if(known).alias("waited")]

    @staticmethod
    def of(row: Row | dict[str, int]) -> Span:
        """Return the span from a row of the aggregates `columns`."""
        return Span(*(row[name] or 0 for name in Span._fields))


def pending_over_time(operations: DataFrame) -> DataFrame:
    """Return the number of pending operations at every instant at which it changes (`schemas.PENDING`).

    An operation is pending from its start, included, to its end, not included; so an operation that did not wait is
    never pending. Each instance and kind is a series, and `*` sums over the instances. The call runs a Spark job to
    find the first and last instant; the sweep is lazy.
    """
    waited = observed(operations)
    (span,) = operations.agg(*Span.columns()).collect()
    return pending_rows(waited, Span.of(span)).table(PENDING)


def pending_rows(waited: DataFrame | LogRows, span: Span) -> ShardRows:
    """Return the rows of `PENDING` for `observed` operations that are pending within `span`."""
    slices = shard_count(waited.sparkSession, span.waited)
    width = (span.last_us - span.first_us) // slices + 1
    deal = partial(_changes, first_us=span.first_us, width_us=width, slices=slices)
    return shuffle_to_shards(waited, deal, slices, _sweeps)


def pending_plot(pending: DataFrame, points: int = PLOT_POINTS) -> DataFrame:
    """Select at most `points` rows of each series in `pending` for a plot; draw nothing.

    Time is cut into equal bins. The rows with the least, the greatest and the last value in each bin are kept, so that
    no peak is lost and the steps between bins are true. The call runs a Spark job to find the first and last instant;
    the rest is lazy.
    """
    if points < 3:
        raise ValueError(f"points must be at least 3, not {points}")
    check_table(pending, PENDING, "pending")
    at_us = F.unix_micros("at")
    (span,) = pending.agg(F.min(at_us).alias("first_us"), F.max(at_us).alias("last_us")).collect()
    keep = partial(_plot_batches, first_us=span.first_us or 0, last_us=span.last_us or 0, points=points)
    rows = pending.select(*PENDING.fieldNames()).mapInArrow(keep, PENDING)
    by_series = rows.repartition("instance", "kind").sortWithinPartitions("instance", "kind")
    return by_series.mapInArrow(keep, PENDING)


def plot_rows(pending: pa.Table, first_us: int, last_us: int, points: int = PLOT_POINTS) -> pa.Table:
    """Return, for each series and each of `points` / 3 bins of time, the rows of minimum, maximum and last value.

    Of rows with equal values, the earliest is returned. Reducing reduced rows gives the same as reducing all rows.
    """
    bins = points // 3
    (instance, _), (kind, _) = codes(pending["instance"]), codes(pending["kind"])
    at, number = pending["at"].cast(pa.int64()).to_numpy(), pending["pending"].to_numpy()
    place = np.floor((at - first_us) * bins / (last_us - first_us + 1)).astype(np.int64)
    key = kind * (1 << 20) + instance
    if ((key[1:] > key[:-1]) | ((key[1:] == key[:-1]) & (at[1:] >= at[:-1]))).all():  # as the sweep writes them
        order = None
    else:
        order = np.lexsort((at, place, kind, instance))
        key, place, number = key[order], place[order], number[order]
    starts = run_starts([key, place])
    if not len(starts):
        return pending
    sizes = np.diff(np.append(starts, len(number)))

    def first_where(value: Integers) -> Integers:
        matches = np.flatnonzero(number == np.repeat(value, sizes))
        return matches[np.searchsorted(matches, starts)]

    least, most = (first_where(ufunc.reduceat(number, starts)) for ufunc in (np.minimum, np.maximum))
    indices = np.unique(np.concatenate([least, most, starts + sizes - 1]))
    return pending.take(pa.array(indices if order is None else order[indices]))


def drawn_rows(pending: pa.Table, *, times: tuple[int, int]) -> pa.RecordBatch:
    """Return `plot_rows`, packed. Workers run this function: it is here, as they import this module in any case."""
    return packed_rows("pending_plot", plot_rows(pending, *times))


def _changes(table: pa.Table, *, first_us: int, width_us: int, slices: int) -> Iterator[Sharded]:
    waited = known_groups(table, ("instance", "kind", "start_us"))
    waited = waited.filter(pc.greater(waited["wait_us"], 0))
    if not waited.num_rows:
        return
    (instance, instances), (kind, kinds) = codes(waited["instance"]), codes(waited["kind"])
    series = kind * len(instances) + instance
    start, wait = waited["start_us"].to_numpy(), waited["wait_us"].to_numpy()
    at = np.concatenate([start, start + wait])
    place = (at - first_us) // width_us
    edges = np.tile(series, 2), place, at
    change = np.repeat(np.array([1, -1]), len(start))
    (series_of, slice_of, when), (sums,) = sum_rows(edges, [change])
    # What was pending when a slice begins: all that started before and had not ended.
    pending = np.zeros((len(kinds) * len(instances), slices + 1), np.int64)
    np.add.at(pending, (series, place[: len(start)] + 1), 1)
    np.add.at(pending, (series, place[len(start) :] + 1), -1)
    pending = np.cumsum(pending, axis=1)[:, :slices]
    before = np.nonzero(pending)
    nonzero = sums != 0
    series_of = np.concatenate([series_of[nonzero], before[0]])
    columns = {
        "kind": encode(series_of // len(instances), kinds),
        "instance": encode(series_of % len(instances), instances),
        "at": np.concatenate([when[nonzero], np.full(len(before[0]), _BEFORE)]),
        "change": np.concatenate([sums[nonzero], pending[before]]),
    }
    yield "changes", pa.table(columns), np.concatenate([slice_of[nonzero], before[1]])


def _sweeps(shard: dict[str, pa.Table]) -> Iterator[pa.Table]:
    schema, table = arrow_schema(PENDING), shard["changes"]
    (kind, kinds), (instance, instances) = codes(table["kind"]), codes(table["instance"])
    at, change = table["at"].to_numpy(), table["change"].to_numpy()
    known = at != _BEFORE
    before_us = at[known].min() - 1 if known.any() else _BEFORE
    at = np.where(known, at, before_us)  # near the others, one number holds kind, instance and time (`sum_rows`)
    everywhere = pa.concat_arrays([instances, pa.array([ALL_INSTANCES], instances.type)])
    for instance_code in (instance, np.full(len(instance), len(instances))):
        (kind_of, instance_of, when), (sums,) = sum_rows((kind, instance_code, at), [change])
        starts = run_starts([kind_of, instance_of])
        total = np.cumsum(sums)
        before = (total - sums)[starts]
        total -= np.repeat(before, np.diff(np.append(starts, len(total))))
        selected = (when != before_us) & (sums != 0)
        columns = {
            "instance": everywhere.take(pa.array(instance_of[selected])),
            "kind": kinds.take(pa.array(kind_of[selected])),
            "at": pa.array(when[selected]).cast(schema.field("at").type),
            "pending": total[selected],
        }
        yield pa.table(columns).cast(schema)


def _plot_batches(
    batches: Iterable[pa.RecordBatch], *, first_us: int, last_us: int, points: int
) -> Iterator[pa.RecordBatch]:
    schema = arrow_schema(PENDING)
    rows = schema.empty_table()
    for table in tables(batches):
        rows = plot_rows(pa.concat_tables([rows, table.cast(schema)]), first_us, last_us, points)
    yield from rows.combine_chunks().to_batches()
