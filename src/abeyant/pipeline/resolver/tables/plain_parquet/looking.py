"""Find hot keys of plain files before the job: the driver samples some rows of some row groups.

So tasks cut hot keys while they pack them, and each row is shuffled once. Cuts change no outcome (see `hot_keys`): keys
that this sample misses, or cuts badly because a file is sorted, cost time only. The job's profile finds keys that are
still hot, and the job cuts these after the first shuffle, as for tables of other kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.tables.hot_keys import HotKeys, Integers, Sample, cuts_of_keys
from abeyant.pipeline.resolver.tables.plain_parquet.tasks import BATCH_ROWS, Task, chunks_of
from abeyant.tables.columns import watches_of
from abeyant.tables.keys import PairHash

__all__ = ["look_for_hot_keys"]

_GROUPS: Final = 32  # of each table, at most
_THREADS: Final = 4


def look_for_hot_keys(tasks: Sequence[Task], seed: bytes, sample: Sample) -> HotKeys:
    """Return the keys that have more rows than a piece, cut into half pieces, so that no piece is hot in the profile.

    Return no keys if both tables together are smaller than a piece, or if files are on a store, where whole row groups
    would have to be fetched. Reads the first rows of each sampled row group, in some 5 ms. Memory: the columns of
    `_THREADS` row groups, as stored.
    """
    remote = any(group.file.reach is not None for task in tasks for group in task.groups)
    if remote or _rows(tasks) * sample.fraction <= sample.piece:
        return HotKeys(())
    pairs = PairHash(seed)
    selected = [
        pair for name in ("operations", "events") for pair in _sample_row_groups([t for t in tasks if t.table == name])
    ]
    with ThreadPoolExecutor(_THREADS, "abeyant-look") as pool:
        rows = list(pool.map(partial(_drawn, pairs=pairs, fraction=sample.fraction), *zip(*selected, strict=True)))
    cuts = cuts_of_keys(np.concatenate(rows), sample.piece, max(sample.piece // 2, 1))
    return HotKeys.read(np.array(cuts, np.int64))


def _rows(tasks: Sequence[Task]) -> int:
    return sum(group.rows for task in tasks for group in task.groups)


def _sample_row_groups(tasks: Sequence[Task]) -> Iterator[tuple[Task, float]]:
    """Yield (task, weight) for evenly spaced row groups. A row that is read represents `weight` rows of the table."""
    row_groups = [task._replace(groups=[group]) for task in tasks for group in task.groups]
    step = -(-len(row_groups) // _GROUPS) or 1
    selected = row_groups[step // 2 :: step]
    for task in selected:
        yield task, _rows(row_groups) / len(selected) / min(_rows([task]), BATCH_ROWS)


def _drawn(task: Task, weight: float, pairs: PairHash, fraction: float) -> Integers:
    """Return the sample of a row group as rows (place, identity, value). Rows with a null are left out."""
    names = ("instance", "key", "progress") if task.table == "events" else ("instance", "watches")
    try:
        table = next(chunks_of(task, names, 1), None)
        if table is None:
            return np.empty((0, 3), np.int64)
        dice = np.random.default_rng(table.num_rows)
        table = table.filter(pa.array(dice.random(table.num_rows) < weight * fraction))
        if task.table == "operations":
            watches = watches_of(table["watches"])
            instance = table["instance"].take(pa.array(watches.operation()))
            table = pa.table([instance, watches.key, watches.required], ("instance", "key", "progress"))
        table = table.drop_null()
        return np.column_stack((*pairs(table["instance"], table["key"]), table["progress"].to_numpy()))
    except AbeyantError:  # a task of the job will report the file
        return np.empty((0, 3), np.int64)
