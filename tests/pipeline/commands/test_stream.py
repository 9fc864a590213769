"""`abeyant stream` over files, and `abeyant pending`: stopped, gone on with, drained; refusals in one line."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant.cli import main
from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.rules import RULES
from abeyant.pipeline.commands.stream_run import run as stream_run
from abeyant.pipeline.commands.stream_run import summary
from abeyant.pipeline.commands.stream_run.description import DESCRIPTION, check, describe
from abeyant.pipeline.commands.stream_run.lines import Lines
from abeyant.pipeline.commands.stream_run.plan import Plan
from abeyant.pipeline.commands.stream_run.summary import sum_up
from abeyant.pipeline.commands.stream_run.topic_sink import TopicSink
from abeyant.pipeline.results.local import LocalFolder
from abeyant.pipeline.results.outcome_counts import Counted
from abeyant.pipeline.results.registry import sink_of
from abeyant.pipeline.sources.registry import source_of
from abeyant.pipeline.sources.source import Input, Kafka
from abeyant.tables.rules import Combine, Count, Holds, Serves, Within
from pages.page_checks import check_page
from pipeline.jvm import BRIEF_OPTIONS, kill_jvm
from pipeline.orders import MAPPING, write_orders
from waiting import wait_until


def outcomes(out: Path) -> dict[str, str]:
    rows = pq.read_table(out / "outcomes").to_pylist() if (out / "outcomes").exists() else []
    assert len({row["op_id"] for row in rows}) == len(rows)
    return {row["op_id"]: row["outcome"] for row in rows}


def aside(out: Path) -> list[tuple[str, str]]:
    return sorted((row["table"], row["reason"]) for row in pq.read_table(out / "aside").to_pylist())


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    return write_orders(tmp_path)


@contextmanager
def meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Do work in a thread while the block runs."""
    failed: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)
            if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:  # the stream still runs
                os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=guarded)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        assert not failed, failed


@pytest.mark.slow  # starts a JVM
def test_two_files_drained_end_as_resolve_says(
    spark: SparkSession, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "the out [1]"
    assert main(["stream", *files, "--out", str(out), *MAPPING, "--drain"]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("3 operations: 1 completed, 2 expired (66.7 %)\n")
    lines = [" ".join(line.split()) for line in told.out.splitlines()]
    assert lines[lines.index("expired") + 1 :][:2] == ["2", "3"], "no key expires most"
    assert f"The 2 expired: {out}/outcomes, outcome = 'expired'" in lines
    assert {"1 duplicates", "2 invalid", "0 pending"} < set(lines)
    assert told.out.splitlines()[-1] == f"Report: {out}/summary/report.html"
    check_page(out / "summary" / "report.html", ["plot-waits"])
    assert "batch 0: " in told.err
    assert "batch 1: " not in told.err, "two files are there whole: their end comes with them"
    assert outcomes(out) == {"1": "completed", "2": "expired", "3": "expired"}
    unread = ("operations", "start is not a timestamp: yesterday")
    assert aside(out) == [("events", "no at"), ("operations", "duplicate op_id"), unread]
    # Drained is drained, and another query has no business here.
    assert main(["stream", *files, "--out", str(out), *MAPPING]) == 2
    assert "was drained" in capsys.readouterr().err
    assert main(["stream", *files, "--out", str(out), *MAPPING, "--deadline", "exclusive"]) == 2
    assert 'belongs to another stream: deadline was "inclusive", is now "exclusive"' in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("table", "column"), [("operation", "start"), ("event", "at")])
def test_a_drained_stream_of_rejected_rows_only_is_no_success(
    spark: SparkSession,
    files: tuple[str, str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    table: str,
    column: str,
) -> None:
    out = tmp_path / "out"
    mapping = [*MAPPING, f"--{table}", f"{column}=CAST(null AS timestamp)"]
    assert main(["stream", *files, "--out", str(out), *mapping, "--drain", "--title", "Nothing <valid>"]) == 2
    shown = capsys.readouterr()
    rejected = [each for each in aside(out) if each == (f"{table}s", f"no {column}")]
    assert len(rejected) > 1
    assert f"error: {table}s: all {len(rejected)} rows were rejected: no {column}; check" in shown.err.splitlines()[-1]
    assert shown.err.endswith(f"The result is complete; the rows are in {out}/aside\n")
    assert shown.out.splitlines()[-1] == f"Report: {out}/summary/report.html", "the result is written, and shown"
    page = (out / "summary" / "report.html").read_text(encoding="utf-8")
    assert "<title>Nothing &lt;valid&gt; \N{MIDDLE DOT} Abeyant</title>" in page
    assert "<h1>Nothing &lt;valid&gt;</h1>" in page


@pytest.mark.slow  # several runs of a stream
def test_a_drain_that_fails_on_the_way_is_done_by_the_next(
    spark: SparkSession, files: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    out = tmp_path / "out"
    command = ["stream", *files, "--out", str(out), *MAPPING, "--drain", "--quiet"]
    with monkeypatch.context() as patch:
        patch.setattr(stream_run, "_sink", lambda *_: full)
        assert main(command) == 2
    assert outcomes(out) == {}
    assert main(command) == 0
    assert outcomes(out) == {"1": "completed", "2": "expired", "3": "expired"}


@pytest.mark.slow  # several runs of a stream
def test_a_folder_is_drained_in_batches_of_so_many_files(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders, out = [tmp_path / "orders", tmp_path / "payments"], tmp_path / "out"
    for folder in folders:
        folder.mkdir()
    for hour in range(3):
        (folders[0] / f"{hour}.csv").write_text(
            f"op_id,key,start,timeout_ms\n{hour},k{hour},2026-01-01T0{hour}:00:00Z,60000\n"
        )
        (folders[1] / f"{hour}.csv").write_text(f"key,at\nk{hour},2026-01-01T0{hour}:00:30Z\n")
    command = ["stream", *map(str, folders), "--out", str(out), "--files-per-batch", "1", "--drain"]
    assert main(command) == 0
    told = capsys.readouterr().err
    assert [f"batch {number}: " in told for number in range(5)] == [True, True, True, True, False], told
    assert outcomes(out) == {"0": "completed", "1": "completed", "2": "completed"}
    assert not (out / "aside").exists()


def recorder(folder: Path, name: str, file: Path) -> Path:
    """A folder for the PATH: its program of that name writes its arguments to the file, and then is the real one."""
    folder.mkdir()
    program = folder / name
    program.write_text(f'#!/bin/sh\necho "$*" >> \'{file}\'\nexec {shutil.which(name)} "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.slow
def test_a_killed_jvm_is_one_line_and_the_same_command_goes_on(
    spark: SparkSession, files: tuple[str, str], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    arguments = ["stream", *files, "--out", str(out), *MAPPING, "--quiet"]
    call = [sys.executable, "-m", "abeyant", *arguments, *BRIEF_OPTIONS]
    looked_at = tmp_path / "looked at by readlink"
    environment = os.environ | {"PATH": f"{recorder(tmp_path / 'bin', 'readlink', looked_at)}:{os.environ['PATH']}"}
    with subprocess.Popen(
        call, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=environment
    ) as process:
        wait_until(lambda: process.poll() is not None or (out / "checkpoint" / "commits" / "0").exists(), seconds=240)
        kill_jvm(process.pid)
        assert process.stderr is not None
        assert process.stderr.read().splitlines() == [
            "abeyant: error: Spark failed: its JVM was killed by signal 9, as when the machine runs out of memory"
        ]
    assert process.returncode == 2
    assert "checkpoint" not in (looked_at.read_text() if looked_at.exists() else ""), "a process for each file"
    assert main([*arguments, "--drain"]) == 0
    assert outcomes(out) == {"1": "completed", "2": "expired", "3": "expired"}


@pytest.mark.slow  # several runs of a stream
def test_json_lines_that_are_none_are_rejected_with_their_file(spark: SparkSession, tmp_path: Path) -> None:
    """A time-out fires though nothing arrives any more, until SIGTERM; then the same command goes on."""
    folder, out = tmp_path / "in", tmp_path / "out"
    for name in ("operations", "events"):
        (folder / name).mkdir(parents=True)

    def put(table: str, name: str, *lines: str) -> None:
        aside = folder / f".{name}"
        aside.write_text("".join(f"{line}\n" for line in lines))
        aside.rename(folder / table / name)

    def operation(op_id: str, timeout_ms: int) -> str:
        return json.dumps({"op_id": op_id, "key": f"key of {op_id}", "timeout_ms": timeout_ms})

    command = ["stream", str(folder / "operations"), str(folder / "events"), "--out", str(out), "--format", "json"]
    command += ["--time", "processing", "--trigger", "500ms", "--quiet"]

    def first() -> None:
        put(
            "operations",
            "1.json",
            operation("short", 1),
            operation("long", 3_600_000),
            "{",
            operation("met", 3_600_000),
        )
        wait_until(lambda: outcomes(out) == {"short": "expired"}, seconds=240)
        put("events", "1.json", '{"key": "key of met"}')
        wait_until(lambda: len(outcomes(out)) == 2, seconds=240)
        os.kill(os.getpid(), signal.SIGTERM)

    with meanwhile(first):
        assert main(command) == 0
    assert outcomes(out) == {"short": "expired", "met": "completed"}
    [bad] = pq.read_table(out / "aside").to_pylist()
    assert (bad["table"], bad["reason"]) == ("operations", "not a JSON object")
    assert json.loads(bad["row"])["value"] == "{"
    assert json.loads(bad["row"])["file"].endswith("/operations/1.json")
    put("events", "2.json", '{"key": "key of long"}')
    assert main([*command, "--drain"]) == 0
    assert outcomes(out) == {"short": "expired", "met": "completed", "long": "completed"}


@pytest.mark.slow
def test_what_waits_is_shown(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    orders, payments, out = tmp_path / "orders", tmp_path / "payments", tmp_path / "out"
    starts = pa.array([0, 1], pa.timestamp("us", "UTC"))
    pq.write_table(
        pa.table({"op_id": ["a", "b"], "key": ["k", "l"], "start": starts, "timeout_ms": [5000, 1000]}),
        orders.with_suffix(".parquet"),
    )
    orders, payments = orders.with_suffix(".parquet"), payments.with_suffix(".parquet")
    pq.write_table(pa.table({"key": ["z"], "at": starts[:1]}), payments)
    assert main(["stream", str(orders), str(payments), "--out", str(out), "--trigger", "now", "--tick", "off"]) == 0
    capsys.readouterr()
    assert main(["pending", str(out)]) == 0
    head, first, second, count = capsys.readouterr().out.splitlines()
    assert head.split() == ["until", "since", "required", "key", "operation"]
    assert first.split() == ["1970-01-01", "00:00:01", "1970-01-01", "00:00:00", "1", "l", "b"]
    assert second.split() == ["1970-01-01", "00:00:05", "1970-01-01", "00:00:00", "1", "k", "a"]
    assert count == "2 pending"
    assert main(["pending", str(out / "checkpoint"), "--json", "--key", "k"]) == 0
    assert json.loads(capsys.readouterr().out)["deadline"] == "1970-01-01T00:00:05.000000Z"


@pytest.mark.slow  # several runs of a stream
def test_rows_appended_to_files_that_were_read_are_not_passed_over_in_silence(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The tables are globs, of CSV and of JSON lines."""
    orders, payments, out = tmp_path / "orders-1.csv", tmp_path / "payments-1.json", tmp_path / "out"
    orders.write_text("op_id,key,start,timeout_ms\na,k,2026-01-01T00:00:00Z,5000\n")
    (tmp_path / "orders-2.csv").write_text("op_id,key,start,timeout_ms\nb,l,2026-01-01T00:00:00Z,5000\n")
    payments.write_text('{"key": "z", "at": "2026-01-01T00:00:00Z"}\n')
    tables = [str(tmp_path / pattern) for pattern in ("orders-*.csv", "payments-*.json")]
    command = ["stream", *tables, "--out", str(out), "--json"]
    assert main([*command, "--trigger", "now", "--tick", "off"]) == 0
    first = json.loads(capsys.readouterr().out)["result"]
    assert (first["changed_files"], first["pending"]) == ([], 2)
    assert main(["pending", str(out)]) == 0
    assert capsys.readouterr().out.endswith("2 pending\n")
    with orders.open("a") as grown:
        grown.write("late,k,2026-01-01T00:00:00Z,5000\n")
    with payments.open("a") as grown:
        grown.write('{"key": "k", "at": "2026-01-01T00:00:01Z"}\n')
    assert main([*command, "--tick", "off", "--drain"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["result"]["changed_files"] == [str(orders), str(payments)]
    assert told.err.count("has changed since the stream read it: rows that were added later are in no table") == 2
    assert outcomes(out) == {"a": "expired", "b": "expired"}


@pytest.mark.slow  # several runs of a stream
def test_files_in_another_order_than_their_times_are_told_of(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "orders.csv").write_text(
        "op_id,key,start,timeout_ms\na,k,2026-01-01T10:00:00Z,600000\nb,l,2026-01-01T12:00:00Z,600000\n"
    )
    payments = tmp_path / "payments"
    payments.mkdir()
    for name, row in (("1 late.csv", "l,2026-01-01T12:00:00Z"), ("2 early.csv", "k,2026-01-01T10:05:00Z")):
        (payments / name).write_text(f"key,at\n{row}\n")
        os.utime(payments / name, (1_700_000_000, 1_700_000_000))
    command = [
        "stream",
        str(tmp_path / "orders.csv"),
        str(payments),
        "--tick",
        "off",
        "--drain",
        "--files-per-batch",
        "1",
    ]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().err.splitlines()
    late = "1 of 1 rows read (100.0 %) came too late and were rejected. They are up to 114m behind the watermark."
    assert [line for line in told if line.startswith(f"batch 1: {late}")], told
    assert told[-1].startswith("abeyant: this run: 1 of ")
    assert "start again with another --out and --lateness 115m, or read files" in told[-1]
    assert outcomes(tmp_path / "out") == {"a": "expired", "b": "completed"}
    assert main([*command, "--out", str(tmp_path / "mended"), "--lateness", "115m", "--quiet"]) == 0
    assert capsys.readouterr().err == ""
    assert outcomes(tmp_path / "mended") == {"a": "completed", "b": "completed"}


@pytest.mark.slow  # several runs of a stream
def test_a_file_of_another_type_is_named_and_without_it_the_stream_goes_on(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orders, payments, out = tmp_path / "the orders", tmp_path / "payments", tmp_path / "out"
    orders.mkdir()
    payments.mkdir()
    table = {"op_id": ["a"], "key": ["k"], "start": pa.array([0], pa.timestamp("us", "UTC")), "timeout_ms": [5000]}
    pq.write_table(pa.table(table), orders / "1.parquet")
    (payments / "1.csv").write_text("key,at\nz,1970-01-01T00:00:00Z\n")
    command = ["stream", str(orders), str(payments), "--out", str(out), "--quiet"]
    assert main([*command, "--trigger", "now", "--tick", "off"]) == 0

    def ended(bad: Path) -> str:
        capsys.readouterr()
        assert main([*command, "--trigger", "now", "--tick", "off"]) == 2
        line = capsys.readouterr().err
        assert line.count("\n") == 1, line
        bad.unlink()
        return line.strip()

    bad = orders / "2 bad.parquet"
    before = "abeyant: error: the stream failed: "
    after = "write this file like the other files, or remove it; then start the same command again"
    pq.write_table(pa.table(table | {"timeout_ms": ["soon"]}), bad)
    assert ended(bad) == f"{before}{bad}: column 'timeout_ms' is text in it, expected bigint: {after}"
    bad.write_bytes(b"PAR1, and no more")
    assert ended(bad) == f"{before}{bad} is not a Parquet file, or is truncated: {after}"
    bad = payments / "2.csv"
    bad.write_text("key,paid\nk,1970-01-01T00:00:01Z\n")
    columns = "other columns (key, paid) than the files before it (key, at)"
    assert ended(bad) == f"{before}{bad} has {columns}: {after}"
    (payments / "3.csv").write_text("key,at\nk,1970-01-01T00:00:01Z\n")
    assert main([*command, "--drain", "--tick", "off"]) == 0
    assert outcomes(out) == {"a": "completed"}


@pytest.mark.slow  # a stream, and a batch
def test_rules_are_options_and_belong_to_the_stream(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next heartbeat within ten minutes of office hours; the one of the start does not count."""
    beats = tmp_path / "beats.csv"
    beats.write_text(
        "op_id,key,start,timeout,cancel_key\n"
        "a,device,2026-03-02 09:00:00,10 min,\nb,device,2026-03-02 09:08:00,10 min,\n"
        "c,device,2026-03-02 16:55:00,10 min,\nd,other,2026-03-02 16:54:00,10 min,device\n"
    )
    out = tmp_path / "out"
    rules = ["--count", "after_start", "--details", "--calendar", "Mon-Fri 09:00-17:00 UTC"]
    command = ["stream", str(beats), str(beats), "--event", "at=start", "--out", str(out), "--tick", "off"]
    assert main([*command, *rules, "--drain"]) == 0
    rows = ds.dataset(out / "outcomes", format="parquet").to_table().sort_by("op_id").to_pylist()
    assert [(row["op_id"], row["outcome"], f"{row['at']:%d %H:%M}", row["counted"]) for row in rows] == [
        ("a", "completed", "02 09:08", 1), ("b", "expired", "02 09:18", 0), ("c", "expired", "03 09:05", 0),
        ("d", "cancelled", "02 16:55", 0),
    ]  # fmt: skip
    said = capsys.readouterr().out
    assert "4 operations: 1 completed, 2 expired (50 %), 1 cancelled" in said
    resolved = ["resolve", str(beats), str(beats), "--event", "at=start", "--out", str(tmp_path / "resolved")]
    assert main([*resolved, *rules, "--quiet"]) == 0
    assert ds.dataset(tmp_path / "resolved" / "outcomes").to_table().sort_by("op_id").to_pylist() == rows
    capsys.readouterr()
    assert main([*command, "--count", "from_start", "--drain"]) == 2
    refused = capsys.readouterr().err
    assert f'{out} belongs to another stream: calendar was "Calendar(' in refused
    assert refused.count("\n") == 1
    with pytest.raises(SystemExit):
        main([*command, "--calendar", "Mon-Fri"])
    assert "hours must look like 'Mon-Fri 09:00-17:00, Sat 10:00-14:00'" in capsys.readouterr().err


def test_the_rules_of_the_command_are_those_of_the_tables() -> None:
    for name, kind in {"count": Count, "combine": Combine, "holds": Holds, "serves": Serves, "within": Within}.items():
        assert RULES[name] == get_args(kind)


def test_what_is_refused_is_one_line(
    spark: SparkSession, files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ["--out", str(tmp_path / "out"), "--quiet"]

    def refusal(*arguments: str) -> str:
        assert main([*arguments]) == 2
        assert not (tmp_path / "out").exists()
        line = capsys.readouterr().err
        assert line.count("\n") == 1, line
        return line

    assert "no such file or directory: nowhere" in refusal("stream", "nowhere", files[1], *out)
    assert "operations: no column 'op_id', expected string (columns: order_id, ordered" in refusal(
        "stream", *files, *out
    )
    assert "events: cannot map the unknown column 'id'" in refusal("stream", *files, *out, *MAPPING, "--event", "id=1")
    assert "--operation-schema 'a b c': " in refusal("stream", *files, *out, "--operation-schema", "a b c")
    assert "--tick must be more than 0s and at most 1s, or off, not 5s" in refusal(
        "stream", *files, *out, "--tick", "5s"
    )
    assert "--to-topic needs --kafka HOST:PORT" in refusal("stream", *files, *out, "--to-topic", "t")
    twice = refusal("stream", *files, *out, "--time", "processing", "--operation", "start=ordered_at")
    assert "--operation start=... and --time processing exclude each other" in twice
    refused = refusal("stream", "orders", "payments", *out, "--kafka", "127.0.0.1:1")
    assert "no Kafka broker can be reached: 127.0.0.1:1: Connection refused" in refused
    assert "'broker' is not HOST:PORT" in refusal("stream", "orders", "payments", *out, "--kafka", "broker")
    (tmp_path / "empty").mkdir()
    empty = refusal("stream", str(tmp_path / "empty"), files[1], *out)
    assert (
        f"operations: {tmp_path / 'empty'} is empty, so its columns are unknown: give them with --operation-schema"
        in empty
    )
    assert "is neither the --out nor the checkpoint of a stream" in refusal("pending", str(tmp_path))
    with pytest.raises(SystemExit):
        main(["stream", *files, *out, "--lateness", "soon"])
    assert "'soon' is not a duration such as 500ms, 10s, 5m, 2h or 1d" in capsys.readouterr().err


def test_a_summary_does_without_operations_that_were_taken_away(spark: SparkSession, tmp_path: Path) -> None:
    batch = tmp_path / "outcomes" / "batch=0"
    batch.mkdir(parents=True)
    ended = {"instance": ["i"], "op_id": ["a"], "kind": ["k"], "outcome": ["expired"], "waited_ms": [5.0]}
    pq.write_table(pa.table(ended), batch / "part.parquet")
    gone = source_of(Input("operations", str(tmp_path / "gone.csv")))
    plan = Plan(
        gone, gone, sink_of(tmp_path), str(tmp_path / "c"), "inclusive", "event", 0.0, None, None, None, drain=True
    )
    lines = Lines(quiet=True)
    lines.first = 0
    assert sum_up(spark, plan, lines, Counted())
    text = (tmp_path / "summary" / "report.html").read_text(encoding="utf-8")
    assert "1 operation: 0 completed, 1 expired" in text
    assert "could not be read again to find their keys" in text


@pytest.mark.slow  # several runs of a stream
def test_outcomes_sent_to_a_topic_have_the_same_page(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = tmp_path / "orders.csv"
    waits = [("a", "ant", "expired", 5.0), ("b", "bee", "completed", 0.0), ("c", "ant", "expired", 250.0)]
    orders.write_text(
        "".join(["op_id,key,start,timeout_ms\n", *(f"{op},{key},2026-01-01,5\n" for op, key, *_ in waits)])
    )
    given, kafka = source_of(Input("operations", str(orders))), Kafka("localhost:1", {}, "earliest", 1)
    plan = Plan(
        given, given, sink_of(tmp_path), str(tmp_path / "c"), "inclusive", "event", 0.0, None, None, None, drain=True,
        kafka=kafka, to_topic="outcomes",
    )  # fmt: skip
    sink = TopicSink(kafka, "outcomes")
    columns = "instance string, op_id string, kind string, outcome string, waited_ms double"
    for rows in (waits[:2], [], waits[2:]):
        kinds = {"expired": "k", "completed": None}
        sink.count(spark.createDataFrame([("", op, kinds[end], end, ms) for op, _, end, ms in rows], columns))
    assert sum_up(spark, plan, Lines(quiet=True), sink.sent)
    text = (tmp_path / "summary" / "report.html").read_text(encoding="utf-8")
    assert "3 operations: 1 completed, 2 expired" in text
    assert "Most expired on the key <code><bdi>ant</bdi></code>: 2." in text
    (key,) = pq.read_table(tmp_path / "summary" / "expired_keys").to_pylist()
    assert (key["key"], key["expired"], key["one_in"]) == ("ant", 2, 1.0)
    # Of a stream that was stopped, and would have gone on, no topic of many operations is read again.
    monkeypatch.setattr(summary, "_FEW", 2)
    topic = source_of(Input("operations", "orders", kafka=kafka))
    going_on = replace(plan, operations=topic, topics=("orders",), trigger=1.0, drain=False)
    assert sum_up(spark, going_on, Lines(quiet=True), sink.sent)
    assert "is not read again" in (tmp_path / "summary" / "report.html").read_text(encoding="utf-8")
    assert not (tmp_path / "summary" / "expired_keys").exists()


def test_a_checkpoint_belongs_to_one_result(tmp_path: Path) -> None:
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"

    def claim(out: Path, checkpoint: str, query: dict[str, Any]) -> None:
        folder = LocalFolder(out)
        check(folder, out, checkpoint, query, begun=(Path(checkpoint) / "metadata").exists())
        describe(folder, checkpoint, query)

    claim(out, str(checkpoint), {"deadline": "inclusive"})
    claim(out, str(checkpoint), {"deadline": "inclusive"})
    assert json.loads((out / DESCRIPTION).read_text())["checkpoint"] == str(checkpoint)
    with pytest.raises(AbeyantError, match=r'checkpoint was ".*", is now "elsewhere"'):
        claim(out, "elsewhere", {"deadline": "inclusive"})
    checkpoint.mkdir()
    (checkpoint / "metadata").touch()
    with pytest.raises(AbeyantError, match="is the checkpoint of another stream: its result is not in"):
        claim(tmp_path / "other", str(checkpoint), {"deadline": "inclusive"})
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "something").touch()
    with pytest.raises(AbeyantError, match="is not a result of abeyant stream: it is left alone"):
        claim(tmp_path / "full", str(tmp_path / "new"), {})
