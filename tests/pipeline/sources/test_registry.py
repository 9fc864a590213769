"""Every kind of source: which names are its own, and the same rows at once and as a stream."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from abeyant.pipeline.sources.registry import SOURCES, source_of
from abeyant.pipeline.sources.source import Input, Kafka
from seeds import with_slow

KAFKA = Kafka("localhost:1")
ROWS = [("k", 1), ("k", 2)]


@pytest.mark.parametrize(
    ("name", "kafka", "kind"),
    [
        ("payments", KAFKA, "Topic"),
        ("payments.csv", KAFKA, "Topic"),
        ("./payments.csv", KAFKA, "Csv"),
        ("table:shop.payments", None, "CatalogTable"),
        ("s3a://shop/payments.orc", None, "Orc"),
        ("payments.jsonl.gz", None, "JsonLines"),
        ("payments", None, "Parquet"),
    ],
)
def test_a_name_says_what_it_is(name: str, kafka: Kafka | None, kind: str) -> None:
    assert type(source_of(Input("events", name, kafka=kafka))).__name__ == kind
    assert kind in {str(getattr(each, "__name__", each)) for each in SOURCES}


def test_a_format_that_is_chosen_counts_and_a_directory_is_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "README").touch()
    (tmp_path / "part-0.orc").touch()
    assert type(source_of(Input("events", str(tmp_path)))).__name__ == "Orc"
    assert type(source_of(Input("events", str(tmp_path), format="json"))).__name__ == "JsonLines"


@pytest.mark.parametrize("kind", with_slow(["parquet", "orc", "json", "csv", "tsv", "table"], ["orc", "tsv"]))
def test_it_gives_the_same_events_at_once_and_as_a_stream(spark: SparkSession, kind: str, tmp_path: Path) -> None:
    rows = spark.createDataFrame(ROWS, "key string, progress long").selectExpr("*", "timestamp_seconds(progress) AS at")
    name = str(tmp_path / "events")
    if kind == "table":
        name = "table:registry_events"
        spark.sql("DROP TABLE IF EXISTS registry_events")
        rows.write.option("path", str(tmp_path / "events")).saveAsTable("registry_events")
    elif kind == "tsv":
        name += ".tsv"
        Path(name).write_text("key\tprogress\tat\nk\t1\t1970-01-01T00:00:01Z\nk\t2\t1970-01-01T00:00:02Z\n")
    else:
        writer = rows.coalesce(1).write.format(kind)
        (writer.option("header", "true") if kind == "csv" else writer).save(name)
    source = source_of(Input("events", name))
    assert sorted(source.table(spark).selectExpr("key", "int(progress)").collect()) == ROWS
    assert sorted(source.again(spark).select("key", "progress").collect()) == ROWS
    assert sorted(streamed(source.stream(spark).select("key", "progress"), tmp_path)) == ROWS
    if kind == "table":
        spark.sql("DROP TABLE registry_events")


def streamed(rows: DataFrame, tmp_path: Path) -> list[tuple[object, ...]]:
    found: list[tuple[object, ...]] = []

    def take(batch: DataFrame, _: int) -> None:
        found.extend(map(tuple, batch.collect()))

    writer = rows.writeStream.foreachBatch(take).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    return found
