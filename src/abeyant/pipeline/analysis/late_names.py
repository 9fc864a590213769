"""Names of topics that parsing learned when operations were written: these have the topics' ids until then.

A survey of the whole log before it is parsed would know them all. Reading everything twice for it takes a tenth of an
analysis, so only the beginnings of files are surveyed (`KafkaRequestLog.begun`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from abeyant.pipeline.analysis.columns import codes

__all__ = ["late_names", "rename_keys", "renamed_key"]

_KEY: Final = "watches.list.element.key"  # in Parquet's words


def late_names(parts: Iterable[Path], known: Mapping[str, str]) -> dict[str, str] | None:
    """Return the names that workers wrote, by topic id; None where an id has several."""
    tables = [pq.ParquetFile(part).read() for part in parts]
    pairs = {pair for table in tables for pair in zip(*table.to_pydict().values(), strict=True)}
    names = dict(pairs)
    return names if len(names) == len(pairs) and not names.keys() & known.keys() else None


def rename_keys(part: Path, names: Mapping[str, str], writer: Callable[[Path, pa.Schema], pq.ParquetWriter]) -> bool:
    """Write names in place of ids into the keys of a part of `operations`, if it has some.

    Return False, and leave the part, where one operation then had a key twice: who parses makes one of these.
    """
    with pq.ParquetFile(part) as parquet:
        groups = range(parquet.num_row_groups)
        if not any(_has_some(parquet.read_row_group(number, columns=[_KEY]), names) for number in groups):
            return True
        passing = part.with_name(f".{part.name}.named")
        with writer(passing, parquet.schema_arrow) as to:
            for number in groups:
                rows = _renamed(parquet.read_row_group(number), names)
                if rows is None:
                    return False
                to.write_table(rows)
    passing.replace(part)
    return True


def renamed_key(key: str | None, names: Mapping[str, str]) -> str | None:
    """Return the key with its topic's name in place of its id."""
    if key is None:
        return None
    topic, dash, partition = key.rpartition("-")
    return f"{names[topic]}{dash}{partition}" if topic in names else key


def _has_some(rows: pa.Table, names: Mapping[str, str]) -> bool:
    keys = pc.list_flatten(rows["watches"]).combine_chunks().field("key")
    return any(renamed_key(key, names) != key for key in keys.unique().to_pylist())


def _renamed(rows: pa.Table, names: Mapping[str, str]) -> pa.Table | None:
    lists = rows["watches"].combine_chunks()
    watches = pc.list_flatten(lists)
    number, keys = codes(watches.field("key"))
    fresh = pa.array([renamed_key(key, names) for key in keys.to_pylist()], pa.string()).take(pa.array(number))
    row = pc.list_parent_indices(lists).to_numpy(zero_copy_only=False).astype(np.int64)
    if len(np.unique(row * (len(number) + 1) + codes(fresh)[0])) < len(row):
        return None
    fields = list(lists.type.value_type)
    changed = pa.StructArray.from_arrays(
        [fresh if field.name == "key" else watches.field(field.name) for field in fields], fields=fields
    )
    sizes = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(sizes).cast(pa.int32())])
    mask = lists.is_null() if lists.null_count else None
    at = rows.column_names.index("watches")
    return rows.set_column(at, rows.schema.field(at), pa.ListArray.from_arrays(offsets, changed, lists.type, mask=mask))
