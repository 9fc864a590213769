"""Ids that may be there twice, found without sorting or shuffling the operations: by 8 bytes a row.

A task packs the hashes of its ids by *part*, their uppermost bits, into one binary value a part and chunk. Named are
the groups, a finer division by 20 of the uppermost bits, in which one hash was seen twice. So at most 2**20 integers
come out, whatever the size of the table; who wants to be sure looks at the ids of these groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from abeyance.pipeline.chunks import chunks
from abeyance.pipeline.resolver.packing import binary
from abeyance.pipeline.session import shuffle_partitions

__all__ = ["GROUP", "groups_of_repeated"]

GROUP: Final = "shiftrightunsigned(xxhash64(instance, op_id), 44)"
"""The group of an operation's id: 20 bits of its hash."""

_PART_BITS: Final = 8
_FIRST_HASHES: Final = np.arange(1, 1 << _PART_BITS, dtype=np.uint64) << np.uint64(64 - _PART_BITS)


def groups_of_repeated(operations: DataFrame) -> DataFrame:
    """Return the groups of ids (column `_group`) in which some id's hash is there twice."""
    partitions = shuffle_partitions(operations.sparkSession)
    packed = operations.selectExpr("xxhash64(instance, op_id) AS hash").mapInArrow(_pack, "part int, packed binary")
    parts = packed.repartitionById(partitions, F.expr(f"part % {partitions}")).sortWithinPartitions("part")
    return parts.mapInArrow(_groups, "_group long")


def _pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for chunk in chunks(batches):
        hashes = np.sort(chunk.column("hash").to_numpy().view(np.uint64))
        counts = np.diff(np.searchsorted(hashes, _FIRST_HASHES), prepend=0, append=len(hashes))
        parts = np.flatnonzero(counts)
        yield pa.record_batch({"part": pa.array(parts, pa.int32()), "packed": binary(counts[parts] * 8, hashes)})


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    columns = ((batch.column("part").to_pylist(), batch.column("packed")) for batch in batches)
    rows = (row for parts, packed in columns for row in zip(parts, packed, strict=True))
    for _, values in groupby(rows, key=lambda row: row[0]):
        hashes = np.sort(np.frombuffer(b"".join(packed.as_buffer() for _, packed in values), np.uint64))
        twice = hashes[1:][hashes[1:] == hashes[:-1]]
        yield pa.record_batch({"_group": pa.array(np.unique(twice >> np.uint64(44)).astype(np.int64))})
