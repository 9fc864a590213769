"""Tables of any kind: Spark reads them and hashes keys, and Python's workers pack the rows that it hands over.

    operations ── valid ── one row a watch ──┐
                                             ├── with what was seen ── packed ── by shard
    events ────── valid ─────────────────────┘

What was seen is told to both tables at once, since a plan has all that it is made from, both tables, each time that it
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

from abeyance.pipeline.resolver.reasons import DEADLINE_US
from abeyance.pipeline.resolver.tables.first_look import is_repeated
from abeyance.pipeline.resolver.tables.hot_keys import IDENTITY, PLACE, HotKeys, Integers
from abeyance.pipeline.resolver.tables.packing import PACKED, EventPacker, WatchNumbers, packed_operations
from abeyance.pipeline.resolver.tables.validity import valid_events, valid_operations
from abeyance.pipeline.schemas import OPERATIONS
from abeyance.pipeline.spark.chunks import gathered
from abeyance.pipeline.spark.workers import freeze_imports

__all__ = ["packed_by_spark"]

# A row goes to Python as two lists, `numbers` and `texts`: Spark takes a time for each column of each row, with its
# defaults twice. Neither is null: where Spark measures its batches, it fills in all nulls of a list anew at each row.
_EVENT_NUMBERS: Final = (PLACE, IDENTITY, "progress", "unix_micros(at)")
_WATCH_NUMBERS: Final = (
    *("unix_micros(start)", DEADLINE_US, "required", IDENTITY, PLACE),
    *("bigint(size(watches) = 1)", "bigint(coalesce(condition = 'any', false))"),
)
_TEXTS: Final = ("instance", "op_id", "kind")
_NO_TEXTS: Final = "CAST(array() AS array<string>)"
_EVENT: Final = (
    f"array({', '.join(_EVENT_NUMBERS)}) AS numbers",
    f"{_NO_TEXTS} AS texts",
    *(f"CAST(NULL AS {OPERATIONS[name].dataType.simpleString()}) AS {name}" for name in ("condition", "watches")),
)
_WATCH: Final = (
    f"array({', '.join(_WATCH_NUMBERS)}) AS numbers",
    f"array({', '.join(_TEXTS)}) AS texts",
    *("condition", "watches"),
)
# `version` of `packing.TEXTS`. In the row, it follows the other texts.
_VERSION: Final = "concat(array(condition), watches.key, CAST(watches.required AS array<string>))"

_FIRST: Final = "(monotonically_increasing_id() & ((1L << 33) - 1)) = 0"
"""Whether a row is the first of its partition. Its numbers go on with `cuts`, and the others' tasks know them so."""


def packed_by_spark(operations: DataFrame, events: DataFrame, seen: Column, *, ids: bool) -> DataFrame:
    """Return `packing.PACKED`, given what was seen (see first_look); ids are not looked at unless `ids`."""
    watches = valid_operations(operations).selectExpr("*", "inline(watches)").selectExpr(*_WATCH)
    rows = valid_events(events).selectExpr(*_EVENT).union(watches)
    # Beside a column that it takes for random, Spark leaves the other one where it is: above the union.
    told = rows.select("*", seen.alias("seen"), F.expr(_FIRST).alias("first"))
    # A branch, since Spark works out what stands twice in a condition beforehand, for every row.
    rivals = f"if(watches IS NULL, false, {is_repeated('seen', 'get(texts, 0), get(texts, 1)')})" if ids else "false"
    return told.selectExpr(
        "if(first, concat(numbers, seen.cuts), numbers) AS numbers",
        f"if({rivals}, concat(texts, {_VERSION}), texts) AS texts",
    ).mapInArrow(_pack, PACKED)


# -- in the workers ------------------------------------------------------------------------------------------------


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(`numbers`, `texts`) -> PACKED. Events are the rows without texts; a partition has one kind, or first them."""
    freeze_imports()
    cuts: Integers | None = None
    hot: HotKeys | None = None
    pack: EventPacker | None = None
    for are_events, parts in groupby(_parted(batches), key=lambda part: part[0]):
        for some in gathered(part for _, part in parts):
            columns, cuts = _columns(some, len(_EVENT_NUMBERS if are_events else _WATCH_NUMBERS), cuts)
            hot = HotKeys.read(cuts) if hot is None else hot
            if are_events:
                pack = pack or EventPacker(hot, several=bool(cuts[0]))
                yield pack(*columns)
            else:
                start_us, deadline_us, required, identity, place, is_one, any_of = columns
                texts, rivals = _texts(some)
                texts = texts.append_column("any_of", pa.array(any_of == 1))
                numbers = WatchNumbers(place, identity, required, start_us, deadline_us)
                yield packed_operations(texts, numbers, (is_one == 1) & ~rivals, hot)


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
        cuts = values[0][width:first]
        if not len(cuts):
            raise RuntimeError("the first row of a partition has no cuts: its rows were filtered or moved by the plan")
        values[:1] = values[0][:width], values[0][first:]
    rows = np.concatenate(values)
    if len(rows) != width * sum(batch.num_rows for batch in some):
        raise RuntimeError("another row than the first of a partition has cuts: its rows were moved by the plan")
    return np.ascontiguousarray(rows.reshape(-1, width).T), cuts


def _texts(some: Sequence[pa.RecordBatch]) -> tuple[pa.RecordBatch, npt.NDArray[np.bool_]]:
    """Return the `texts` of some batches of watches, a column each, and which rows have a version."""
    lists = pa.concat_arrays([batch.column("texts") for batch in some])
    firsts, values = lists.offsets.to_numpy()[:-1], lists.values
    columns = {name: values.take(pa.array(firsts + n)) for n, name in enumerate(_TEXTS)}
    lengths = lists.value_lengths().to_numpy() - len(_TEXTS)
    ends = np.cumsum(lengths, dtype=np.int32)
    of_versions = np.repeat(firsts + len(_TEXTS) - (ends - lengths), lengths) + np.arange(lengths.sum())
    offsets = pa.array(np.concatenate(([0], ends)).astype(np.int32))
    columns["version"] = pa.ListArray.from_arrays(offsets, values.take(pa.array(of_versions)))
    return pa.record_batch(columns), lengths > 0
