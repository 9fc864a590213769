"""Kill what writes to a store again and again (kill -9, the whole process group); then look at what is there.

PYTHONPATH=tests python -m object_store.kill --store s3 --what stream --kills 20    or: hdfs, azure, resolve

Every second kill falls at a random moment; the others as soon as some files of a result are there, and not all.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from abeyant.pipeline.results.leases.store import LEASE_SECONDS
from abeyant.pipeline.results.manifests import LEASES
from object_store.buckets import Bucket, conf
from object_store.stores import STORES
from pipeline.resolve_traces import Trace, by_brute_force, some_traces
from pipeline.resolver.streams.kill import write_input
from pipeline.trace_tables import ARROW_EVENTS, ARROW_OPERATIONS, EPOCH_US, event_row, operation_row

Ends = dict[tuple[str, str], tuple[str, int]]

FILES = 4
"""Files that a batch, or a result, is written as: between the first and the last a kill tears it."""


def expected(traces: Sequence[Trace]) -> Ends:
    by_trace = {f"t{n}": by_brute_force(trace, "inclusive") for n, trace in enumerate(traces)}
    return {(name, op): end for name, found in by_trace.items() for op, end in found.items()}


def ends(bucket: Bucket, named: Mapping[str, int]) -> Ends:
    """The outcomes in files, of so many bytes: whole files, each outcome once (O4)."""
    found: Ends = {}
    for place, size in named.items():
        data = bucket.read(place)
        assert data is not None, f"there is no {place}"
        assert len(data) == size, f"{place} is not what its manifest says"
        table = pq.read_table(io.BytesIO(data), columns=["instance", "op_id", "outcome", "at"])
        at = table["at"].cast(pa.timestamp("us")).cast(pa.int64()).to_pylist()
        for row, when in zip(table.to_pylist(), at, strict=True):
            name = row["instance"], row["op_id"]
            assert name not in found, f"O4: {name} has two outcomes"
            found[name] = (row["outcome"], when - EPOCH_US)
    return found


def manifest_files(bucket: Bucket, result: str, name: str) -> dict[str, int] | None:
    """The files of outcomes that a manifest of a result names, as a reader without Spark gets it."""
    text = bucket.read(f"{result}/{name}")
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    return {f"{result}/{entry['file']}": entry["bytes"] for entry in found["files"]["outcomes"]}


def of_stream(bucket: Bucket, result: str) -> Ends:
    """All that a reader finds of a stream: in its directories, or, where none can be renamed, by its manifests."""
    if bucket.renames:
        there = bucket.files(f"{result}/outcomes").items()
        return ends(bucket, {f"{result}/outcomes/{name}": size for name, size in there if name.endswith(".parquet")})
    named: dict[str, int] = {}
    for name in bucket.files(f"{result}/batches"):
        if name.startswith("."):
            continue  # being written, or left so by a kill
        named |= manifest_files(bucket, result, f"batches/{name}") or {}
    return ends(bucket, named)


def of_resolve(bucket: Bucket, result: str) -> Ends | None:
    """The outcomes of a finished result; None where there is none."""
    marker = "abeyant-analysis.json"
    # As the page says: where files cannot take each other's place, the new one stands beside for a moment.
    named = manifest_files(bucket, result, marker) or manifest_files(bucket, result, f"{marker}.next")
    return None if named is None else ends(bucket, named)


def environment() -> dict[str, str]:
    tests = str(Path(__file__).parents[1])
    return os.environ | {"PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}


def half_batches(bucket: Bucket, result: str) -> set[str]:
    """Files of outcomes of batches that nobody reads yet, or never will."""
    there = bucket.files(result)
    if bucket.renames:
        return {name for name in there if name.startswith("_unfinished/") and name.endswith(".parquet")}
    whole = {name.removeprefix("batches/").removesuffix(".json") for name in there if name.startswith("batches/")}
    batches = {name: name.split("batch=")[1].partition("/")[0] for name in _parquet(there, "outcomes/batch=")}
    return {name for name, batch in batches.items() if batch not in whole}


def _parquet(names: Iterable[str], below: str) -> set[str]:
    return {name for name in names if name.startswith(below) and name.endswith(".parquet")}


def kill_when(process: subprocess.Popen[str], seen: Callable[[], bool], seconds: float = 0.0) -> bool:
    """Kill a process and its group so long after something is seen; return whether it ran until then."""
    ran = False
    try:
        while process.poll() is None and not seen():
            time.sleep(0.02)
        time.sleep(seconds)
        ran = process.poll() is None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return ran


def wait_for_torn_claims(bucket: Bucket, result: str) -> None:
    """Where a file is seen while it is written, a kill may leave a claim that tells of nobody. It counts for a time."""
    if any(not bucket.read(f"{result}/{LEASES}/{name}") for name in bucket.files(f"{result}/{LEASES}")):
        time.sleep(LEASE_SECONDS)


def kill_streams(bucket: Bucket, folder: Path, traces: Sequence[Trace], kills: int, seed: int) -> dict[str, int]:
    """Let a stream run and kill it, so often; then let it end."""
    dice = random.Random(seed)
    write_input(folder, traces, 4 * kills, seed)
    partitions = {"spark.sql.shuffle.partitions": str(FILES)}
    (folder / "session.json").write_text(json.dumps(dict(bucket.settings) | partitions))
    result, whole = "stream/result", expected(traces)
    torn = orphans = 0

    def done() -> int:
        return sum(name.isdecimal() for name in bucket.files("stream/checkpoint/commits"))

    def batches(count: int) -> bool:
        return done() >= count

    def new_files(left: set[str], count: int) -> bool:
        return len(half_batches(bucket, result) - left) >= count

    for life in range(kills + 1):
        wait_for_torn_claims(bucket, result)
        process = subprocess.Popen(
            [sys.executable, "-m", "object_store.job", str(folder), f"{bucket.uri}/stream"],
            stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment(),
        )  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        if life == kills:
            said, _ = process.communicate()
            assert said.splitlines()[-1:] == ["done"], "the last life ends by itself"
        else:
            left = half_batches(bucket, result)
            if life % 2:
                ran = kill_when(process, partial(new_files, left, dice.randint(1, FILES - 1)))
            else:
                ran = kill_when(process, partial(batches, done() + dice.randint(0, 3)), dice.uniform(0.0, 3.0))
            assert ran, "a life that ended before it was killed: give it more files"
            half = half_batches(bucket, result)
            torn, orphans = torn + bool(half - left), orphans + len(half - left)
        assert of_stream(bucket, result).items() <= whole.items(), "nothing torn, wrong or doubled, at any time"
    last = of_stream(bucket, result)
    assert not half_batches(bucket, result), "what killed runs left is removed by a batch that is done"
    return {
        "kills": kills, "of them while files were written": torn, "files that nobody saw": orphans,
        "batches": done(), "outcomes": len(last), "lost": len(whole.keys() - last.keys()),
    }  # fmt: skip


def kill_resolves(bucket: Bucket, folder: Path, traces: Sequence[Trace], kills: int, seed: int) -> dict[str, int]:
    """Let the command write its result and kill it, so often; then let it end; then replace it."""
    dice = random.Random(seed)
    rows = [(f"t{n}", trace) for n, trace in enumerate(traces)]
    operations = [operation_row(op, name) for name, trace in rows for op in trace.operations]
    events = [event_row(event, name) for name, trace in rows for event in trace.events]
    for name, table in (
        ("operations", pa.Table.from_pylist(operations, ARROW_OPERATIONS)),
        ("events", pa.Table.from_pylist(events, ARROW_EVENTS)),
    ):
        pq.write_table(table, folder / name)
        bucket.write(f"{name}/part.parquet", (folder / name).read_bytes())
    command = [
        *(sys.executable, "-m", "abeyant", "resolve", f"{bucket.uri}/operations", f"{bucket.uri}/events"),
        *("--out", f"{bucket.uri}/result", "--master", "local[2]", "--overwrite", "--quiet", *conf(bucket)),
    ]

    def runs() -> dict[str, set[str]]:
        """The runs that have left a trace, and their files of outcomes."""
        found: dict[str, set[str]] = {}
        for name in bucket.files("result"):
            run, _, file = name.partition("/")
            if run.startswith("run-"):
                found.setdefault(run, set()).update(_parquet([file], "outcomes/"))
        return found

    def new_run(before: Container[str], files: int) -> bool:
        return any(run not in before and len(found) >= files for run, found in runs().items())

    wanted, whole, before, torn = expected(traces), 0, 0, 0
    for life in range(kills + 1):
        left = runs()
        process = subprocess.Popen(
            command, start_new_session=True, env=environment(), stderr=subprocess.PIPE, text=True
        )
        if life == kills:
            _, said = process.communicate()
            assert process.returncode == 0, said
        else:
            if life % 2:
                killed = kill_when(process, partial(new_run, left, dice.randint(1, FILES - 1)))
            else:
                killed = kill_when(process, partial(new_run, left, 0), dice.uniform(0.0, 6.0))
            torn += killed and new_run(left, 1)
        found = of_resolve(bucket, "result")
        assert found is None or found == wanted, "whole or not at all"
        assert found is not None or not whole, "what was there stays until the next is whole"
        whole += found is not None
        before += found is None
    left = runs()
    assert len(left) == 1, f"{len(left) - 1} directories of killed runs are left"
    return {
        "kills": kills, "of them while files were written": torn, "seen whole": whole, "not there": before,
        "outcomes": len(wanted),
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--store", choices=STORES, default="s3")
    parser.add_argument("--what", choices=["stream", "resolve"], default="stream")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    traces = some_traces(400, args.seed)
    with tempfile.TemporaryDirectory(prefix="abeyant-store-") as home:
        (Path(home) / "input").mkdir()
        with STORES[args.store](Path(home) / "store") as bucket:
            kill = kill_streams if args.what == "stream" else kill_resolves
            found = kill(bucket, Path(home) / "input", traces, args.kills, args.seed)
    print(f"{args.what} on {args.store}:", ", ".join(f"{number:,} {name}" for name, number in found.items()))
    return 1 if found.get("lost") else 0


if __name__ == "__main__":
    sys.exit(main())
