"""Run each seed of the order service twice, in processes of their own, and compare the hashes of the traces (S1).

    python -m examples.simulation.twice 10000 --log twice.log  # goes on where an earlier one was ended

The two processes start under PYTHONHASHSEED 1 and a random one. Each line of the log is a seed and its two hashes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from abeyant import simulation

HASH_SEEDS = ("1", "random")
CHUNK = 100  # seeds of a process: starting one costs as much as a few seeds


def run_here(seeds: range) -> None:
    """Run the seeds in this process; print the hash of each."""
    simulation.fix_hashes()
    from abeyant.broker.simulation import Options, run_seed
    from examples.simulation.orders import careful_service
    from examples.simulation.test_orders import story

    for seed in seeds:
        outcome = run_seed(lambda run: story(run, careful_service), seed, Options())
        failed = "" if outcome.failure is None else f" {outcome.failure.message}"
        print(f"{outcome.hash}{failed}")


def started(seeds: range, hash_seed: str) -> subprocess.Popen[str]:
    """Start a process that runs the seeds."""
    command = [sys.executable, "-m", "examples.simulation.twice", "--here", f"{seeds.start}:{seeds.stop}"]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def hashes(process: subprocess.Popen[str]) -> list[str]:
    """Return what a process has printed. Raises CalledProcessError if it failed."""
    printed, _ = process.communicate()
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, process.args)
    return printed.splitlines()


def main() -> int:
    parser = argparse.ArgumentParser(description="Run each seed twice and compare the hashes.")
    parser.add_argument("count", type=int, nargs="?", default=200, help="seeds, from 0 on (default: 200)")
    parser.add_argument("--log", type=Path, help="append each seed and its hashes; skip the seeds that are in it")
    parser.add_argument("--jobs", type=int, choices=(1, 2), default=2, help="processes at a time (default: 2)")
    parser.add_argument("--here", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        run_here(range(*map(int, given.here.split(":"))))
        return 0
    lines = given.log.read_text().splitlines() if given.log and given.log.exists() else []
    before, began = len(lines), time.monotonic()
    while len(lines) < given.count:
        seeds = range(len(lines), min(len(lines) + CHUNK, given.count))
        if given.jobs == 2:
            first, second = map(hashes, [started(seeds, hash_seed) for hash_seed in HASH_SEEDS])
        else:
            first, second = (hashes(started(seeds, hash_seed)) for hash_seed in HASH_SEEDS)
        chunk = [f"{seed} {a} | {b}" for seed, a, b in zip(seeds, first, second, strict=True)]
        lines += chunk
        if given.log:
            with given.log.open("a") as log:
                log.writelines(f"{line}\n" for line in chunk)
        rate = 2 * (len(lines) - before) / (time.monotonic() - began)
        different = [line for line in lines if not equal(line)]
        print(f"{len(lines):,} seeds run twice, {len(different)} differ, {rate:.1f} runs a second", flush=True)
    for line in different:
        print(line)
    return 1 if different else 0


def equal(line: str) -> bool:
    """Return whether both runs of a line of the log were the same."""
    first, second = line.split(" ", 1)[1].split(" | ")
    return first == second


if __name__ == "__main__":
    sys.exit(main())
