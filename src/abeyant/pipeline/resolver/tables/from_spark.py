"""Tables of any kind: Spark reads them and hashes keys, and Python's workers pack the rows that it hands over.

    operations ── valid ── one row a watch ──┐
                                             ├── with the profile ── packed ── by shard
    events ────── valid ─────────────────────┘

The profile is joined to both tables at once, since a plan has all that it is made from, both tables, each time that it
names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyant.pipeline.resolver.rejected import DEADLINE_US
from abeyant.pipeline.resolver.tables.hot_keys import IDENTITY, PLACE, HotKeys, Integers
from abeyant.pipeline.resolver.tables.packing import PACKED, EventPacker, WatchNumbers, packed_operations
from abeyant.pipeline.resolver.tables.profile import is_repeated
from abeyant.pipeline.resolver.tables.validity import valid_events, valid_operations
from abeyant.pipeline.schemas import OPERATIONS
from abeyant.pipeline.spark.chunks import cut, freeze_imports, gathered
from abeyant.tables.columns import Mask

__all__ = ["packed_by_spark"]

# A row goes to Python as two lists, `numbers` and `texts`: Spark takes a time for each column of each row, with its
# defaults twice. Neither is null: where Spark measures its batches, it fills in all nulls of a list anew at each row.
_EVENT_NUMBERS: Final = (PLACE, IDENTITY, "progress", "unix_micros(at)")
_IS_ONE, _ANY_OF, _IS_FIRST = 1, 2, 4  # the operation has no other watch; any will do; the row is its first watch
_ABOUT: Final = (
    f"if(size(watches) = 1, {_IS_ONE}L, 0L) + if(condition = 'any', {_ANY_OF}L, 0L) + if(nth = 0, {_IS_FIRST}L, 0L)"
)
_WATCH_NUMBERS: Final = ("unix_micros(start)", DEADLINE_US, "required", IDENTITY, PLACE, _ABOUT)
_TEXTS: Final = ("instance", "op_id", "kind")
_NO_TEXTS: Final = "CAST(array() AS array<string>)"  # by this an event is known
_EVENT: Final = (
    f"array({', '.join(_EVENT_NUMBERS)}) AS numbers",
    f"{_NO_TEXTS} AS texts",
    *(f"CAST(NULL AS {OPERATIONS[name].dataType.simpleString()}) AS {name}" for name in ("condition", "watches")),
)
# All watches of an operation go on with the first only: with each, they would be as many as its square.
_WATCH: Final = (
    f"array({', '.join(_WATCH_NUMBERS)}) AS numbers",
    f"array({', '.join(_TEXTS)}) AS texts",
    *("condition", "if(nth = 0, watches, NULL) AS watches"),
)
# `version` of `packing.TEXTS`. In the row of the first watch, it follows the other texts.
_VERSION: Final = "concat(array(condition), watches.key, CAST(watches.required AS array<string>))"

_FIRST: Final = "(monotonically_increasing_id() & ((1L << 33) - 1)) = 0"
"""Whether a row is the first of its partition. Then its numbers go on with `cuts`, for all rows of the partition."""


def packed_by_spark(operations: DataFrame, events: DataFrame, profile: Column, *, ids: bool) -> DataFrame:
    """Return `packing.PACKED`, given the profile; repeated ids are not separated unless `ids`."""
    each = valid_operations(operations).selectExpr("*", "posexplode(watches) AS (nth, watch)")
    watches = each.selectExpr("*", "watch.key AS key", "watch.required AS required").selectExpr(*_WATCH)
    rows = valid_events(events).selectExpr(*_EVENT).union(watches)
    # Spark leaves a column that it takes for random above the union, and `profile` with it; else it would put both
    # below, for each table anew. What is made of the two stays there as well, so the union hands on all that it needs.
    told = rows.select("*", profile.alias("profile"), F.expr(_FIRST).alias("first"))
    # A branch, since Spark works out what stands twice in a condition beforehand, for every row.
    rivals = f"if(watches IS NULL, false, {is_repeated('profile', 'get(texts, 0), get(texts, 1)')})" if ids else "false"
    return told.selectExpr(
        "if(first, concat(numbers, profile.cuts), numbers) AS numbers",
        f"if({rivals}, concat(texts, {_VERSION}), texts) AS texts",
    ).mapInArrow(_pack, PACKED)


# -- in the workers ------------------------------------------------------------------------------------------------


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(`numbers`, `texts`) -> PACKED. Events are the rows without texts; a partition has one kind, or first them."""
    freeze_imports()
    cuts: Integers | None = None
    hot: HotKeys | None = None
    pack: EventPacker | None = None
    watches = _WatchTexts()
    for are_events, parts in groupby(_parted(batches), key=lambda part: part[0]):
        for some in gathered(part for _, part in parts):
            columns, cuts = _columns(some, len(_EVENT_NUMBERS if are_events else _WATCH_NUMBERS), cuts)
            several, hot = bool(cuts[0]), HotKeys.read(cuts) if hot is None else hot
            if are_events:
                pack = pack or EventPacker(hot, several=several)
                yield pack(*columns)
            else:
                start_us, deadline_us, required, identity, place, about = columns
                for rows, texts, rivals in watches(some, about & _IS_FIRST > 0):
                    alone = (about[rows] & _IS_ONE > 0) & ~rivals
                    if not several and not alone.all():
                        raise RuntimeError("operations were read twice and differ: persist them first")
                    texts = texts.append_column("any_of", pa.array(about[rows] & _ANY_OF > 0))
                    numbers = (column[rows] for column in (place, identity, required, start_us, deadline_us))
                    yield packed_operations(texts, WatchNumbers(*numbers), alone, hot)


def _parted(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[bool, pa.RecordBatch]]:
    """Tell batches of events from batches of watches, and part the one that has both."""
    for batch in batches:
        are_events = pc.equal(pc.list_value_length(batch.column("texts")), 0)
        count = are_events.true_count
        if count not in (0, batch.num_rows):
            yield True, batch.filter(are_events)
            yield False, batch.filter(pc.invert(are_events))
        elif batch.num_rows:
            yield count > 0, batch


def _columns(some: Sequence[pa.RecordBatch], width: int, cuts: Integers | None) -> tuple[Integers, Integers]:
    """Return the `numbers` of some batches, a column each, and the cuts: read from their first row, unless known."""
    values = [batch.column("numbers").flatten().to_numpy() for batch in some]
    if cuts is None:
        first = len(some[0].column("numbers")[0])
        cuts = values[0][width:first].copy()  # or all of its batch stays
        if not len(cuts):
            raise RuntimeError("the first row of a partition has no cuts: its rows were filtered or moved by the plan")
        values[:1] = values[0][:width], values[0][first:]
    rows = np.concatenate(values)
    if len(rows) != width * sum(batch.num_rows for batch in some):
        raise RuntimeError("another row than the first of a partition has cuts: its rows were moved by the plan")
    return np.ascontiguousarray(rows.reshape(-1, width).T), cuts


class _WatchTexts:
    """The texts of a task's watches, a column each. `version` stands in the row of an operation's first watch."""

    def __init__(self) -> None:
        self._last: pa.ListArray | None = None  # such a row: its operation may have watches in the next batches

    def __call__(self, some: Sequence[pa.RecordBatch], is_first: Mask) -> Iterator[tuple[slice, pa.RecordBatch, Mask]]:
        """Yield the texts of all these rows, some at a time: which rows, their texts, and which have a version."""
        lists = [batch.column("texts") for batch in some]
        before = pa.array([[None] * len(_TEXTS)], lists[0].type) if self._last is None else self._last
        lists = pa.concat_arrays([before, *lists])
        first = np.maximum.accumulate(np.where(is_first, np.arange(1, len(lists)), 0))
        self._last = lists.take(pa.array(first[-1:]))
        begins, values = lists.offsets.to_numpy()[:-1], lists.values
        lengths = lists.value_lengths().to_numpy() - len(_TEXTS)
        versions = begins + len(_TEXTS)
        before_value = np.append(0, np.cumsum(pc.binary_length(values).fill_null(0).to_numpy(), dtype=np.int64))
        sizes = before_value[versions + lengths] - before_value[versions] + 4 * lengths
        for begin, end in cut(sizes[first]):
            own, of = begins[1:][begin:end], first[begin:end]
            columns = {name: values.take(pa.array(own + n)) for n, name in enumerate(_TEXTS)}
            columns["version"] = _slices(values, versions[of], lengths[of])
            yield slice(begin, end), pa.record_batch(columns), lengths[of] > 0


def _slices(values: pa.Array, begins: npt.NDArray[np.int32], lengths: npt.NDArray[np.int32]) -> pa.ListArray:
    """Return lists of values, given where in these each begins, and how long it is."""
    ends = np.cumsum(lengths, dtype=np.int32)
    # A list's n-th value is there at its own begin + n, and here at the sum of all lengths before + n.
    picked = np.repeat(begins - (ends - lengths), lengths) + np.arange(lengths.sum())
    return pa.ListArray.from_arrays(pa.array(np.append(np.int32(0), ends)), values.take(pa.array(picked)))
