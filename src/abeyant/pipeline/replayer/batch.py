"""Run `replay` and `replay_pending` over whole tables.

    operations, ends ── traces ── packed ── a copy for each share of the configurations ── by instance ── kernel

One instance is one purgatory, so one task replays its whole trace; the configurations are spread over the cores.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Final, Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.replayer.configurations import Configuration, chosen, grid
from abeyant.pipeline.replayer.kernel import pending_series, replayed
from abeyant.pipeline.replayer.trace_columns import PACKED, pack
from abeyant.pipeline.replayer.traces import traces
from abeyant.pipeline.schemas import REPLAYED, REPLAYED_PENDING
from abeyant.pipeline.spark.arrow import arrow_schema
from abeyant.pipeline.spark.session import shuffle_partitions

__all__ = ["replay", "replay_pending"]

Deadline = Literal["inclusive", "exclusive"]
Configurations = Iterable[Configuration] | DataFrame

DEFAULT: Final = tuple(grid())
"""Kafka's wheel, and the operations' own time-outs."""


def replay(
    operations: DataFrame,
    ends: DataFrame | None = None,
    configurations: Configurations = DEFAULT,
    *,
    deadline: Deadline = "inclusive",
) -> DataFrame:
    """Run each instance's operations through the real engine, once for each configuration (`schemas.REPLAYED`).

    `ends` says when conditions came true: `events`, which are resolved, or the `outcomes` of `resolve`. Omit it if the
    operations have `outcome` and `waited_ms`, as the operations of a request log do. `configurations` are a `grid`,
    single `Configuration`s, or a small table with a column for each field. A configuration with a `purge_interval` also
    replays Kafka's own purgatory, at about a hundred times the work. The command `abeyant replay` does the same.

    Outcomes follow the laws at exact deadlines (O1-O3). Lateness, cascades and wake-ups are measured on the wheel. If
    an operation is only known to have expired, it counts as expired under every time-out. `unknown` counts such
    operations under time-outs longer than they were observed: they may have completed. `left_out` counts operations
    without a start, without a known end or, if operations keep their own time-outs, without a time-out. With `events`,
    `rejected_operations` are rejected first and counted nowhere; with `outcomes` the ids must be unique.

    Lazy. Only a table of configurations is collected to the driver. A task holds the trace of one instance, at most 70
    bytes per operation (with a purge interval also its keys, and Python objects for what is watched), and replays a
    share of the configurations with it. Raises `SchemaError` for a table that lacks a column, ValueError for another
    `deadline`.
    """
    settings = chosen(configurations)
    packed, shares = _shared(operations, ends, settings, len(settings), deadline)
    schema = arrow_schema(REPLAYED)
    return packed.mapInArrow(
        partial(
            replayed,
            configurations=settings,
            shares=shares,
            deadline=deadline,
            foresees=ends is not None and "progress" in ends.columns,
            schema=schema,
        ),
        REPLAYED,
    )


def replay_pending(
    operations: DataFrame,
    ends: DataFrame | None = None,
    configurations: Configurations = DEFAULT,
    *,
    deadline: Deadline = "inclusive",
    points: int | None = 2000,
) -> DataFrame:
    """Return how many operations are pending, over time, under each time-out of the configurations.

    The columns are `schemas.REPLAYED_PENDING`; a row is valid from its `at` to the next row's `at`. Operations end at
    exact deadlines, by the laws, so tick and wheel size have no effect. Each series is reduced for drawing to at most
    `points` rows without losing a peak; with None it has a row for every change.
    Takes and raises what `replay` does, and ValueError for fewer than 3 points.
    """
    if points is not None and points < 3:
        raise ValueError(f"points must be at least 3, not {points}")
    settings = chosen(configurations)
    timeouts = list(dict.fromkeys(configuration.timeout_ms for configuration in settings))
    only = [Configuration(timeout_ms=timeout_ms) for timeout_ms in timeouts]
    packed, shares = _shared(operations, ends, only, len(timeouts), deadline)
    return packed.mapInArrow(
        partial(pending_series, timeouts_ms=timeouts, shares=shares, deadline=deadline, points=points), REPLAYED_PENDING
    )


def _shared(
    operations: DataFrame, ends: DataFrame | None, settings: Iterable[Configuration], work: int, deadline: Deadline
) -> tuple[DataFrame, int]:
    """Return the packed traces, copied once for each share of the work, and the number of shares."""
    if deadline not in ("inclusive", "exclusive"):
        raise ValueError(f"deadline must be 'inclusive' or 'exclusive', not {deadline!r}")
    settings = list(settings)
    keys = any(configuration.purge_interval is not None for configuration in settings)
    packed = traces(operations, ends, settings, keys=keys).mapInArrow(pack, PACKED)
    partitions = shuffle_partitions(packed.sparkSession)
    shares = min(work, partitions)
    copies = packed.withColumn("share", F.explode(F.sequence(F.lit(0), F.lit(shares - 1))))
    # Shares of one instance go to different partitions, and so to different cores.
    there = F.pmod(F.xxhash64("instance") + F.col("share"), F.lit(partitions)).cast("int")
    return copies.repartitionById(partitions, there).sortWithinPartitions("instance", "share"), shares
