"""What holds nothing for a command is refused before Spark starts, in the words of Spark's job; all else is not."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from abeyant.cli import main
from abeyant.pipeline.commands import nothing_there
from abeyant.pipeline.spark import session
from pipeline.request_log.kafka_lines import fetch, line, produce

LEVEL = ": Kafka logs requests while its logger kafka.request.logger is at DEBUG (docs/pipeline.md)\n"
REFUSED = {"model": "no produce with acks=all was appended in", "replay": "no operation is in"}


class StartedError(Exception):
    """Spark would start."""


@pytest.fixture(autouse=True)
def no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> None:
        raise StartedError

    monkeypatch.setattr(session, "command_session", start)


def refused(out: Path, *arguments: str) -> bool:
    try:
        assert main([*arguments, "--out", str(out), "--quiet"]) == 2
    except StartedError:
        return False
    assert not out.exists()
    return True


WRAPPED = json.dumps({"log": f"{produce().decode()}\n", "stream": "stdout"}).encode()
ONE = json.loads(produce().split(b"request:")[1].rpartition(b" (")[0])["request"] | {"acks": 1}


@pytest.mark.parametrize(
    ("log", "refusing"),
    [
        (line("HEARTBEAT", {}, {}), {"model", "replay"}),
        (gzip.compress(line("HEARTBEAT", {}, {}), mtime=0), {"model", "replay"}),
        (produce()[:100], {"model", "replay"}),
        (line("PRODUCE", ONE, {"responses": []}), {"model"}),
        (produce(error_code=19, base_offset=-1), {"model"}),
        (line("HEARTBEAT", {}, {}, remote=2.0), {"model"}),
        (b"\n".join([line("HEARTBEAT", {}, {}), fetch()]), {"model"}),
        (b"\n".join([b"hello", produce(), b"hello"]), set()),
        (gzip.compress(produce(), mtime=0), set()),
        (WRAPPED, set()),
    ],
)
def test_a_log(log: bytes, refusing: set[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "kafka-request.log"
    file.write_bytes(log)
    for command, why in REFUSED.items():
        assert refused(tmp_path / "out", command, str(tmp_path)) is (command in refusing)
        assert (f" {why} {tmp_path}\n" in capsys.readouterr().err) is (command in refusing)


def test_a_large_log_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kafka-request.log").write_bytes(b"hello\n")
    monkeypatch.setattr(nothing_there, "_MOST_BYTES", 5)
    assert not refused(tmp_path / "out", "model", str(tmp_path))


def test_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("orders.csv", "none.csv", "none.parquet", "orders.parquet", "full.csv", "events.csv", "keys.csv")
    orders, nothing, no_file, typed, full, events, keys = (str(tmp_path / name) for name in names)
    Path(orders).write_text("op_id,key,start,timeout_ms\n")
    Path(full).write_text("op_id,key,start,timeout_ms\n1,a,2026-03-02T12:00:00Z,5\n")
    Path(events).write_text("key,at\n")
    Path(keys).write_text("key\n")
    for empty in (nothing, no_file):
        Path(empty).touch()
    pq.write_table(pa.table({"outcome": pa.array([], pa.string())}), typed)

    def why(*arguments: str) -> str | None:
        is_refused = refused(tmp_path / "out", "replay", *arguments)
        return capsys.readouterr().err if is_refused else None

    with_events, mapped = ("--events", events), ("--operation", "op_id=op_id")
    for table in ((orders, *with_events), (orders, *with_events, *mapped), (typed,)):
        assert why(*table) == f"abeyant: error: nothing to replay: no operation is in {table[0]}\n"
    outcomes = "has no column 'outcome': give the table of events with --events\n"
    assert why(full) == f"abeyant: error: {full} {outcomes}"
    assert why(nothing) == f"abeyant: error: {nothing} {outcomes}"
    assert (why(nothing, *with_events) or "").startswith(
        "abeyant: error: operations: no column 'op_id', expected string "
    )
    assert (why(full, "--events", keys) or "").startswith("abeyant: error: events: no column 'at', expected timestamp ")
    assert f"{no_file}: found no Parquet file with columns" in (why(no_file, *with_events) or "")
    assert why(full, *with_events) is None
    assert why(orders, *with_events, "--operation-query", "select * from operations") is None
    assert why(full, *with_events, "--operation", "op_id=upper(key)") is None


@pytest.mark.parametrize(
    ("log", "refusing"),
    [
        (b"", True),
        (b"hello\n", True),
        (b"[2026-11-21 10:00:00,000] INFO started (kafka.server)\n" * 3, True),
        (gzip.compress(b"hello\n", mtime=0), True),
        (gzip.compress(produce(), mtime=0)[:-9], True),
        (produce()[:100], False),
        (line("HEARTBEAT", {}, {}), False),
        (WRAPPED, False),
    ],
)
def test_a_log_without_a_request(
    log: bytes, refusing: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kafka-request.log").write_bytes(log)
    said = set()
    for command in ("analyze", *REFUSED) if refusing else ("analyze",):
        assert refused(tmp_path / "out", command, str(tmp_path)) is refusing
        said.add(capsys.readouterr().err)
    [one] = said
    assert ("no request in 1 file: " in one) is refusing
    why = "cut off" if log.startswith(b"\x1f") and log != gzip.compress(b"hello\n", mtime=0) else LEVEL
    assert (why in one) is refusing


def test_a_watch_waits_for_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, waiting = str(tmp_path / "out"), ["analyze", str(tmp_path), "--watch", "--out"]
    with pytest.raises(StartedError):
        main([*waiting, out])
    assert capsys.readouterr().err.startswith(f"waiting for a log: no kafka-request* in {tmp_path}\n")
    assert refused(Path(out), *waiting[:1], str(tmp_path / "gone" / "kafka-request.log"), "--watch")
