"""Shuffle rows to shards as packed columns, which Spark moves as bytes. Each task then processes whole shards.

If Spark shuffled single rows, it would copy, hash and sort each row, which takes longer than the counting itself. A
shard is held in memory, so there are more shards if there are more operations.
"""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Final

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StructType

from abeyant.pipeline.analysis.columns import Integers, LogRows, codes, join_tables, run_starts, tables
from abeyant.pipeline.spark.chunks import freeze_imports
from abeyant.pipeline.spark.packed import Work, pack, unpack
from abeyant.pipeline.spark.session import shuffle_partitions
from abeyant.pipeline.spark.spreading import spread

__all__ = ["ShardRows", "Sharded", "by_group", "by_shard", "shard_count", "shuffle_to_shards"]

Sharded = tuple[str, pa.Table, Integers]
"""A table's name, rows of this table, and the shard of each row."""

_SHUFFLED: Final = "shard int, name string, rows binary"
_SHARD_ROWS: Final = 400_000
_TASK_ROWS: Final = 20_000


def by_shard(
    rows: DataFrame | LogRows,
    deal: Callable[[pa.Table], Iterable[Sharded]],
    shards: int,
    make: Callable[[dict[str, pa.Table]], Iterable[pa.Table]],
    schema: StructType | str,
) -> DataFrame:
    """Shuffle rows to shards; return the rows that `make` returns for each shard. Memory: two copies of a shard."""
    return shuffle_to_shards(rows, deal, shards, make).table(schema)


@dataclass(frozen=True)
class ShardRows:
    """The rows that `make` returns for each shard. `mapInArrow` maps them in the same worker, to move less."""

    dealt: DataFrame
    make: Callable[[dict[str, pa.Table]], Iterable[pa.Table]]

    def mapInArrow(self, work: Work, schema: StructType | str) -> DataFrame:  # noqa: N802 - as of a DataFrame
        """Return the rows that `work` returns for the rows of the shards in each partition."""
        return self.dealt.mapInArrow(partial(_worked, make=self.make, work=work), schema)

    def table(self, schema: StructType | str) -> DataFrame:
        """Return the rows as a DataFrame."""
        return self.dealt.mapInArrow(partial(_make, make=self.make), schema)


def shuffle_to_shards(
    rows: DataFrame | LogRows,
    deal: Callable[[pa.Table], Iterable[Sharded]],
    shards: int,
    make: Callable[[dict[str, pa.Table]], Iterable[pa.Table]],
) -> ShardRows:
    """Shuffle rows to shards. `make` gets a shard's tables by name and returns rows. Memory: two copies of a shard."""
    one_each = F.expr(spread("shard", shards, shards))
    dealt = rows.mapInArrow(partial(_shuffle, deal=deal), _SHUFFLED).repartition(shards, one_each)
    return ShardRows(dealt.sortWithinPartitions("shard"), make)


def shard_count(spark: SparkSession, operations: int | None = None) -> int:
    """Return the number of shards for that many operations; for None, the number of shuffle partitions."""
    partitions = shuffle_partitions(spark)
    if operations is None:
        return partitions
    return max(operations // _SHARD_ROWS, min(partitions, operations // _TASK_ROWS + 1))


def by_group(table: pa.Table, group: Sequence[str], shards: int) -> Integers:
    """Return the shard of each row. All rows of a group have the same shard, in every task."""
    columns = [codes(table[name]) for name in group]
    order = np.lexsort([numbers for numbers, _ in columns])
    starts = run_starts([numbers[order] for numbers, _ in columns])
    texts = [values.to_pylist() for _, values in columns]
    firsts = zip(*(numbers[order[starts]].tolist() for numbers, _ in columns), strict=True)
    of_group = [
        zlib.crc32("\0".join(str(text[number]) for text, number in zip(texts, row, strict=True)).encode()) % shards
        for row in firsts
    ]
    shard_numbers = np.empty(len(order), np.int64)
    shard_numbers[order] = np.repeat(np.array(of_group, np.int64), np.diff(np.append(starts, len(order))))
    return shard_numbers


def _shuffle(
    batches: Iterable[pa.RecordBatch], deal: Callable[[pa.Table], Iterable[Sharded]]
) -> Iterator[pa.RecordBatch]:
    for table in tables(batches):
        for name, rows, shard in deal(table):
            if not rows.num_rows:  # for example if no operation names a key
                continue
            order = np.argsort(shard, kind="stable")
            ordered = rows.take(pa.array(order))
            starts = run_starts([shard[order]])
            for start, end in zip(starts, np.append(starts[1:], len(order)), strict=True):
                part = [shard[order[start]]], [name], [pack(ordered.slice(start, end - start))]
                types = pa.int32(), pa.string(), pa.binary()
                yield pa.record_batch([pa.array(*column) for column in zip(part, types, strict=True)], _NAMES)


_NAMES: Final = ["shard", "name", "rows"]


def _make(
    batches: Iterable[pa.RecordBatch], make: Callable[[dict[str, pa.Table]], Iterable[pa.Table]]
) -> Iterator[pa.RecordBatch]:
    freeze_imports()
    rows = (row for batch in batches for row in zip(*(column.to_pylist() for column in batch.columns), strict=True))
    for _, shard_rows in groupby(rows, key=lambda row: row[0]):
        parts: dict[str, list[pa.Table]] = defaultdict(list)
        for _, name, packed in shard_rows:
            parts[name].append(unpack(packed))
        for result in make({name: join_tables(parts.pop(name)) for name in list(parts)}):
            yield from result.combine_chunks().to_batches()


def _worked(
    batches: Iterable[pa.RecordBatch], make: Callable[[dict[str, pa.Table]], Iterable[pa.Table]], work: Work
) -> Iterator[pa.RecordBatch]:
    return work(_make(batches, make))
