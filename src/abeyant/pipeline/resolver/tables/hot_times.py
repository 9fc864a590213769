"""Cut hot keys along time into pieces, for `by_rules`, so that no shard has to hold all events of a hot key.

With options, an outcome depends on the times of events, so a key cannot be cut along its progress as without options
(`hot_keys`). But an operation needs only the events from its start to its deadline, and the combined progress of all
earlier events. So operations of a hot key are divided into pieces by their start, and a piece gets

    the events from its begin to the last deadline that its operations may have;
    with `count="always"`, one row of each packed chunk for all earlier events: the greatest, the sum, or the last.

Cuts are at least twice as far apart as the longest wait of the key. So an event goes to one piece or two, and a key
whose operations wait too long for such cuts stays whole. All keys stay whole where

    an event serves one operation: which operation it serves depends on all operations that wait for the key;
    a deadline may move (extensions, pauses, a calendar): how far is not known beforehand;
    an operation may name several keys: it is resolved at the home of the first key;
    details cover events before the start: since when a watch is met, and how many events counted.

A separate job finds hot keys in a sample. The cuts are sent to all tasks. Cuts change only how evenly the work is
shared: no outcome depends on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.resolver.rejected import deadline_us
from abeyant.pipeline.resolver.tables.hot_keys import HotKey, HotKeys, Sample, is_drawn
from abeyant.tables.keys import Integers, PairHash
from abeyant.tables.rules import Rules

__all__ = ["HotTime", "HotTimes", "find_hot_times", "may_be_cut"]

_PLACE, _IDENTITY, _PROGRESS, _AT = range(4)
_LOW: Final = (1 << 32) - 1
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1


class HotTime(NamedTuple):
    """A hot key: its two hashes, the times at which it is cut, and its operations' longest wait, in microseconds."""

    place: int
    identity: int
    cuts: Integers
    longest: int


def may_be_cut(rules: Rules) -> bool:
    """Return whether the options permit cutting hot keys, if each operation names one key."""
    counts_before = rules.details and rules.count == "always"
    return rules.serves == "every" and rules.calendar is None and not counts_before


def find_hot_times(operations: DataFrame, events: DataFrame, sample: Sample, seed: bytes, most: int) -> list[HotTime]:
    """Return the hot keys of tables of valid rows, with the times at which to cut each into at most `most` pieces.

    A key is left out if its operations wait too long to cut it. Runs a job over a sample, and if any key is hot another
    job over the operations. The driver collects one number for each `sample.piece` sampled rows of a hot key.
    """
    key, condition = ("instance", "watches[0].key AS key"), is_drawn(sample.fraction)
    start_times = operations.where(condition).selectExpr(*key, "unix_micros(start) AS at")
    event_times = events.where(condition).selectExpr("instance", "key", "unix_micros(at) AS at")
    times = (
        start_times.union(event_times).groupBy("instance", "key").agg(F.sort_array(F.collect_list("at")).alias("times"))
    )
    cuts = f"filter(times, (at, n) -> n % {sample.piece} = 0) AS cuts"
    hot = times.where(F.size("times") > sample.piece).selectExpr("instance", "key", cuts).collect()
    if not hot:
        return []
    names = [(row.instance, row.key) for row in hot]
    hot_names = operations.sparkSession.createDataFrame(names, "instance string, key string")
    waits = operations.selectExpr(*key, f"{deadline_us(operations.columns)} - unix_micros(start) AS us")
    waits = (
        waits.join(F.broadcast(hot_names), ["instance", "key"]).groupBy("instance", "key").agg(F.max("us").alias("us"))
    )
    longest = {(row.instance, row.key): row.us for row in waits.collect()}
    texts = (pa.chunked_array([pa.array(column, pa.string())]) for column in zip(*names, strict=True))
    places, identities = (hashes.tolist() for hashes in PairHash(seed)(*texts))
    hot_keys = []
    for name, row, place, identity in zip(names, hot, places, identities, strict=True):
        us = longest.get(name, 0)
        hot_keys.append(HotTime(place, identity, _spaced_out(row.cuts, 2 * us, most - 1), us))
    return [key for key in hot_keys if len(key.cuts)]


def _spaced_out(times: Sequence[int], least: int, most: int) -> Integers:
    """Return at most `most` of the sorted times, at least `least` apart, and not the first time."""
    cuts = [times[0]]
    for time in times[1:]:
        if time - cuts[-1] >= max(least, 1):
            cuts.append(time)
    return np.array(cuts[1 :: -(-len(cuts) // most)], np.int64)


# -- in the workers ------------------------------------------------------------------------------------------------


class HotTimes:
    """The hot keys of a job, and the methods that assign operations and events to their pieces."""

    def __init__(self, keys: Iterable[HotTime], rules: Rules) -> None:
        self._sorted = sorted(keys, key=lambda key: key[:2])
        self._keys = HotKeys(HotKey(key.place, key.identity, key.cuts) for key in self._sorted)
        self._rules = rules

    def __bool__(self) -> bool:
        """Return whether any key is hot."""
        return bool(self._keys)

    def operations(
        self, places: Integers, identities: Integers, starts: Integers
    ) -> Iterator[tuple[Integers, Integers]]:
        """Yield the rows of each hot key among operations, and the number of each row's piece."""
        for number, rows in self._keys.among(places, identities):
            yield rows, np.searchsorted(self._sorted[number].cuts, starts[rows], side="right")

    def events(self, rows: Integers) -> tuple[Integers, Integers, Integers]:
        """Split rows (place, identity, progress, at): return rows of other keys, rows of pieces, and piece numbers."""
        mask, parts, pieces = np.ones(len(rows), np.bool_), [], []
        columns = (np.ascontiguousarray(rows[:, n]) for n in (_PLACE, _IDENTITY))
        for number, key_rows in self._keys.among(*columns):
            mask[key_rows] = False
            for piece, piece_rows in self._pieces(self._sorted[number], rows[key_rows]):
                parts.append(piece_rows)
                pieces.append(np.full(len(piece_rows), piece))
        if not parts:
            return rows, rows[:0], np.empty(0, np.int64)
        return rows[mask], np.concatenate(parts), np.concatenate(pieces)

    def _pieces(self, key: HotTime, rows: Integers) -> Iterator[tuple[int, Integers]]:
        rows = rows[np.lexsort((rows[:, _PROGRESS], rows[:, _AT]))]
        at = rows[:, _AT]
        begins = np.searchsorted(at, key.cuts, side="left")  # of all pieces but the first
        # The deadline of an operation that starts before the next cut is less than `longest` after that cut.
        ends = np.append(np.searchsorted(at, key.cuts + key.longest, side="left"), len(rows))
        for piece, (begin, end) in enumerate(zip([0, *begins.tolist()], ends.tolist(), strict=True)):
            piece_rows = rows[begin:end]
            if begin and self._rules.count == "always":
                piece_rows = np.concatenate([self._before(rows[:begin]), piece_rows])
            if len(piece_rows):
                yield piece, piece_rows

    def _before(self, rows: Integers) -> Integers:
        """Return one row that stands for all of `rows`, sorted by time, for operations that start later."""
        if self._rules.combine == "max":
            greatest = int(np.argmax(rows[:, _PROGRESS]))
            return rows[greatest : greatest + 1]
        last = rows[-1:].copy()  # of one instant, the greatest
        if self._rules.combine == "sum":
            progress = rows[:, _PROGRESS]
            total = (int((progress >> 32).sum()) << 32) + int((progress & _LOW).sum())
            last[0, _PROGRESS] = min(max(total, _LEAST), _MOST)
        return last
