"""A PySpark whose streams would fail with this pyarrow is refused at once."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.resolver.streams import resolve_stream
from abeyant.pipeline.schemas import EVENTS, OPERATIONS
from abeyant.pipeline.spark import versions


@pytest.mark.parametrize(
    ("spark", "pyarrow", "works"),
    [
        *(("4.1.0", "25.0.1", True), ("4.1.0", "26.0.0", False), ("4.1.3", "26.0.1", False), ("4.1.3", "30", False)),
        *(("4.1.4", "26.0.1", True), ("4.2.0", "26.0.1", True), ("4.3.0", "26.0.1", True), ("4.0.5", "26.0.1", True)),
        ("4.1.2.dev0", "26.1.0.dev12", False),
    ],
)
def test_which_work_together(spark: str, pyarrow: str, works: bool) -> None:
    assert versions.works_with(spark, pyarrow) == works


def test_a_stream_is_refused_in_one_line(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    streams = [
        spark.readStream.schema(schema).parquet(str(tmp_path_factory.mktemp("in"))) for schema in (OPERATIONS, EVENTS)
    ]
    monkeypatch.setattr(versions, "works_with", lambda *_: False)
    with pytest.raises(AbeyantError, match=r"^streams on PySpark \S+ need a pyarrow below 26, .*'pyspark>=4\.1\.4'$"):
        resolve_stream(*streams)
