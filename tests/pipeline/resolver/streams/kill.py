"""Kill a stream's driver again and again (kill -9, its whole process group with the JVM); then look at what is there.

PYTHONPATH=tests python -m pipeline.resolver.streams.kill --kills 20 --sink parquet
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pipeline.resolve_traces import Outcomes, Trace, by_brute_force, some_traces
from pipeline.resolver.streams.cuts import Batch, cut
from pipeline.trace_tables import ARROW_EVENTS, ARROW_OPERATIONS, EPOCH_US, event_row, operation_row

DISORDER_US = 4000


def write_input(folder: Path, traces: Sequence[Trace], files: int, seed: int) -> None:
    """Write the traces as Parquet files, in the order in which the stream is to read them."""
    batches = cut(traces, random.Random(seed), batches=files, disorder_us=DISORDER_US)[:-1]
    write_batches(folder, batches)


def write_batches(folder: Path, batches: Sequence[Batch], first: int = 0) -> None:
    """Write a file a table and batch, the first of them with the number `first`."""
    for number, batch in enumerate(batches, first):
        operations = [operation_row(op, instance) for instance, op in batch.operations]
        events = [event_row(event, instance) for instance, event in batch.events]
        write_file(
            folder / "operations" / f"{number:04}.parquet", pa.Table.from_pylist(operations, ARROW_OPERATIONS), number
        )
        write_file(folder / "events" / f"{number:04}.parquet", pa.Table.from_pylist(events, ARROW_EVENTS), number)


def write_file(file: Path, table: pa.Table, number: int) -> None:
    """Put a file there whole, older than those with a greater number: a stream reads the oldest first."""
    file.parent.mkdir(parents=True, exist_ok=True)
    aside = file.with_name(f".{file.name}")
    pq.write_table(table, aside)
    os.utime(aside, (1_700_000_000 + number, 1_700_000_000 + number))
    aside.rename(file)


class Life(NamedTuple):
    """How long a driver lived, and how many batches were done by the end of its life."""

    seconds: float
    batches: int


def kill_at_random_moments(folder: Path, sink: str, kills: int, seed: int) -> list[Life]:
    """Let the stream run and kill it, so often; then let it end. Nothing is torn and nothing doubled, at any time."""
    command = [sys.executable, "-m", "pipeline.resolver.streams.job", str(folder), sink]
    return kill_job(folder, command, kills, seed, environment=environment(), look=lambda: found(folder, sink))


def kill_job(
    folder: Path,
    command: Sequence[str],
    kills: int,
    seed: int,
    *,
    environment: Mapping[str, str],
    look: Callable[[], object] = lambda: None,
) -> list[Life]:
    """Run a job whose checkpoint is FOLDER/checkpoint and kill it, so often; then let it end. Look after each life.

    A life ends at a random moment of the batch after the first, second or third that it has done, or, one in four, of
    its very first: since a driver takes long to warm up, one killed at a moment chosen beforehand may never do any.
    """
    dice = random.Random(seed)
    lives = []
    for life in range(kills + 1):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True, env=environment)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        if life == kills:
            said, _ = process.communicate()
            assert said.splitlines()[-1] == "done", "the last life ends by itself"
        else:
            _wait_for(folder, process, batches_done(folder) + dice.randint(0, 3))
            time.sleep(dice.uniform(0.0, 2.0))
            assert process.poll() is None, "a life that ended before it was killed: give it more files"
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        lives.append(Life(time.monotonic() - began, batches_done(folder)))
        look()
    return lives


def batches_done(folder: Path) -> int:
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def _wait_for(folder: Path, process: subprocess.Popen[str], batches: int) -> None:
    while batches_done(folder) < batches and process.poll() is None:
        time.sleep(0.01)


def environment() -> dict[str, str]:
    """Return this process's, with the tests in the path."""
    tests = str(Path(__file__).parents[3])
    return os.environ | {"PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])}


def found(folder: Path, sink: str) -> dict[str, Outcomes]:
    """Read the outcomes without Spark, as anybody would: each once (O4)."""
    rows = _from_table(folder / "outcomes.db") if sink == "table" else _from_files(folder / "out" / "outcomes")
    outcomes: dict[str, Outcomes] = {}
    for instance, op_id, outcome, at in rows:
        ends = outcomes.setdefault(instance, {})
        assert op_id not in ends, f"O4: {instance} {op_id} has two outcomes"
        ends[op_id] = (outcome, at - EPOCH_US)
    return outcomes


def _from_files(place: Path) -> list[tuple[str, str, str, int]]:
    # Our folder is made before the first batch is renamed into it; Spark's own sink has no folder per batch.
    if not any(place.glob("batch=*")) and not any(place.glob("*.parquet")):
        return []
    table = ds.dataset(place, format="parquet", partitioning="hive").to_table(["instance", "op_id", "outcome", "at"])
    at = table["at"].cast(pa.timestamp("us")).cast(pa.int64())
    return list(
        zip(*(table[name].to_pylist() for name in ("instance", "op_id", "outcome")), at.to_pylist(), strict=True)
    )


def _from_table(file: Path) -> list[tuple[str, str, str, int]]:
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'outcomes'").fetchone():
            return []
        return database.execute("SELECT instance, op_id, outcome, at_us FROM outcomes").fetchall()


def compare(folder: Path, sink: str, traces: Sequence[Trace]) -> tuple[int, int, int]:
    """Return how many outcomes there are, how many were lost and how many are wrong."""
    outcomes = found(folder, sink)
    expected = {f"t{n}": by_brute_force(trace, "inclusive") for n, trace in enumerate(traces)}
    flat = {(i, op): end for i, ops in expected.items() for op, end in ops.items()}
    got = {(i, op): end for i, ops in outcomes.items() for op, end in ops.items()}
    return len(got), len(flat.keys() - got.keys()), sum(flat.get(name) != end for name, end in got.items())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--sink", choices=["parquet", "table"], default="parquet")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="abeyant-kill-") as home:
        folder = Path(home)
        traces = some_traces(4000, args.seed)
        write_input(folder, traces, 4 * args.kills, args.seed)
        lives = kill_at_random_moments(folder, args.sink, args.kills, args.seed)
        outcomes, lost, wrong = compare(folder, args.sink, traces)
    done = f"{outcomes:,} outcomes in {lives[-1].batches} batches"
    print(f"{args.kills} kills, {done}: {lost} lost, {wrong} wrong, 0 doubled")
    print("each life, seconds and batches done by its end:", *(f"{life.seconds:.1f}/{life.batches}" for life in lives))
    return 1 if lost or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
