"""The profile of the tables, made before the job: what it has to know of them, in one row.

    operations ── ids, a sample of watches ──┐
                                             ├── by part ── merged ── one row: `cuts`, `repeated`, `several`
    events ────── a sample ──────────────────┘

- `cuts`: `several` as a number, and the hot keys of the sample and where they are cut: see hot_keys.
- `repeated`: the groups of ids in which an id may occur twice.
- `several`: whether any operation needs the second step: one of several watches, or of a repeated id.

*Ids* are checked without sorting or shuffling the operations, for 8 bytes a row that has one: a task packs the hashes
of its ids by *part*, their uppermost bits, into a binary value for each part and chunk. The result names groups, a
finer division by the 20 uppermost bits, in which one hash occurs twice: a byte a group of each part that has one. So
the profile takes at most a megabyte, whatever the size of the table; an exact answer needs the ids of these groups
only. The sample is packed by part too, by the keys' places. Memory: the hashes of a part, three times.

The row is a scalar subquery of the job: Spark computes it once, however often the job's plan names it. (A join would
take a job of its own, and another copy of the tables' plan, for each of the three.)
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

from abeyant.pipeline.resolver.tables.hot_keys import IDENTITY, PLACE, Integers, Sample, cuts_of_keys
from abeyant.pipeline.resolver.tables.packing import binary
from abeyant.pipeline.spark.chunks import freeze_imports, gathered

__all__ = ["GROUP_SHIFT", "PROFILE", "is_drawn", "is_repeated", "merge_profiles", "pack_profile", "profile_tables"]

_ID: Final = "instance, op_id"
GROUP_SHIFT: Final = 44
_PART_BITS: Final = 8
_PARTS: Final = 1 << _PART_BITS
_GROUPS: Final = 1 << (64 - GROUP_SHIFT - _PART_BITS)  # of a part
_FIRST_HASHES: Final = np.arange(1, _PARTS, dtype=np.uint64) << np.uint64(64 - _PART_BITS)

# What goes to Python is one list of a row, since Spark takes a time for each column: what there is of it, and that.
_ROW: Final = ("about", "hash", "place", "identity", "value")
_HAS_ID, _SEVERAL_WATCHES, _SAMPLED = 1, 2, 4

# What is packed: the part of the ids' hashes; above them those of the sample, by place; above them a row for `several`.
_SAMPLE: Final = _PARTS
_SEVERAL: Final = 2 * _PARTS
PROFILE: Final = "part int, packed binary"
_MERGED: Final = "part int, groups binary, cuts array<bigint>, several boolean"


def profile_tables(
    operations: DataFrame, events: DataFrame | None = None, *, sample: Sample, ids: bool = True
) -> DataFrame:
    """Return the profile of the tables, one row; without the ids unless `ids`, without a sample if no `events`."""
    rows = _of_operations(operations, sample.fraction if events is not None else 0.0, ids=ids)
    if events is not None:
        # Sampled before anything is computed of a row: most are only skipped.
        few = events.where(is_drawn(sample.fraction))
        of_event = f"array({_SAMPLED}L, 0L, {PLACE}, {IDENTITY}, progress)"
        rows = rows.union(few.where("progress IS NOT NULL").selectExpr(of_event))
    return merge_profiles(rows.mapInArrow(_profile, PROFILE), sample)


def merge_profiles(profiles: DataFrame, sample: Sample) -> DataFrame:
    """Merge what each task found (`PROFILE`) into the one row."""
    packed = profiles.repartition("part")
    merged = packed.sortWithinPartitions("part").mapInArrow(partial(_merge, piece=sample.piece), _MERGED)
    several = "coalesce(bool_or(several), false)"
    row = merged.selectExpr(
        f"concat(array(bigint({several})), flatten(collect_list(cuts))) AS cuts",
        "map_from_entries(collect_list(struct(part, groups)) FILTER (WHERE groups IS NOT NULL)) AS by_part",
        f"{several} AS several",
    )
    of_parts = f"transform(sequence(0, {_PARTS - 1}), n -> by_part[n])"
    return row.selectExpr("cuts", f"if(cardinality(by_part) > 0, {of_parts}, NULL) AS repeated", "several")


def is_repeated(profile: str, id_: str = _ID) -> str:
    """Return the condition that an id, two columns, may occur twice; `profile` is the one row, as a struct."""
    group = f"shiftrightunsigned(xxhash64({id_}), {GROUP_SHIFT})"
    groups = f"get({profile}.repeated, int({group} div {_GROUPS}))"
    is_there = f"coalesce(substring({groups}, int({group} % {_GROUPS}) + 1, 1) = X'01', false)"
    return f"if({profile}.repeated IS NULL, false, {is_there})"


def _of_operations(operations: DataFrame, fraction: float, *, ids: bool) -> DataFrame:
    """Return `_ROW` of each operation that the profile needs."""
    # Rows without an id are rejected, and no duplicates of one another.
    has_id = "instance IS NOT NULL AND op_id IS NOT NULL" if ids else "false"
    drawn = operations.selectExpr(
        "instance", "op_id", "watches", f"{has_id} AS has_id", "xxhash64(monotonically_increasing_id()) AS draw"
    )
    # One watch of an operation, which has as many chances to be drawn as it has watches.
    is_drawn = f"shiftrightunsigned(draw, 11) < {fraction * 2.0**53!r}D * size(watches)"
    watch = f"if({is_drawn}, get(watches, int(pmod(draw, size(watches)))), NULL)"
    seen = drawn.selectExpr(
        "instance",
        f"if(has_id, xxhash64({_ID}), 0L) AS hash",
        f"if(has_id, {_HAS_ID}L, 0L) + if(size(watches) > 1, {_SEVERAL_WATCHES}L, 0L) AS about",
        f"({watch}).key AS key",
        f"({watch}).required AS value",
    )
    of_sample = f"array(about + {_SAMPLED}L, hash, {PLACE}, {IDENTITY}, value)"
    rows = f"if(value IS NULL, array(about, hash, 0L, 0L, 0L), {of_sample}) AS row"
    return seen.where("about > 0 OR value IS NOT NULL").selectExpr(rows)


def is_drawn(fraction: float) -> str:
    """Return the condition that a row is in a sample of that fraction of all rows: those whose hashes are the least.

    The same rows at every run where the partitions are the same. (DataFrame.sample draws a random number a row, which
    takes several times as long.)
    """
    return f"xxhash64(monotonically_increasing_id()) <= {min(int(fraction * 2**64), 2**64 - 1) - 2**63}L"


# -- in the workers ------------------------------------------------------------------------------------------------


def _profile(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """(a list of _ROW) -> (part, packed)."""
    freeze_imports()
    several = False
    for some in gathered(batches):
        rows = np.concatenate([batch.column(0).flatten().to_numpy() for batch in some]).reshape(-1, len(_ROW))
        about = rows[:, 0]
        now_several = not several and bool(np.any(about & _SEVERAL_WATCHES))
        several = several or now_several
        hashes = rows[about & _HAS_ID > 0, 1].view(np.uint64)
        yield from pack_profile(hashes, rows[about & _SAMPLED > 0, 2:], several=now_several)


def pack_profile(hashes: npt.NDArray[np.uint64], sampled: Integers, *, several: bool) -> Iterator[pa.RecordBatch]:
    """Pack the ids of a chunk, rows (place, identity, value) of the sample, and that there are several watches."""
    hashes = np.sort(hashes)
    # Twice tells as much as a million times, and does not all go into one value.
    hashes = np.concatenate((hashes[:2], hashes[2:][hashes[2:] != hashes[:-2]]))
    yield from _parts(np.searchsorted(hashes, _FIRST_HASHES), hashes, 0)
    sampled = sampled[np.argsort(sampled[:, 0].view(np.uint64), kind="stable")]
    yield from _parts(np.searchsorted(sampled[:, 0].view(np.uint64), _FIRST_HASHES), sampled, _SAMPLE)
    if several:
        yield pa.record_batch({"part": pa.array([_SEVERAL], pa.int32()), "packed": binary([0], b"")})


def _parts(firsts: npt.NDArray[np.intp], rows: npt.NDArray[np.generic], base: int) -> Iterator[pa.RecordBatch]:
    """Yield the parts that are there of sorted rows, given where all parts but the first begin."""
    counts = np.diff(firsts, prepend=0, append=len(rows))
    parts = np.flatnonzero(counts)
    if len(parts):
        size = rows.nbytes // len(rows)
        yield pa.record_batch(
            {"part": pa.array(parts + base, pa.int32()), "packed": binary(counts[parts] * size, rows)}
        )


def _merge(batches: Iterable[pa.RecordBatch], piece: int) -> Iterator[pa.RecordBatch]:
    """(part, packed), sorted by part -> a row for each part in which anything was found."""
    freeze_imports()
    columns = ((batch.column("part").to_pylist(), batch.column("packed")) for batch in batches)
    rows = (row for parts, packed in columns for row in zip(parts, packed, strict=True))
    for part, values in groupby(rows, key=lambda row: row[0]):
        packed = b"".join(value.as_buffer() for _, value in values)
        groups: bytes | None = None
        cuts: list[int] = []
        if part < _SAMPLE:
            groups = _repeated_groups(np.sort(np.frombuffer(packed, np.uint64)))
        elif part < _SEVERAL:
            cuts = cuts_of_keys(_rows_of_three(packed), piece)
        combined = groups is not None or part == _SEVERAL  # rows of one id, as well as watches of one row
        if combined or cuts:
            yield pa.record_batch(
                {
                    "part": pa.array([part], pa.int32()),
                    "groups": pa.array([groups], pa.binary()),
                    "cuts": pa.array([cuts], pa.list_(pa.int64())),
                    "several": [combined],
                }
            )


def _rows_of_three(packed: bytes) -> Integers:
    return np.frombuffer(packed, np.int64).reshape(-1, 3)


def _repeated_groups(hashes: npt.NDArray[np.uint64]) -> bytes | None:
    """Return a byte for each group of a part, 1 where a hash is there twice; None where none is."""
    twice = hashes[1:][hashes[1:] == hashes[:-1]]
    if not len(twice):
        return None
    marks = np.zeros(_GROUPS, np.uint8)
    marks[(twice >> np.uint64(GROUP_SHIFT)).astype(np.int64) % _GROUPS] = 1
    return marks.tobytes()
