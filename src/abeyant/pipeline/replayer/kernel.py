"""Run a trace through the engine, once for each configuration of a task's share; or count the pending operations.

A trace has the recorded operations of one instance. Memory: 24 bytes per operation, and up to 45 more in the engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyant.kernels.replay import NEVER, replay
from abeyant.pipeline.replayer.configurations import Configuration
from abeyant.pipeline.replayer.purges import NO_PURGES, Purges, purges
from abeyant.pipeline.replayer.trace_columns import Integers, Trace, unpack

__all__ = ["pending_series", "replayed"]

Deadline = Literal["inclusive", "exclusive"]

_SLOT: Final = 32
"""Bytes per task and per bucket of the wheel: links and generation, deadline, the reference to its item."""

_TIME: Final = pa.timestamp("us", "UTC")


class _Requested(NamedTuple):
    """A trace with the time-outs of one configuration."""

    starts: Integers
    timeouts: Integers
    ends: Integers  # NEVER where the condition is not known to have come true
    limits: Integers  # until when it is known not to have come true
    kept: npt.NDArray[np.bool_]  # of the trace's rows


def _requested(trace: Trace, timeout_ms: int | None) -> _Requested:
    mask = trace.timeouts >= 0 if timeout_ms is None else np.ones(len(trace.starts), np.bool_)
    starts, timeouts, ends = (column[mask] for column in (trace.starts, trace.timeouts, trace.ends))
    if timeout_ms is not None:
        timeouts = np.full(len(starts), timeout_ms * 1000, np.int64)
    completes = ends >= 0
    return _Requested(starts, timeouts, np.where(completes, ends, NEVER), np.where(completes, NEVER, ~ends), mask)


def replayed(
    batches: Iterable[pa.RecordBatch],
    configurations: Sequence[Configuration],
    shares: int,
    deadline: Deadline,
    foresees: bool,
    schema: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Replay sorted packed traces; yield a row for each trace and each configuration of the task's share.

    `foresees` says whether events are known for at least a tick after each operation's deadline.
    """
    for share, trace in unpack(batches):
        purged: dict[tuple[int | None, int | None], Purges] = {}
        for configuration in configurations[share::shares]:
            requested = _requested(trace, configuration.timeout_ms)
            purging = configuration.timeout_ms, configuration.purge_interval
            if purging not in purged:
                purged[purging] = _purges(trace, requested, configuration.purge_interval)
            row = _row(trace, requested, configuration, deadline) | purged[purging]._asdict()
            if not foresees:
                row["overtaken"] = None
            yield pa.RecordBatch.from_pylist([row], schema)


def _purges(trace: Trace, requested: _Requested, interval: int | None) -> Purges:
    if interval is None:
        return NO_PURGES
    ends = np.cumsum(trace.counts)
    return purges(
        requested.starts,
        requested.timeouts,
        requested.ends,
        (ends - trace.counts)[requested.kept],
        ends[requested.kept],
        trace.keys,
        interval,
    )


def _row(trace: Trace, requested: _Requested, configuration: Configuration, deadline: Deadline) -> dict[str, Any]:
    stats = replay(
        requested.starts.data,
        requested.timeouts.data,
        requested.ends.data,
        deadline=deadline,
        tick=configuration.tick_us,
        wheel_size=configuration.wheel_size,
    ).stats
    # A limit is never before the operation's own deadline, so this counts under other time-outs only.
    unknown = int(np.count_nonzero(requested.starts + requested.timeouts > requested.limits))
    return {
        "instance": trace.instance,
        "tick_ms": configuration.tick_ms,
        "wheel_size": configuration.wheel_size,
        "timeout_ms": configuration.timeout_ms,
        "purge_interval": configuration.purge_interval,
        "operations": stats.operations,
        "left_out": trace.left_out + len(trace.starts) - stats.operations,
        "completed": stats.completed,
        "expired": stats.expired,
        "unknown": unknown,
        "completed_at_start": stats.completed_at_start,
        "overtaken": stats.overtaken,
        "first": stats.first if stats.operations else None,
        "last": stats.last if stats.operations else None,
        "timers": stats.started,
        "pending_most": stats.max_pending,
        "pending_mean": stats.pending_time / max(stats.last - stats.first, 1),
        "lateness_mean_ms": stats.lateness_sum / stats.expired / 1000 if stats.expired else None,
        "lateness_most_ms": stats.lateness_max / 1000 if stats.expired else None,
        "cascades": stats.cascaded,
        "levels": stats.levels,
        "wakeups": stats.wakeups,
        "bucket_operations": stats.bucket_operations,
        "memory_bytes": _SLOT * (stats.max_pending + stats.levels * configuration.wheel_size),
    }


def pending_series(
    batches: Iterable[pa.RecordBatch],
    timeouts_ms: Sequence[int | None],
    shares: int,
    deadline: Deadline,
    points: int | None,
) -> Iterator[pa.RecordBatch]:
    """Yield (instance, timeout_ms, at, pending) for each time-out of the task's share, from sorted packed traces."""
    for share, trace in unpack(batches):
        for timeout_ms in timeouts_ms[share::shares]:
            at, pending = _pending(_requested(trace, timeout_ms), deadline)
            if points is not None:
                selection = _thinned(at, pending, points)
                at, pending = at[selection], pending[selection]
            for begin in range(0, len(at), _BATCH):
                part = slice(begin, begin + _BATCH)
                rows = len(at[part])
                yield pa.record_batch(
                    [
                        pa.array([trace.instance] * rows, pa.string()),
                        pa.array([timeout_ms] * rows, pa.int64()),
                        pa.array(at[part]).cast(_TIME),
                        pa.array(pending[part]),
                    ],
                    ["instance", "timeout_ms", "at", "pending"],
                )


_BATCH: Final = 1 << 16


def _pending(requested: _Requested, deadline: Deadline) -> tuple[Integers, Integers]:
    """Return each instant at which the number of pending operations changes, and the number from then on (O1-O3)."""
    until = requested.starts + requested.timeouts
    in_time = requested.ends < until if deadline == "exclusive" else requested.ends <= until
    ended = np.where(requested.ends <= requested.starts, requested.starts, np.where(in_time, requested.ends, until))
    instants, place = np.unique(np.concatenate([requested.starts, ended]), return_inverse=True)
    starts = np.bincount(place[: len(ended)], minlength=len(instants))
    change = starts - np.bincount(place[len(ended) :], minlength=len(instants))
    changes = np.flatnonzero(change)
    return instants[changes], np.cumsum(change[changes])


def _thinned(at: Integers, pending: Integers, points: int) -> npt.NDArray[np.intp]:
    """Return the rows to draw: the least, the greatest and the last of each of `points` / 3 equal spans of time."""
    if len(at) <= points:
        return np.arange(len(at))
    spans = points // 3
    span = (at - at[0]) * spans // (at[-1] - at[0] + 1)
    first = np.flatnonzero(np.diff(span, prepend=-1))
    number = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(at))))
    by_pending = np.lexsort((pending, number))
    last = np.append(first[1:], len(at)) - 1
    return np.unique(np.concatenate([by_pending[first], by_pending[last], last]))
