"""Law O4 over three brokers, ours or genuine Kafka's: topics, our stream by Spark's connector, outcomes to a topic.

Operations and events come in random order and with records in between that cannot be read; a broker and the stream are
killed on the way; a batch is written twice. Outcomes are compared with brute force.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol

import pyarrow.parquet as pq

from abeyant.broker.genuine import die_with_parent
from pipeline.jvm import BRIEF_OPTIONS
from pipeline.kafka_topics import Producer, Record, consume, create_topics
from pipeline.resolve_traces import Trace, by_brute_force, some_traces

PARTITIONS = 3
TRACES = 200
START = datetime(2026, 1, 1, tzinfo=UTC)

CORRUPT = {
    "{": "not a JSON object",
    "no JSON at all": "not a JSON object",
    '{"op_id": "lost"}': "no start",
    '{"op_id":"o","start":"yesterday","timeout_ms":1,"watches":[]}': "start is not a timestamp: yesterday",
    None: "no value, or not UTF-8",
}


class Brokers(Protocol):
    """Three brokers."""

    bootstrap: str

    def end_one(self) -> None:
        """End broker 2, without notice where that can be; no more than once."""


def at(us: int) -> str:
    return (START + timedelta(microseconds=us)).isoformat()


def operations(number: int, trace: Trace) -> Iterator[str]:
    for op in trace.operations:
        watches = [{"key": watch.key, "required": watch.required} for watch in op.watches]
        named = {"instance": f"trace {number}", "op_id": op.op_id, "condition": op.condition}
        yield json.dumps(named | {"start": at(op.start), "timeout_ms": op.timeout_ms, "watches": watches})


def events(number: int, trace: Trace) -> Iterator[str]:
    for event in trace.events:
        yield json.dumps(
            {"instance": f"trace {number}", "key": event.key, "at": at(event.at), "progress": event.progress}
        )


def stream(cluster: Brokers, out: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "abeyant", "stream", "operations", "events", "--kafka", cluster.bootstrap]
    command += ["--out", str(out), "--to-topic", "outcomes", "--lateness", "1h", "--master", "local[2]"]
    command += [*BRIEF_OPTIONS, *options]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        preexec_fn=die_with_parent,
    )  # fmt: skip


def drain(cluster: Brokers, out: Path) -> None:
    running = stream(cluster, out, "--drain", "--quiet")
    said, _ = running.communicate(timeout=300)
    page = out / "summary" / "report.html"
    assert (running.returncode, said.splitlines()[-1]) == (0, str(page)), said
    assert page.exists()


def commits(out: Path) -> list[Path]:
    """What Spark notes of each batch when it is done."""
    noted = [path for path in (out / "checkpoint" / "commits").glob("*") if path.name.isdecimal()]
    return sorted(noted, key=lambda path: int(path.name))


def from_topics_to_a_topic(cluster: Brokers, tmp_path: Path) -> None:
    dice = random.Random(6)
    traces = some_traces(TRACES, seed=6)
    lines = {
        "operations": [line for number, trace in enumerate(traces) for line in operations(number, trace)],
        "events": [line for number, trace in enumerate(traces) for line in events(number, trace)],
    }
    create_topics(cluster.bootstrap, lines, PARTITIONS, min_insync_replicas="2")
    create_topics(cluster.bootstrap, ["outcomes"], PARTITIONS, cleanup_policy="compact", min_insync_replicas="2")
    for sent in lines.values():
        dice.shuffle(sent)
    out = tmp_path / "out"

    def send(part: slice) -> None:
        for topic, all_lines in lines.items():
            with Producer(cluster.bootstrap, topic) as producer:
                for line in all_lines[part]:
                    producer.send(f"{dice.random()}", line)
                if topic == "operations":
                    for value in CORRUPT:
                        producer.send("corrupt", value)
                    producer.begin()
                    cluster.end_one()  # while this is being sent, and read

    running = stream(cluster, out, "--trigger", "1s", "--records-per-batch", "300")
    try:
        send(slice(0, None, 2))
        until = time.monotonic() + 240
        while len(commits(out)) < 3 and running.poll() is None and time.monotonic() < until:
            time.sleep(0.1)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
    said, _ = running.communicate()
    assert "batch 0: " in said
    assert len(commits(out)) >= 3, said
    send(slice(1, None, 2))
    drain(cluster, out)
    # As if killed between writing the last batch and noting that it is done: it is written again.
    last = commits(out)[-1]
    last.unlink()
    last.with_name(f".{last.name}.crc").unlink()
    drain(cluster, out)

    found = consume(cluster.bootstrap, "outcomes", PARTITIONS)
    expected = {
        (f"trace {number}", op_id): (outcome, at(us))
        for number, trace in enumerate(traces)
        for op_id, (outcome, us) in by_brute_force(trace, "inclusive").items()
    }
    assert len(found) > len(expected)
    assert outcomes(found) == expected
    aside = pq.read_table(out / "aside").to_pylist()
    assert sorted(row["reason"] for row in aside) == sorted(2 * list(CORRUPT.values()))
    rows = [json.loads(row["row"]) for row in aside]
    assert {row["topic"] for row in rows} == {"operations"}
    assert len({(row["partition"], row["offset"]) for row in rows}) == 2 * len(CORRUPT)
    assert {row.get("value") for row in rows} == set(CORRUPT)


def outcomes(records: list[Record]) -> dict[tuple[str, str], tuple[str, str]]:
    """By operation. A record may be there twice: then it has the same key, and says the same."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for record in records:
        value = json.loads(record.value)
        key = (value["instance"], value["op_id"])
        assert list(key) == json.loads(record.key)
        told = (value["outcome"], datetime.fromisoformat(value["at"]).isoformat())
        assert found.setdefault(key, told) == told
    return found
