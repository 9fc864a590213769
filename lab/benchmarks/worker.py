"""The fresh process in which one measurement is made: `python -m lab.benchmarks.worker RIVAL ROW SIZE EFFORT`."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from lab.benchmarks.effort import BY_NAME
from lab.benchmarks.programs import measure


def main(rival: str, row: str, size: str, effort: str) -> None:
    """Print the sample as one line of JSON."""
    sample = measure(rival, row, int(size), BY_NAME[effort])
    print(json.dumps(asdict(sample)), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
