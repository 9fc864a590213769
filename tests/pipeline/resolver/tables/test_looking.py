"""Hot keys of plain files that the driver finds before the job, and those that it misses."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.pipeline.resolver.tables.hot_keys import HotKeys, Sample
from abeyant.pipeline.resolver.tables.packing import KINDS, PROFILE
from abeyant.pipeline.resolver.tables.plain_parquet import looking, map_side, tasks
from abeyant.pipeline.resolver.tables.profile import merge_profiles
from pipeline.resolve_traces import Event, Op, Watch
from pipeline.trace_tables import ARROW_EVENTS, ARROW_OPERATIONS, event_row, operation_row


def by_id(outcomes: DataFrame) -> dict[str, tuple[str, int]]:
    found = outcomes.select("op_id", "outcome", F.unix_micros("at").alias("at")).collect()
    return {op_id: (outcome, at) for op_id, outcome, at in found}


def hot_files(folder: Path, of_the_key: Callable[[int], bool]) -> None:
    """Write 4,000 events and 1,000 operations, some of one key, in row groups of 500 rows."""
    dice = random.Random(36)
    events = [
        event_row(Event("hot" if of_the_key(n) else f"k{n}", dice.randrange(10**6), dice.randrange(10**4)))
        for n in range(4000)
    ]
    operations = [
        operation_row(Op(f"op-{n}", dice.randrange(10**6), 10**5, (Watch("hot", dice.randrange(10**4)),), "all"))
        for n in range(1000)
    ]
    for name, rows, schema in (("operations", operations, ARROW_OPERATIONS), ("events", events, ARROW_EVENTS)):
        (folder / name).mkdir()
        pq.write_table(pa.Table.from_pylist(rows, schema), folder / name / "0.parquet", row_group_size=500)


@pytest.mark.slow  # thousands of rows
@pytest.mark.parametrize(
    ("of_the_key", "found_before"),
    [(lambda n: n % 2 == 0, True), (lambda n: n % 500 >= 100, False)],
    ids=["found before", "missed: the key is not in the rows looked at"],
)
def test_a_hot_key_is_cut_before_the_shuffle_or_else_after(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    of_the_key: Callable[[int], bool],
    found_before: bool,
) -> None:
    hot_files(tmp_path, of_the_key)
    if not found_before:
        monkeypatch.setattr(looking, "_GROUPS", 8)
        monkeypatch.setattr(tasks, "BATCH_ROWS", 100)
        # The operations are all of the key, so only events are looked at.
        some_of = looking._sample_row_groups
        monkeypatch.setattr(
            looking, "_sample_row_groups", lambda given: some_of([task for task in given if task.table == "events"])
        )
    given = tuple(spark.read.parquet(f"file://{tmp_path}/{name}") for name in ("operations", "events"))
    sample = Sample(0.5, 100)
    files = map_side.files_of(map_side.plain_operations(given[0]), given[1])
    assert files is not None
    packed = files.packed(sample, ids=True).where(f"`order` % {KINDS} = {PROFILE}").repartition("order")
    ((cuts,),) = merge_profiles(packed, sample).select("cuts").collect()  # keys that are hot after the shuffle
    assert (cuts == []) == found_before
    outcomes = by_id(pipeline.resolve(*given, sample=sample))
    monkeypatch.setattr(map_side, "look_for_hot_keys", lambda *_: HotKeys(()))
    assert outcomes == by_id(pipeline.resolve(*given, sample=Sample(0.0, 1)))
    assert len(outcomes) == 1000
