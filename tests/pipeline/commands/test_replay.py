"""`abeyant replay`: logs, tables and analyses in; three tables and a page out; refusals in one line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from abeyant import pipeline
from abeyant.cli import main
from abeyant.pipeline.commands.replay import _found
from abeyant.pipeline.request_log.groups import with_sync_limits
from abeyant.pipeline.results.directory import MARKER, write_marker
from abeyant.pipeline.schemas import OBSERVED
from pages.page_checks import check_page
from pipeline.long_known import Known

LOG = Path(__file__).parents[2] / "data" / "kafka-request-debug.log.gz"
PLOTS = ["plot-what-if", "plot-polls", "plot-pending"]
TABLES = ["replay", "pending", "what_if", "own_timeouts"]
SETTING = ("tick_ms", "wheel_size", "timeout_ms", "purge_interval")
SHORT = ("--tick", "1ms,0.1s", "--wheel-size", "20", "--quiet")


def rows(out: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(out / table).to_pylist()
    return found


@pytest.mark.slow  # of a whole log
def test_a_request_log(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    settings = ["--tick", "1ms,100ms", "--wheel-size", "20,64", "--timeout", "own,500ms,2s", "--purge-interval", "5"]
    assert main(["replay", str(LOG), "--out", str(out), "--instance", "b", *settings]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert ": the shortest time-out tried under which " in shown[0]
    assert any(line.startswith("With their own time-outs, ") for line in shown[: shown.index("")])
    listed = shown[shown.index("") + 1 :]
    assert listed[0].split()[:6] == ["tick", "ms", "buckets", "time-out", "ms", "expired"]
    assert len(listed[: listed.index("")]) == 1 + 2 * 2 * 3
    assert any("fewer than Kafka's tick of 1 ms with 20 buckets (" in line for line in shown)
    assert shown[-1] == f"Report: {out}/report.html"
    replayed = rows(out, "replay")
    tried = {(row["tick_ms"], row["wheel_size"], row["timeout_ms"]) for row in replayed if not row["purge_interval"]}
    assert len(tried) == 2 * 2 * 3
    assert {timeout for _, _, timeout in tried} == {None, 500, 2000}
    assert sum(row["purge_interval"] == 5 for row in replayed) == 3
    by_hand = pipeline.replay(with_sync_limits(pipeline.read_kafka_request_log(spark, LOG, instance="b")))
    (own,) = by_hand.drop("first", "last").toArrow().to_pylist()
    (found,) = (row for row in replayed if all(row[name] == own[name] for name in SETTING))
    assert {name: (found[name], own[name]) for name in own if found[name] != own[name]} == {}
    assert {row["timeout_ms"] for row in rows(out, "what_if")} >= {1, 30_000, 500, 2000}
    assert {row["timeout_ms"] for row in rows(out, "pending")} == {None, 500, 2000}
    assert json.loads((out / MARKER).read_text())["tables"] == [*TABLES, "client_timeouts"]
    check_page(out / "report.html", PLOTS)
    found = json.loads(json.dumps(_found(out), allow_nan=False))
    assert set(found["conclusions"]) <= set(shown)
    assert {row["timeout_ms"] for row in found["what_if"]} == {row["timeout_ms"] for row in rows(out, "what_if")}
    assert {"*", "b"} == {row["instance"] for row in found["own_timeouts"]}
    assert all(row["least_ms"] <= row["median_ms"] <= row["most_ms"] for row in found["own_timeouts"])
    assert all(row["least_ms"] <= (row["expired_least_ms"] or row["least_ms"]) for row in found["own_timeouts"])
    assert "operations" in {tile["name"] for tile in found["tiles"]}


@pytest.mark.slow
def test_tables_of_operations_and_events(spark: SparkSession, known: Known, tmp_path: Path) -> None:
    operations, events, out = (tmp_path / name for name in ("operations.parquet", "events.parquet", "out"))
    known.operations.write.parquet(f"file://{operations}")
    known.events.write.parquet(f"file://{events}")
    ids = "concat(instance, op_id)"
    columns = [f"op_id={ids}", "instance='all'", "kind='K'"]
    mapping = [*(part for each in columns for part in ("--operation", each)), "--event", "instance='all'"]
    told = ["--timeout", "3ms", "--deadline", "exclusive", *mapping, *SHORT]
    assert main(["replay", str(operations), "--events", str(events), "--out", str(out), *told]) == 0
    one = {"instance": F.lit("all")}
    together = known.operations.withColumns({"op_id": F.expr(ids), "kind": F.lit("K"), **one})
    by_hand = pipeline.what_if(together, known.events.withColumns(one), [3], deadline="exclusive")
    three = [row for row in rows(out, "what_if") if row["timeout_ms"] == 3]
    assert sorted(three, key=str) == sorted(by_hand.toArrow().to_pylist(), key=str)
    (row,) = (row for row in rows(out, "replay") if row["tick_ms"] == 1.0)
    assert (row["instance"], row["expired"], row["unknown"]) == ("all", three[0]["expired"], 0)


@pytest.mark.slow  # starts a JVM
def test_the_result_of_an_analysis(
    spark: SparkSession, known: Known, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    analysis, out = tmp_path / "analysis", tmp_path / "out"
    known.log.where("instance < 't2'").withColumn("client_id", F.lit("app")).write.parquet(
        f"file://{analysis / 'operations'}"
    )
    write_marker(analysis, {})
    assert main(["replay", str(analysis), "--out", str(out), "--kind", "TEST", *SHORT]) == 0
    assert {row["instance"] for row in rows(out, "replay")} == {
        row.instance for row in known.log.where("instance < 't2'").select("instance").distinct().collect()
    }
    assert "clients_to_change" in json.loads(json.dumps(_found(out), allow_nan=False))
    assert {row["client_id"] for row in rows(out, "client_timeouts")} == {"app"}
    before = rows(out, "replay")
    assert main(["replay", str(analysis), "--out", str(out), "--overwrite", "--kind", "TSET", *SHORT]) == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line == "abeyant: error: --kind: no operation has kind 'TSET'; there are TEST; did you mean TEST?"
    assert rows(out, "replay") == before


def test_what_is_refused_is_one_line(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    events = tmp_path / "events.csv"
    events.write_text("key,at\n")
    empty, orders = tmp_path / "kafka-request.log", tmp_path / "orders.tsv"
    empty.touch()
    orders.write_text("op_id\tkey\tstart\ttimeout_ms\n")

    def refusal(*arguments: str) -> str:
        assert main(["replay", *arguments, "--out", str(out), "--quiet"]) == 2
        assert not out.exists()
        line = capsys.readouterr().err
        assert line.count("\n") == 1
        return line

    assert "nowhere" in refusal("nowhere.log")
    assert f"no request in 1 file: {empty}: Kafka logs requests while its logger" in refusal(str(empty))
    assert f"nothing to replay: no operation is in {orders}" in refusal(str(orders), "--events", str(events))
    assert f"{orders} has no column 'outcome': give the table of events with --events" in refusal(str(orders))
    packed = tmp_path / "orders.tsv.gz"
    packed.write_bytes(gzip.compress(orders.read_bytes()))
    assert f"{packed} has no column 'outcome': give the table of events with --events" in refusal(str(packed))
    assert "wheel_size must be from 2 to 65,536 buckets, not 1" in refusal(str(LOG), "--wheel-size", "1")
    assert "tick_ms must be a positive number" in refusal(str(LOG), "--tick", "0ms")
    assert "nothing to replay" in refusal(str(LOG), "--tick", "")
    assert "no such file or directory: missing.parquet" in refusal("missing.parquet", "--events", str(events))
    assert "LOGS: give one table of operations, not 2" in refusal("a.csv", "b.csv", "--events", str(events))
    for wrong in (["--tick", "fast"], ["--timeout", "0.5ms"], ["--wheel-size", "many"], ["--timeout", "mine"]):
        with pytest.raises(SystemExit):
            main(["replay", str(LOG), "--out", str(out), *wrong])
        assert wrong[0] in capsys.readouterr().err


def test_a_sync_waits_for_as_long_as_its_group_rebalances(spark: SparkSession) -> None:
    def row(kind: str, key: str | None, timeout_ms: int | None, instance: str = "b") -> tuple[Any, ...]:
        watches = [(key, None)] if key is not None else []
        return (instance, None, kind, None, timeout_ms, watches, "all", *[None] * 9)

    operations = [
        row("JOIN_GROUP", "join-g", 5000),
        row("JOIN_GROUP", "join-g", 7000),
        row("JOIN_GROUP", "join-other", 9000),
        row("SYNC_GROUP", "sync-g", None),
        row("SYNC_GROUP", "sync-g", None, "elsewhere"),
        row("SYNC_GROUP", None, None),
        row("PRODUCE", "join-g", 1),
        row("FETCH", None, None),
    ]
    found = with_sync_limits(spark.createDataFrame(operations, OBSERVED))
    assert found.columns == OBSERVED.fieldNames()
    limits = sorted((r.kind, r.instance, r.timeout_ms or 0, len(r.watches)) for r in found.collect())
    assert limits == [
        ("FETCH", "b", 0, 0),
        ("JOIN_GROUP", "b", 5000, 1),
        ("JOIN_GROUP", "b", 7000, 1),
        ("JOIN_GROUP", "b", 9000, 1),
        ("PRODUCE", "b", 1, 1),
        ("SYNC_GROUP", "b", 0, 0),
        ("SYNC_GROUP", "b", 7000, 1),
        ("SYNC_GROUP", "elsewhere", 0, 1),
    ]
