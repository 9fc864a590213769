"""Batches that are there when their manifest is: on a local path, as if it were an object store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from abeyant import pipeline
from abeyant.errors import AbeyantError
from abeyant.pipeline.results.leases.queries import acquire_store, release_store
from abeyant.pipeline.results.leases.store import LEASE_SECONDS, StoreLease
from abeyant.pipeline.results.manifests import LEASES
from abeyant.pipeline.spark.store import Store
from pipeline.resolve_traces import by_brute_force, some_traces
from pipeline.resolver.streams.cuts import Batch
from pipeline.resolver.streams.kill import DISORDER_US, write_input
from pipeline.resolver.streams.test_stream import OP, Stream
from pipeline.trace_tables import EPOCH_US
from waiting import wait_until

TRACES = some_traces(60, seed=3)
ALL = {(f"t{n}", op): end for n, trace in enumerate(TRACES) for op, end in by_brute_force(trace, "inclusive").items()}

OTHER = json.dumps({"host": "elsewhere", "process": 1, "since": "2026-01-01T00:00:00+00:00"})


def outcomes(rows: DataFrame) -> dict[tuple[str, str], Any]:
    found = rows.selectExpr("instance", "op_id", "outcome", "unix_micros(at)").collect()
    ends = {(row[0], row[1]): (row[2], row[3] - EPOCH_US) for row in found}
    assert len(ends) == len(found), "O4: an outcome is there twice"
    return ends


def a_dead_process() -> dict[str, Any]:
    """What a run of this machine that has ended left in its claim."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return {"host": os.uname().nodename, "process": process.pid, "started": "long ago/1", "since": "2026-01-01"}


@pytest.mark.slow  # several runs of a stream
def test_a_batch_is_there_when_its_manifest_is(spark: SparkSession, tmp_path: Path) -> None:
    """Torn files, a batch half done, one whose note Spark lost: a reader sees each outcome once, whole batches only."""
    write_input(tmp_path, TRACES, files=3, seed=3)
    stream = Stream(spark, tmp_path, lateness=DISORDER_US / 1e6)
    out = tmp_path / "out"
    torn = out / "outcomes" / "batch=1" / "killed" / "part-0.parquet"
    torn.parent.mkdir(parents=True)
    torn.write_bytes(b"PAR1")
    (out / "batches").mkdir()
    (out / "batches" / "1.json.half").write_text('{"tool": "abeyant", "files": {')

    stream.start(pipeline.ParquetSink(out, manifests=True)).awaitTermination()
    first = outcomes(pipeline.read_result(spark, out))
    assert first.items() <= ALL.items()
    assert not torn.exists(), "the batch done again removes what a killed one left"
    rows = pipeline.read_result(spark, out)
    assert rows.columns[-1] == "batch"
    assert {row.batch for row in rows.select("batch").distinct().collect()} <= {0, 1, 2}
    assert pipeline.read_result(spark, out, "aside").count() == 0

    # Spark loses the note of the last batch, and that batch's manifest was not written: nobody reads its files.
    last = sorted((tmp_path / "checkpoint" / "commits").glob("[0-9]*"))[-1]
    for note in (last, *last.parent.glob(f".{last.name}*")):
        note.unlink()
    for file in "2.json", ".2.json.crc":
        (out / "batches" / file).unlink()
    before = outcomes(pipeline.read_result(spark, out))
    assert before.items() < first.items()
    # A second time the note alone is lost.
    for _ in range(2):
        stream.start(pipeline.ParquetSink(out, manifests=True)).awaitTermination()
        assert outcomes(pipeline.read_result(spark, out)) == first
        for note in (last, *last.parent.glob(f".{last.name}*")):
            note.unlink()

    pipeline.end_of_input(tmp_path / "end")
    stream.start(pipeline.ParquetSink(out, manifests=True)).awaitTermination()
    assert outcomes(pipeline.read_result(spark, out)) == ALL
    named = [
        entry
        for file in (out / "batches").glob("*.json")
        for entry in json.loads(file.read_text())["files"]["outcomes"]
    ]
    there = {str(file.relative_to(out)): file.stat().st_size for file in (out / "outcomes").rglob("*.parquet")}
    assert {entry["file"]: entry["bytes"] for entry in named} == there, "no file is left that no manifest names"
    with pytest.raises(AbeyantError, match="a stream has no table 'waits'; there are outcomes, aside"):
        pipeline.read_result(spark, out, "waits")


@pytest.mark.slow
def test_one_output_has_one_query_and_one_writer(spark: SparkSession, tmp_path: Path) -> None:
    write_input(tmp_path, TRACES[:5], files=1, seed=3)
    stream = Stream(spark, tmp_path, lateness=DISORDER_US / 1e6)
    out = tmp_path / "out"
    claims = out / LEASES
    claims.mkdir(parents=True)
    (claims / "stream-dead.json").write_text(json.dumps(a_dead_process()))
    one = pipeline.ParquetSink(out, manifests=True)
    stream.start(one).awaitTermination()
    # What was dead gave way. Nor is ours kept for as long as the process lives: a notebook lives long.
    wait_until(lambda: not list(claims.glob("*.json")))
    with pytest.raises(StreamingQueryException, match="/out holds the outcomes of another query"):
        stream.start(pipeline.ParquetSink(out, manifests=True), checkpoint="another").awaitTermination()
    elsewhere = tmp_path / "elsewhere" / LEASES
    elsewhere.mkdir(parents=True)
    (elsewhere / "stream-other.json").write_text(OTHER)
    with pytest.raises(StreamingQueryException, match=r"is being written by process 1 on elsewhere, since 2026-01-01"):
        stream.start(pipeline.ParquetSink(elsewhere.parent, manifests=True), checkpoint="third").awaitTermination()
    # Whoever was taken for dead, and is not, writes nothing more.
    store = Store(spark, f"file://{out}")
    acquire_store(store, "a command")
    (mine,) = claims.glob("*.json")
    assert json.loads(mine.read_text())["process"] == os.getpid()
    mine.unlink()
    write_input(tmp_path, TRACES[:5], files=2, seed=4)
    with pytest.raises(StreamingQueryException, match="another run has taken over"):
        stream.start(one).awaitTermination()


def test_a_place_is_held_until_the_last_of_a_process_has_left_it(spark: SparkSession, tmp_path: Path) -> None:
    store, claims = Store(spark, f"file://{tmp_path}"), tmp_path / LEASES
    acquire_store(store, "a command")
    acquire_store(store, "a query")
    assert len(list(claims.glob("*.json"))) == 1
    release_store(store, "a command")
    release_store(store, "another")
    assert len(list(claims.glob("*.json"))) == 1
    release_store(store, "a query")
    assert not list(claims.glob("*.json"))


def test_a_claim_of_another_machine_counts_for_a_minute(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, f"file://{tmp_path}")
    claims = tmp_path / LEASES
    claims.mkdir()
    other = claims / "stream-other.json"
    other.write_text(OTHER)
    with pytest.raises(AbeyantError, match=r"by process 1 on elsewhere, since 2026-01-01.*its lease expires in \d\d s"):
        StoreLease(store, "stream")
    assert list(claims.glob("*.json")) == [other]
    before = time.time() - LEASE_SECONDS - 1
    os.utime(other, (before, before))
    with StoreLease(store, "stream") as claim:
        assert claim.expired == ["stream-other"]
        claim.check()
    assert list(claims.glob("*.json")) == [other]


def test_a_store_puts_whole_files_and_knows_who_was_first(spark: SparkSession, tmp_path: Path) -> None:
    store = Store(spark, f"file://{tmp_path}/a folder")
    assert store.read("x") is None
    assert store.names("") == []
    assert store.put_new("deep/x", "one")
    assert not store.put_new("deep/x", "two")
    assert store.read("deep/x") == "one"
    store.put("deep/x", "thrée")
    assert store.read("deep/x") == "thrée"
    assert [name for name in store.names("deep") if not name.endswith(".crc")] == ["x"]
    assert store.written("deep") == {"deep/x": 6}
    here = tmp_path / "here"
    store.fetch("deep/x", here)
    assert here.read_text() == "thrée"
    store.send(here, "y")
    assert store.exists("y")
    store.remove("deep")
    assert not store.exists("deep/x")


def test_a_session_without_the_file_system_says_which_package_it_lacks(spark: SparkSession) -> None:
    with pytest.raises(AbeyantError, match=r"s3a.*org\.apache\.hadoop:hadoop-aws:3\.\d+\.\d+"):
        Store(spark, "s3a://bucket/out")


@pytest.mark.slow
@pytest.mark.parametrize("manifests", [False, True])
def test_a_result_whose_name_is_a_pattern_is_read_as_that_one(
    spark: SparkSession, manifests: bool, tmp_path: Path
) -> None:
    """Hadoop takes brackets and stars of a name that is read for a pattern, of one that is written not."""
    stream = Stream(spark, tmp_path)
    stream.put(Batch([("i", OP)]))
    out = f"file://{tmp_path}/{{of [1]*}}"
    (tmp_path / "end").mkdir(exist_ok=True)
    pipeline.end_of_input(tmp_path / "end")
    stream.start(pipeline.ParquetSink(out, manifests=manifests)).awaitTermination()
    for place in out, Path(out.removeprefix("file://")):
        found = pipeline.read_result(spark, place)
        assert (found.columns[-1], [row.op_id for row in found.collect()]) == ("batch", ["op"])
