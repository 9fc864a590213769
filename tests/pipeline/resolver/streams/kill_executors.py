"""Kill executors of a standalone cluster at random (kill -9) while a stream runs on it; then look at what is there.

PYTHONPATH=tests:. python -m pipeline.resolver.streams.kill_executors --kills 20 --sink parquet
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from abeyant import pipeline
from lab.spark.cluster import SETTINGS, Cluster, brief_java, cluster
from pipeline.jvm import BRIEF
from pipeline.resolve_traces import Trace, some_traces
from pipeline.resolver.streams import job
from pipeline.resolver.streams.kill import batches_done, compare, write_input


class Told(NamedTuple):
    """What was done, and what came of it."""

    kills: int
    batches: int
    recoveries: list[float]
    """Seconds from each kill to the end of the batch that ran then."""
    calm: list[float]
    """Seconds between the ends of two batches without a kill in between."""
    outcomes: int
    lost: int
    wrong: int


class _Killer(threading.Thread):
    """Kills an executor at a random moment of a batch, waits until that batch is done, and so on."""

    def __init__(self, folder: Path, there: Cluster, kills: int, seed: int, minutes: float) -> None:
        super().__init__(daemon=True)
        self.moments: list[float] = []
        self.over = threading.Event()
        self._folder, self._there, self._kills, self._dice = folder, there, kills, random.Random(seed)
        self._until = time.time() + minutes * 60

    def run(self) -> None:
        self._wait_for(1)  # the first batch warms up for long
        while len(self.moments) < self._kills and time.time() < self._until and not self.over.is_set():
            self.over.wait(self._dice.uniform(0.0, 3.0))
            running = self._there.executors()
            if not running:
                continue
            with suppress(ProcessLookupError):  # it ended by itself
                os.kill(self._dice.choice(running), signal.SIGKILL)
                self.moments.append(time.time())
            self._wait_for(batches_done(self._folder) + 1)

    def _wait_for(self, batches: int) -> None:
        while batches_done(self._folder) < batches and not self.over.wait(0.02):
            pass


def kill_executors_at_random(
    folder: Path, sink: str, traces: Sequence[Trace], kills: int, seed: int, minutes: float = 600.0, spare: int = 6
) -> Told:
    """Run the stream over the traces on two workers of one core each; kill executors so often, or for so long.

    It has `spare` batches more than kills: on a quick machine some are done before their moment comes.
    """
    write_input(folder, traces, kills + spare, seed)
    with cluster(folder / "cluster") as there:
        java = {f"spark.{side}.defaultJavaOptions": brief_java() for side in ("driver", "executor")}
        config = SETTINGS | BRIEF | java | {"spark.sql.shuffle.partitions": "2"}
        spark = pipeline.spark_session(there.master, "abeyant executors killed", config=config)
        killer = _Killer(folder, there, kills, seed, minutes)
        try:
            killer.start()
            job.run(spark, folder, sink)
        finally:
            killer.over.set()
            killer.join()
            spark.stop()
    return look(folder, sink, traces, killer.moments)


def look(folder: Path, sink: str, traces: Sequence[Trace], moments: Sequence[float]) -> Told:
    """See what is there after kills at those moments, in seconds since 1970."""
    ends = sorted(file.stat().st_mtime for file in (folder / "checkpoint" / "commits").glob("[0-9]*"))
    recoveries = [next((end for end in ends if end > moment), moment) - moment for moment in moments]
    calm = [
        after - before
        for before, after in itertools.pairwise(ends)
        if not any(before <= moment <= after for moment in moments)
    ]
    return Told(len(moments), len(ends), recoveries, calm, *compare(folder, sink, traces))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--sink", choices=["parquet", "table"], default="parquet")
    parser.add_argument("--traces", type=int, default=4000, help="of some operations each (default: %(default)s)")
    parser.add_argument("--minutes", type=float, default=600.0, help="kill none later (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="abeyant-kill-") as home:
        traces = some_traces(args.traces, args.seed)
        told = kill_executors_at_random(
            Path(home), args.sink, traces, args.kills, args.seed, args.minutes, spare=args.kills + 6
        )
    print(
        f"{told.kills} kills, {told.outcomes:,} outcomes in {told.batches} batches: "
        f"{told.lost} lost, {told.wrong} wrong, 0 doubled"
    )
    print(
        f"seconds from a kill to the end of its batch: median {statistics.median(told.recoveries):.1f}, "
        f"most {max(told.recoveries):.1f}; of {len(told.calm)} batches without a kill: "
        f"median {statistics.median(told.calm or [0.0]):.1f}"
    )
    return 1 if told.lost or told.wrong or told.kills < args.kills else 0


if __name__ == "__main__":
    sys.exit(main())
