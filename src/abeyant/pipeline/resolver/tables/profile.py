"""Profile the tables on the map side while they are packed: repeated ids, hot keys and large shards, in one row.

    ids, a sample of keys, large shards ── by part, shuffled with the packed rows ── merged ── one row

*Ids* are checked without sorting or shuffling the operations, for 8 bytes per row with an id: a task packs the hashes
of its ids by *part*, their uppermost bits, into a binary value for each part and chunk. The result marks the groups, a
finer division by the 20 uppermost bits, in which a hash occurs twice: one byte per group, for each part with a marked
group. So the profile takes at most a megabyte, whatever the size of the table; an exact check is needed only for the
ids of marked groups. The sample is packed by part too, by the keys' places. Memory: three copies of a part's hashes.

The row is a scalar subquery of the job, and reads the job's own shuffle: so inputs are read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from itertools import groupby
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from abeyant.pipeline.resolver.tables.hot_keys import HotKeys, Integers, Sample, cuts_of_keys
from abeyant.pipeline.resolver.tables.packing import (
    ALONE,
    COMBINED,
    EVENTS,
    KINDS,
    ORDERS,
    PACKED,
    PROFILE,
    SHARDS,
    Packed,
    binary,
    shards_of,
)
from abeyant.pipeline.spark.chunks import chunk_batches, freeze_imports

__all__ = [
    "DIRECT",
    "GROUP_SHIFT",
    "HAS_ID",
    "ID_HASH",
    "SLOW",
    "Profiler",
    "is_repeated",
    "marks_of",
    "merge_profiles",
    "pack_ids",
    "profile_ids",
]

_ID: Final = "instance, op_id"
ID_HASH: Final = f"xxhash64({_ID})"
HAS_ID: Final = "instance IS NOT NULL AND op_id IS NOT NULL"  # rows without one are no duplicates of one another
GROUP_SHIFT: Final = 44
_PART_BITS: Final = 8
_PARTS: Final = 1 << _PART_BITS
_GROUPS: Final = 1 << (64 - GROUP_SHIFT - _PART_BITS)  # of a part
_FIRST_HASHES: Final = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(64 - _PART_BITS)

# The numbers of parts: those of the ids' hashes; then those of the sample, by place; then one for the shards that are
# spread over tasks, and one that is there if operations have several watches.
_SAMPLE: Final = _PARTS
_DEALT: Final = 2 * _PARTS
_SEVERAL: Final = _DEALT + 1
_MERGED: Final = "part int, groups binary, cuts array<bigint>, shards array<int>"

DIRECT, SLOW = 1, 2
"""The ways that packed values go (see `batch`). The profile's `ways` has for each `order` the sum of its ways, or 0."""
_WAYS: Final = f"""transform(sequence(0, {ORDERS - 1}), o -> CASE
    WHEN o % {KINDS} = {PROFILE} THEN 0
    WHEN array_contains(shards, o div {KINDS}) THEN {SLOW}
    ELSE if(o % {KINDS} IN ({EVENTS}, {ALONE}), {DIRECT}, 0)
        + if(several AND o % {KINDS} IN ({EVENTS}, {COMBINED})
            OR repeated IS NOT NULL AND o % {KINDS} IN ({EVENTS}, {ALONE}), {SLOW}, 0) END)"""


def merge_profiles(by_shard: DataFrame, sample: Sample, together: int = 1) -> DataFrame:
    """Merge the profile's parts from all tasks (`PACKED`, shuffled, of the kind `PROFILE`) into one row.

    Its columns are: `ways`, see `DIRECT`. `shards`: shards with a hot key, or that a task spread over tasks. `cuts`:
    the hot keys and their cuts, see hot_keys. `repeated`: by part, a mark for each group in which an id may be
    repeated; null if there is no such group. `several`: whether an operation has several watches.
    """
    merge = partial(_merge, piece=sample.piece, together=together)
    merged = by_shard.sortWithinPartitions("order").mapInArrow(merge, _MERGED)
    row = merged.selectExpr(
        "flatten(collect_list(cuts)) AS cuts",
        "array_distinct(flatten(collect_list(shards))) AS shards",
        "map_from_entries(collect_list(struct(part, groups)) FILTER (WHERE groups IS NOT NULL)) AS by_part",
        f"coalesce(bool_or(part = {_SEVERAL}), false) AS several",
    )
    of_parts = f"transform(sequence(0, {_PARTS - 1}), n -> by_part[n])"
    profile = row.selectExpr("*", f"if(cardinality(by_part) > 0, {of_parts}, NULL) AS repeated")
    return profile.selectExpr("cuts", "shards", "repeated", "several", f"{_WAYS} AS ways")


def profile_ids(operations: DataFrame) -> DataFrame:
    """Return a profile that only tells which ids of `operations` may be repeated. A separate job computes it."""
    hashes = operations.where(HAS_ID).selectExpr(f"{ID_HASH} AS id")
    return merge_profiles(hashes.mapInArrow(_pack_ids, PACKED).repartition("order"), Sample(0, 1))


def is_repeated(profile: str, id_: str = _ID) -> str:
    """Return the SQL condition that an id, two columns, may be repeated; `profile` is the profile's row, a struct."""
    group = f"shiftrightunsigned(xxhash64({id_}), {GROUP_SHIFT})"
    groups = f"get({profile}.repeated, int({group} div {_GROUPS}))"
    is_there = f"coalesce(substring({groups}, int({group} % {_GROUPS}) + 1, 1) = X'01', false)"
    return f"if({profile}.repeated IS NULL, false, {is_there})"


# -- in the workers ------------------------------------------------------------------------------------------------


class Profiler:
    """Packs a task's parts of the profile, chunk by chunk."""

    def __init__(self, sample: Sample, task: int) -> None:
        """Start with a task's number, which spreads shards that are large in a chunk over the tasks."""
        self._sample = sample
        self._number = 1 + task % (SHARDS - 1)
        self._several = False

    def __call__(
        self, packed: Packed, place: Integers, identity: Integers, value: Integers, several: bool = False
    ) -> Iterator[pa.RecordBatch]:
        """Yield a packed chunk as `PACKED`, then its parts of the profile, from the columns of its keys and values."""
        self._number = 1 + self._number % (SHARDS - 1)
        yield packed.batch(self._sample.large, self._number)
        large_shards = np.unique(packed.order[packed.rows > self._sample.large] // KINDS)
        if len(large_shards):
            yield _batch(np.array([_DEALT]), [large_shards.nbytes], large_shards)
        if several and not self._several:
            self._several = True
            yield _batch(np.array([_SEVERAL]), [0], b"")
        rng = np.random.default_rng(int(place[0]) & (2**63 - 1))  # every run draws the same rows
        selected = np.flatnonzero(rng.random(len(place)) < self._sample.fraction)
        if len(selected):
            # Only these bits of an identity are packed.
            rows = np.column_stack((place[selected], identity[selected] & 0xFFFFFFFF, value[selected]))
            rows = rows[np.argsort(rows[:, 0].view(np.uint64), kind="stable")]
            yield from _parts(np.searchsorted(rows[:, 0].view(np.uint64), _FIRST_HASHES), rows, _SAMPLE)


def pack_ids(hashes: npt.NDArray[np.uint64]) -> Iterator[pa.RecordBatch]:
    """Pack the hashes of a chunk's ids by part."""
    hashes = np.sort(hashes)
    # Two copies of a hash show that it is repeated; all copies, a million perhaps, would be in one value.
    hashes = np.concatenate((hashes[:2], hashes[2:][hashes[2:] != hashes[:-2]]))
    yield from _parts(np.searchsorted(hashes, _FIRST_HASHES), hashes, 0)


def _pack_ids(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    freeze_imports()
    for group in chunk_batches(batches):
        yield from pack_ids(np.concatenate([batch.column(0).to_numpy() for batch in group]).view(np.uint64))


def _parts(firsts: npt.NDArray[np.intp], rows: npt.NDArray[np.generic], base: int) -> Iterator[pa.RecordBatch]:
    """Yield the non-empty parts of sorted rows, given where all parts but the first begin."""
    counts = np.diff(firsts, prepend=0, append=len(rows))
    parts = np.flatnonzero(counts)
    if len(parts):
        yield _batch(parts + base, counts[parts] * (rows.nbytes // len(rows)), rows)


def _batch(parts: npt.NDArray[np.integer], lengths: npt.ArrayLike, values: object) -> pa.RecordBatch:
    return pa.record_batch({"order": pa.array(parts * KINDS + PROFILE, pa.int64()), "packed": binary(lengths, values)})


def _merge(batches: Iterable[pa.RecordBatch], piece: int, together: int = 1) -> Iterator[pa.RecordBatch]:
    """Merge `PACKED` rows, sorted by `order`, into one row for each non-empty part of the profile."""
    freeze_imports()
    columns = ((batch.column("order").to_pylist(), batch.column("packed")) for batch in batches)
    rows = (row for orders, packed in columns for row in zip(orders, packed, strict=True))
    for order, values in groupby(rows, key=lambda row: row[0]):
        part = order // KINDS
        packed = b"".join(value.as_buffer() for _, value in values)
        groups: bytes | None = None
        cuts: list[int] = []
        shards = np.empty(0, np.int64)
        if part < _SAMPLE:
            groups = _repeated_groups(np.sort(np.frombuffer(packed, np.uint64)))
        elif part < _DEALT:
            cuts = cuts_of_keys(np.frombuffer(packed, np.int64).reshape(-1, 3), piece, piece)
            shards = shards_of(HotKeys.read(np.array(cuts, np.int64)).places, together)
        elif part == _DEALT:
            shards = np.frombuffer(packed, np.int64)
        if groups is not None or len(shards) or part == _SEVERAL:
            yield pa.record_batch(
                {
                    "part": pa.array([part], pa.int32()),
                    "groups": pa.array([groups], pa.binary()),
                    "cuts": pa.array([cuts], pa.list_(pa.int64())),
                    "shards": pa.array([np.unique(shards)], pa.list_(pa.int32())),
                }
            )


def _repeated_groups(hashes: npt.NDArray[np.uint64]) -> bytes | None:
    """Return a byte for each group of a part, 1 if a hash occurs twice in the group; None if no hash occurs twice."""
    duplicates = hashes[1:][hashes[1:] == hashes[:-1]]
    if not len(duplicates):
        return None
    marks = np.zeros(_GROUPS, np.uint8)
    marks[(duplicates >> np.uint64(GROUP_SHIFT)).astype(np.int64) % _GROUPS] = 1
    return marks.tobytes()


def marks_of(repeated: pa.ListScalar) -> npt.NDArray[np.bool_] | None:
    """Return a mark for each group of ids, given the profile's `repeated`; None if no id is repeated."""
    groups = repeated.as_py()
    if not groups:
        return None
    return np.frombuffer(b"".join(marks or bytes(_GROUPS) for marks in groups), np.bool_)
