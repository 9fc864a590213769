"""One look at all operations, before the job: what has to be known of them beforehand, from one scan.

    operations ── look ── by part ──┬── the groups of ids that may be there twice
                                    ├── the watches of a sample: see hot_keys
                                    └── whether any operation has several watches

All three read one small shuffle. *Ids* are looked for without sorting or shuffling the operations, by 8 bytes a row
that has one: a task packs the hashes of its ids by *part*, their uppermost bits, a binary value a part and chunk. Named
are the groups, a finer division by 20 of the uppermost bits, in which one hash was seen twice. So at most 2**20
integers come out, whatever the size of the table; who wants to be sure looks at the ids of these groups. Memory: the
hashes of a part, three times.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from abeyance.pipeline.resolver.tables.hot_keys import IDENTITY, PLACE, in_sample
from abeyance.pipeline.resolver.tables.one_shuffle import part_of
from abeyance.pipeline.resolver.tables.packing import binary
from abeyance.pipeline.spark.chunks import chunks

__all__ = ["GROUP", "any_several", "look_at", "repeated_groups", "sampled_watches"]

_ID_HASH: Final = "xxhash64(instance, op_id)"
_GROUP_SHIFT: Final = 44

GROUP: Final = f"shiftrightunsigned({_ID_HASH}, {_GROUP_SHIFT})"
"""The group of an operation's id: 20 bits of its hash."""

_PART_BITS: Final = 8
_FIRST_HASHES: Final = np.arange(1, 1 << _PART_BITS, dtype=np.uint64) << np.uint64(64 - _PART_BITS)
_SAMPLED: Final = 1 << _PART_BITS
_SEVERAL: Final = _SAMPLED + 1

_HAS_SEVERAL: Final = "coalesce(size(watches.required) > 1, false)"
_SEEN: Final = "part int, packed binary"


def look_at(operations: DataFrame, *, fraction: float | None, ids: bool = True) -> DataFrame:
    """Return what is seen of the operations, for the three below; of the ids nothing unless `ids`.

    `fraction` is the sample's. Where it is None only the ids are looked at.
    """
    # Rows without an id are set aside, and no duplicates of one another.
    about_id = f"if(instance IS NULL OR op_id IS NULL, NULL, {_ID_HASH})" if ids else "CAST(NULL AS bigint)"
    several, sampled = ("false", "false") if fraction is None else (_HAS_SEVERAL, in_sample(fraction))
    rows = operations.selectExpr(
        f"{about_id} AS hash", f"{several} AS several", "instance", "watches", f"{sampled} AS sampled"
    )
    wanted = rows.selectExpr(
        *("hash", "several", "if(sampled, instance, NULL) AS instance", "if(sampled, watches, NULL) AS watches")
    ).where("hash IS NOT NULL OR several OR watches IS NOT NULL")
    return wanted.mapInArrow(_look, _SEEN).repartition("part")


def repeated_groups(seen: DataFrame) -> DataFrame:
    """Return the groups of ids (column `_group`) in which some id's hash is there twice."""
    return part_of(seen, f"part < {_SAMPLED}").sortWithinPartitions("part").mapInArrow(_groups, "_group long")


def sampled_watches(seen: DataFrame) -> DataFrame:
    """Return `place`, `identity` and `value` (what is required) of each watch in the sample."""
    watches = part_of(seen, f"part = {_SAMPLED}").mapInArrow(_watches, "instance string, key string, value long")
    return watches.selectExpr(f"{PLACE} AS place", f"{IDENTITY} AS identity", "value")


def any_several(seen: DataFrame) -> DataFrame:
    """Return one row, or none where no operation has several watches."""
    # Asks for both columns, lest Spark drop one before the shuffle, and no longer find it the same.
    return part_of(seen, f"part = {_SEVERAL}").limit(1).where("part > 0 AND length(packed) = 0").selectExpr("1 AS one")


# -- in the workers ------------------------------------------------------------------------------------------------


def _look(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(hash, several, instance, watches) -> (part, packed)."""
    several = False
    for chunk in chunks(batches):
        hashes = np.sort(chunk.column("hash").drop_null().to_numpy().view(np.uint64))
        # Twice tells as much as a million times, and does not all go into one value.
        hashes = np.concatenate((hashes[:2], hashes[2:][hashes[2:] != hashes[:-2]]))
        counts = np.diff(np.searchsorted(hashes, _FIRST_HASHES), prepend=0, append=len(hashes))
        parts = np.flatnonzero(counts)
        if len(parts):
            yield _parts(parts, counts[parts] * 8, hashes)
        sampled = chunk.select(["instance", "watches"]).filter(chunk.column("watches").is_valid())
        if sampled.num_rows:
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, sampled.schema) as writer:
                writer.write_batch(sampled)
            packed = stream.getvalue()
            yield _parts([_SAMPLED], [packed.size], packed)
        if not several and pc.any(chunk.column("several")).as_py():
            several = True
            yield _parts([_SEVERAL], [0], b"")


def _parts(parts: npt.ArrayLike, lengths: npt.ArrayLike, values: object) -> pa.RecordBatch:
    return pa.record_batch({"part": pa.array(parts, pa.int32()), "packed": binary(lengths, values)})


def _groups(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    columns = ((batch.column("part").to_pylist(), batch.column("packed")) for batch in batches)
    rows = (row for parts, packed in columns for row in zip(parts, packed, strict=True))
    for _, values in groupby(rows, key=lambda row: row[0]):
        hashes = np.sort(np.frombuffer(b"".join(packed.as_buffer() for _, packed in values), np.uint64))
        twice = hashes[1:][hashes[1:] == hashes[:-1]]
        yield pa.record_batch({"_group": pa.array(np.unique(twice >> np.uint64(_GROUP_SHIFT)).astype(np.int64))})


def _watches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(part, packed) -> (instance, key, value), a row a watch."""
    for packed in (value for batch in batches for value in batch.column("packed")):
        for sampled in pa.ipc.open_stream(packed.as_buffer()):
            lists = sampled.column("watches")
            key, value = lists.flatten().flatten()
            instance = sampled.column("instance").take(pc.list_parent_indices(lists))
            yield pa.record_batch({"instance": instance, "key": key, "value": value})
