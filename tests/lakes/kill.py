"""Kill a stream that writes into tables of a lake again and again (kill -9, its whole process group); then look.

PYTHONPATH=tests python -m lakes.kill --kills 20 --format delta    or: iceberg
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from lakes.environment import environment, settings
from pipeline.resolve_traces import Op, Trace, by_brute_force, some_traces
from pipeline.resolver.streams.cuts import cut
from pipeline.resolver.streams.kill import DISORDER_US, batches_done, kill_job, write_batches
from pipeline.trace_tables import EPOCH_US


def write_input(folder: Path, traces: Sequence[Trace], files: int, seed: int) -> None:
    """Write the traces, a file a batch and table, and beside each operation a copy that is to be rejected."""
    batches = cut(traces, random.Random(seed), batches=files, disorder_us=DISORDER_US)[:-1]
    numbers = iter(range(10**9))
    for batch in batches:
        batch.operations[:] = [  # type: ignore[index]
            row for instance, op in batch.operations for row in ((instance, op), ("bad", bad(op, next(numbers))))
        ]
    write_batches(folder, batches)
    (folder / "session.json").write_text(json.dumps(settings(folder)))


def bad(op: Op, number: int) -> Op:
    return op._replace(op_id=f"bad-{number}", timeout_ms=-1)


def command(folder: Path, kind: str, *dying: str) -> list[str]:
    return [sys.executable, "-m", "lakes.job", str(folder), kind, *dying]


def die_once(folder: Path, kind: str, at: int, after: str) -> None:
    """Run the job until it kills itself there; see `lakes.job`."""
    done = subprocess.run(
        command(folder, kind, str(at), after), stdout=subprocess.PIPE, text=True, start_new_session=True,
        env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == -9, f"it was to kill itself: {done.returncode}, {done.stdout}"


def differences(folder: Path, traces: Sequence[Trace]) -> dict[str, int]:
    """Compare what the job found in both tables at its end with what there has to be, each once (O4)."""
    found = json.loads((folder / "found.json").read_text())
    ends = Counter((instance, op, how, at - EPOCH_US) for instance, op, how, at in found["outcomes"])
    aside = Counter((table, reason, json.loads(row)["op_id"]) for table, reason, row in found["aside"])
    should = Counter(
        (f"t{n}", op, *end) for n, trace in enumerate(traces) for op, end in by_brute_force(trace, "inclusive").items()
    )
    count = sum(len(trace.operations) for trace in traces)
    should_aside = Counter(("operations", "timeout_ms is negative", f"bad-{n}") for n in range(count))
    return {
        "outcomes": ends.total(),
        "set aside": aside.total(),
        "lost": (should - ends).total() + (should_aside - aside).total(),
        "doubled or wrong": (ends - should).total() + (aside - should_aside).total(),
        "batches": batches_done(folder),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--format", choices=["delta", "iceberg"], default="delta")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    traces = some_traces(2000, args.seed)
    with tempfile.TemporaryDirectory(prefix="abeyant-lake-") as home:
        folder = Path(home)
        write_input(folder, traces, 4 * args.kills, args.seed)
        kill_job(folder, command(folder, args.format), args.kills, args.seed, environment=environment())
        found = differences(folder, traces)
    print(f"{args.format}, {args.kills} kills:", ", ".join(f"{number:,} {name}" for name, number in found.items()))
    return 1 if found["lost"] or found["doubled or wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
