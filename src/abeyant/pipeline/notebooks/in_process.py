"""Count the outcomes of a table with an Arrow interface, in this process. Imports no Spark."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from abeyant.errors import SchemaError
from abeyant.pipeline.results.waits import MOST_KEYS, Waits, bins
from abeyant.tables.reading import batches_of

__all__ = ["count_expired_keys", "count_waits"]

_COUNTED: Final = {"kind": "text", "outcome": "text", "waited_ms": "a number"}
_ENDED: Final = {"instance": "text", "op_id": "text", "outcome": "text"}
_WATCHING: Final = {
    "instance": "text",
    "op_id": "text",
    "watches": "a list of structs of key (text) and required (an integer)",
}
_ID: Final = ["instance", "op_id"]


def count_waits(outcomes: Any) -> pd.DataFrame:
    """Return the counts of outcomes by kind, outcome and length of wait (see `results.waits`)."""
    waits = Waits()
    for batch in batches_of(outcomes, _COUNTED, "outcomes"):
        missing = [name for name in ("outcome", "waited_ms") if batch.column(name).null_count]
        if missing:
            raise SchemaError(f"outcomes: column {missing[0]!r} has nulls: every outcome needs a value there")
        text = (batch.column(name).cast(pa.string()) for name in ("kind", "outcome"))
        waits.add(bins(pa.record_batch([*text, batch.column("waited_ms").cast(pa.float64())], list(_COUNTED))))
    counts: pd.DataFrame = waits.table().to_pandas()
    return counts


def count_expired_keys(outcomes: Any, operations: Any) -> pd.DataFrame:
    """Return the keys on which most operations expired: (instance, key, expired, one_in), at most `MOST_KEYS`."""
    batches = [
        batch.filter(pc.equal(batch["outcome"], "expired")) for batch in batches_of(outcomes, _ENDED, "outcomes")
    ]
    expired = _ids(pa.Table.from_batches(batches)) if batches else None
    frames = [] if expired is None else [_watched(batch, expired) for batch in _batches(operations)]
    keys = pd.concat(frames or [pd.DataFrame(columns=[*_ID, "key"])]).drop_duplicates()
    counts = keys.groupby(["instance", "key"]).size().rename("expired").reset_index()
    return counts.assign(one_in=1.0).sort_values("expired", ascending=False).head(MOST_KEYS)


def _batches(operations: Any) -> Any:
    return batches_of(operations, _WATCHING, "operations")


def _ids(table: pa.Table) -> pa.Table:
    return pa.table({name: table[name].cast(pa.large_string()) for name in _ID})


def _watched(batch: pa.RecordBatch, expired: pa.Table) -> pd.DataFrame:
    """Return (instance, op_id, key) of the expired operations in a batch: a row for each watch with a key."""
    ids = _ids(pa.Table.from_batches([batch])).append_column("row", pa.array(np.arange(batch.num_rows)))
    rows = ids.join(expired, _ID, join_type="left semi").combine_chunks()
    watches = batch.column("watches").take(rows["row"].combine_chunks())
    parents = pc.list_parent_indices(watches)
    keys = pc.struct_field(pc.list_flatten(watches), "key")
    table = rows.select(_ID).take(parents).append_column("key", keys.cast(pa.large_string()))
    frame: pd.DataFrame = table.filter(pc.is_valid(table["key"])).to_pandas()
    return frame
