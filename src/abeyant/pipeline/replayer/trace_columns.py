"""Pack traces for Spark's shuffle: each value has the 64-bit integers of thousands of operations.

So the shuffle moves only a few values per instance. Copies of these values are cheap: each task that replays a share of
the configurations gets one copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from abeyant.pipeline.spark.chunks import chunks

__all__ = ["PACKED", "Trace", "pack", "unpack"]

PACKED: Final = (
    "instance string, left_out long, starts binary, timeouts binary, ends binary, counts binary, keys binary"
)

_COLUMNS: Final = ("starts", "timeouts", "ends", "counts", "keys")
_CHUNK: Final = 1 << 16

Integers = npt.NDArray[np.int64]


class Trace(NamedTuple):
    """The operations of one instance, in columns. The module `traces` says what the columns mean."""

    instance: str
    left_out: int
    """Number of the instance's operations that cannot be replayed and are not in the columns."""
    starts: Integers
    timeouts: Integers
    ends: Integers
    counts: Integers
    """Number of keys of each operation; empty if the trace has no keys."""
    keys: Integers


def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack rows of `traces`, chunk by chunk: yield one row for each instance in the chunk."""
    return map(_packed, chunks(batches, _CHUNK))


def _packed(chunk: pa.RecordBatch) -> pa.RecordBatch:
    table = pa.Table.from_batches([chunk])
    names = table["instance"].combine_chunks().dictionary_encode()
    places = names.indices.to_numpy()
    records = []
    for place, name in enumerate(names.dictionary.to_pylist()):
        rows = table.take(pa.array(np.flatnonzero(places == place)))
        usable = rows.filter(rows["end_us"].is_valid())
        columns = [usable[column].to_numpy() for column in ("start_us", "timeout_us", "end_us")]
        if "keys" in table.column_names:
            keys = usable["keys"].combine_chunks()
            columns += [keys.value_lengths().to_numpy().astype(np.int64), keys.flatten().to_numpy()]
        values = [np.ascontiguousarray(column, np.int64).tobytes() for column in columns]
        values += [b""] * (len(_COLUMNS) - len(values))
        records.append((name, rows.num_rows - usable.num_rows, *values))
    kinds = [pa.string(), pa.int64(), *[pa.binary()] * len(_COLUMNS)]
    arrays = [pa.array(column, kind) for column, kind in zip(zip(*records, strict=True), kinds, strict=True)]
    return pa.record_batch(arrays, ["instance", "left_out", *_COLUMNS])


def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Trace]]:
    """Yield each share's number and the whole trace of its instance, from packed rows sorted by instance and share."""
    now: tuple[str, int] | None = None
    left_out, parts = 0, [bytearray() for _ in _COLUMNS]
    for batch in batches:
        named = zip(batch["instance"].to_pylist(), batch["share"].to_pylist(), strict=True)
        for row, group in enumerate(named):
            if group != now:
                if now is not None:
                    yield now[1], _trace(now[0], left_out, parts)
                now, left_out, parts = group, 0, [bytearray() for _ in _COLUMNS]
            left_out += batch["left_out"][row].as_py()
            for part, column in zip(parts, _COLUMNS, strict=True):
                part += batch[column][row].as_buffer()
    if now is not None:
        yield now[1], _trace(now[0], left_out, parts)


def _trace(instance: str, left_out: int, parts: list[bytearray]) -> Trace:
    return Trace(instance, left_out, *(np.frombuffer(part, np.int64) for part in parts))
