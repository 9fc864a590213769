"""Kill what writes to an object store again and again (kill -9, the whole process group); then look at what is there.

PYTHONPATH=tests python -m object_store.kill --kills 20 --what stream    or: resolve
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from object_store.gateway import BUCKET, Gateway, running
from pipeline.resolve_traces import Trace, by_brute_force, some_traces
from pipeline.resolver.streams.kill import write_input
from pipeline.trace_tables import ARROW_EVENTS, ARROW_OPERATIONS, EPOCH_US, event_row, operation_row

Ends = dict[tuple[str, str], tuple[str, int]]


def expected(traces: Sequence[Trace]) -> Ends:
    by_trace = {f"t{n}": by_brute_force(trace, "inclusive") for n, trace in enumerate(traces)}
    return {(name, op): end for name, found in by_trace.items() for op, end in found.items()}


def text(files: fs.S3FileSystem, name: str) -> dict[str, Any] | None:
    """A manifest, as a reader without Spark gets it."""
    if files.get_file_info(f"{BUCKET}/{name}").type == fs.FileType.NotFound:
        return None
    with files.open_input_file(f"{BUCKET}/{name}") as stream:
        found: dict[str, Any] = json.loads(stream.read())
    return found


def ends(files: fs.S3FileSystem, result: str, named: Sequence[dict[str, Any]]) -> Ends:
    """The outcomes in the files that a manifest names: whole files, each outcome once (O4)."""
    found: Ends = {}
    for entry in named:
        place = f"{BUCKET}/{result}/{entry['file']}"
        assert files.get_file_info(place).size == entry["bytes"], f"{place} is not what the manifest says"
        table = pq.read_table(place, filesystem=files, columns=["instance", "op_id", "outcome", "at"])
        at = table["at"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        for row, when in zip(table.to_pylist(), at, strict=True):
            name = row["instance"], row["op_id"]
            assert name not in found, f"O4: {name} has two outcomes"
            found[name] = (row["outcome"], when - EPOCH_US)
    return found


def of_stream(gateway: Gateway, result: str) -> Ends:
    """All that the manifests of a stream's batches name."""
    files = gateway.arrow()
    listed = files.get_file_info(fs.FileSelector(f"{BUCKET}/{result}/batches", allow_not_found=True))
    named = []
    for info in listed:
        found = text(files, f"{result}/batches/{info.base_name}")
        assert found is not None
        named += found["files"]["outcomes"]
    return ends(files, result, named)


def of_resolve(gateway: Gateway, result: str) -> Ends | None:
    """The outcomes of a finished result; None where there is none."""
    files = gateway.arrow()
    found = text(files, f"{result}/abeyance-analysis.json")
    return None if found is None else ends(files, result, found["files"]["outcomes"])


def environment() -> dict[str, str]:
    tests = str(Path(__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}


def kill_streams(gateway: Gateway, folder: Path, traces: Sequence[Trace], kills: int, seed: int) -> dict[str, int]:
    """Let a stream run and kill it, so often, at a random moment of one of its batches; then let it end."""
    dice = random.Random(seed)
    write_input(folder, traces, 4 * kills, seed)
    (folder / "session.json").write_text(json.dumps(gateway.settings | {"spark.sql.shuffle.partitions": "2"}))
    commits = gateway.folder / "stream" / "checkpoint" / "commits"
    orphans = 0

    def done() -> int:
        return len(list(commits.glob("[0-9]*")))

    for life in range(kills + 1):
        process = subprocess.Popen(
            [sys.executable, "-m", "object_store.job", str(folder), f"s3a://{BUCKET}/stream"],
            stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment(),
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if life == kills:
            said, _ = process.communicate()
            assert said.splitlines()[-1:] == ["done"], "the last life ends by itself"
        else:
            until = done() + dice.randint(0, 3)
            while done() < until and process.poll() is None:
                time.sleep(0.02)
            time.sleep(dice.uniform(0.0, 3.0))
            assert process.poll() is None, "a life that ended before it was killed: give it more files"
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        seen = of_stream(gateway, "stream/result")
        assert seen.items() <= expected(traces).items(), "nothing torn, wrong or doubled, at any time"
        orphans += len(unnamed(gateway)) if life < kills else 0
    last = of_stream(gateway, "stream/result")
    assert not unnamed(gateway), "what killed runs left is removed by the batch done again"
    return {
        "kills": kills, "batches": done(), "outcomes": len(last), "lost": len(expected(traces).keys() - last.keys()),
        "files of killed batches that nobody saw": orphans,
    }  # fmt: skip


def unnamed(gateway: Gateway) -> set[str]:
    """Files of outcomes that no manifest names."""
    result = gateway.folder / "stream" / "result"
    manifests = [json.loads(file.read_text()) for file in (result / "batches").glob("*.json")]
    named = {entry["file"] for found in manifests for entry in found["files"]["outcomes"]}
    there = {str(file.relative_to(result)) for file in (result / "outcomes").rglob("*.parquet")}
    return there - named


def kill_resolves(gateway: Gateway, folder: Path, traces: Sequence[Trace], kills: int, seed: int) -> dict[str, int]:
    """Let the command write its result and kill it at a random moment, so often; then let it end; then replace it."""
    dice = random.Random(seed)
    rows = [(f"t{n}", trace) for n, trace in enumerate(traces)]
    operations = [operation_row(op, name) for name, trace in rows for op in trace.operations]
    events = [event_row(event, name) for name, trace in rows for event in trace.events]
    files = gateway.arrow()
    for name, table in (
        ("operations", pa.Table.from_pylist(operations, ARROW_OPERATIONS)),
        ("events", pa.Table.from_pylist(events, ARROW_EVENTS)),
    ):
        pq.write_table(table, f"{BUCKET}/{name}/part.parquet", filesystem=files)
    result = f"s3a://{BUCKET}/result"
    command = [
        *(sys.executable, "-m", "abeyance", "resolve", f"s3a://{BUCKET}/operations", f"s3a://{BUCKET}/events"),
        *("--out", result, "--master", "local[2]", "--overwrite", "--quiet", *gateway.conf),
    ]
    began_writing = gateway.folder / "result"
    whole = before = 0
    for life in range(kills + 1):
        runs = set(began_writing.glob("run-*"))
        process = subprocess.Popen(
            command, start_new_session=True, env=environment(), stderr=subprocess.PIPE, text=True
        )
        if life == kills:
            _, said = process.communicate()
            assert process.returncode == 0, said
        else:
            while set(began_writing.glob("run-*")) <= runs and process.poll() is None:
                time.sleep(0.02)
            time.sleep(dice.uniform(0.0, 6.0))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        found = of_resolve(gateway, "result")
        assert found is None or found == expected(traces), "whole or not at all"
        assert found is not None or not whole, "what was there stays until the next is whole"
        whole += found is not None
        before += found is None
    left = len(list(began_writing.glob("run-*")))
    assert left == 1, f"{left - 1} directories of killed runs are left"
    return {"kills": kills, "seen whole": whole, "not there": before, "outcomes": len(expected(traces))}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--what", choices=["stream", "resolve"], default="stream")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    traces = some_traces(400, args.seed)
    with tempfile.TemporaryDirectory(prefix="abeyance-store-") as home, running(Path(home) / "gateway") as gateway:
        (Path(home) / "input").mkdir()
        kill = kill_streams if args.what == "stream" else kill_resolves
        found = kill(gateway, Path(home) / "input", traces, args.kills, args.seed)
    print(f"{args.what}:", ", ".join(f"{number:,} {name}" for name, number in found.items()))
    return 1 if found.get("lost") else 0


if __name__ == "__main__":
    sys.exit(main())
