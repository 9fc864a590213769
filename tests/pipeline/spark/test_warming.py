"""A Python worker that is started before it is needed."""

from __future__ import annotations

import os
from pathlib import Path

from pyspark.sql import SparkSession

from abeyant.pipeline.spark.warming import warming


def test_a_worker_prepares_itself_while_the_block_runs(spark: SparkSession, tmp_path: Path) -> None:
    told = tmp_path / "told"
    with warming(spark, lambda: told.write_text(str(os.getpid()))):
        pass
    assert int(told.read_text()) != os.getpid()


def test_what_goes_wrong_in_it_is_nobodys_trouble(spark: SparkSession, tmp_path: Path) -> None:
    tried = tmp_path / "tried"

    def prepare() -> None:
        tried.touch()
        raise ImportError("no such module")

    with warming(spark, prepare):
        pass
    assert tried.exists()
    assert spark.range(3).count() == 3
