"""A user's query in place of a table's rows: at once and as a stream, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.sources.registry import source_of
from abeyant.pipeline.sources.source import Input
from pipeline.sources.test_registry import streamed

WIDE = (
    "order,sent,road,rail\na,2026-03-02T12:00,2026-03-02T13:00,\nb,2026-03-02T12:00,2026-03-02T14:00,2026-03-02T15:00\n"
)
LONG = "SELECT order || '/{' || carrier || '}' AS key, at FROM events UNPIVOT (at FOR carrier IN (road, rail)) -- all"
FOUND = ["a/{road}", "b/{rail}", "b/{road}"]


def test_a_query_makes_long_rows_of_wide_ones(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "parcels").mkdir()
    (tmp_path / "parcels" / "1.csv").write_text(WIDE.replace(",", ";"))
    spark.range(1).createOrReplaceTempView("events")  # one of the session's is neither read nor replaced
    source = source_of(Input("events", str(tmp_path / "parcels"), {"progress": "length(key)"}, query=LONG))
    assert source.queried(spark).columns == ["key", "at"]
    assert sorted(row.key for row in source.queried(spark).collect()) == FOUND
    for rows in (source.again(spark).collect(), streamed(source.stream(spark), tmp_path)):
        assert sorted((row[1], row[3]) for row in rows) == [(key, 8) for key in FOUND]
    assert spark.table("events").columns == ["id"]
    spark.catalog.dropTempView("events")


def test_what_spark_does_not_understand_and_records_are_refused_by_option(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(WIDE)
    (tmp_path / "log.jsonl").write_text('{"op_id": "a"}\n')
    for query, said in (
        ("SELECT nothing FROM operations", "--operation-query: .*nothing"),
        ("SELEC order FROM operations", "--operation-query: .*[Ss]yntax error"),
        ("SELECT * FROM events", "--operation-query: .*`?events`? cannot be found"),
    ):
        with pytest.raises(AbeyantError, match=said) as error:
            source_of(Input("operations", str(tmp_path / "log.csv"), query=query)).stream(spark)
        assert "\n" not in str(error.value)
    with pytest.raises(
        AbeyantError, match=r"--operation-query is for tables, but .*log\.jsonl is read record by record"
    ):
        source_of(Input("operations", str(tmp_path / "log.jsonl"), query="SELECT 1")).stream(spark)
