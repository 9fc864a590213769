"""Measure what each rule of `tables.resolve` costs beside the plain call, in processor time of the same run.

    make bench-rules        or: python -m lab.spark.rules [OPERATIONS]

Operations have one watch. There are as many keys as operations, and four times as many events. Each round runs the
plain call and then every rule. The figure of a rule is the median of its ratios to the plain call of the same round.
Target: at most 1.5.
"""

from __future__ import annotations

import resource
import statistics
import sys
from typing import Any, Final

import numpy as np
import pyarrow as pa

from abeyant import tables

__all__ = ["RULES", "measure"]

ROUNDS: Final = 5
TARGET: Final = 1.5
RULES: Final[dict[str, dict[str, Any]]] = {
    "plain": {},
    "count after_start": {"count": "after_start"},
    "combine sum": {"combine": "sum"},
    "combine last": {"combine": "last"},
    "holds at_deadline": {"holds": "at_deadline"},
    "serves oldest": {"serves": "oldest", "count": "after_start"},
    "serves newest": {"serves": "newest", "count": "after_start"},
    "details": {"details": True},
    "calendar": {"calendar": tables.Calendar("Mon-Fri 09:00-17:00")},
    "cancel_key": {},
    "extend_key": {},
    "pause_key": {},
}


def measure(operations: int, rounds: int = ROUNDS) -> dict[str, float]:
    """Return for each rule the median ratio of its processor time to the plain call's in the same round."""
    waits, events = _tables(operations)
    ratios: dict[str, list[float]] = {name: [] for name in RULES}
    for _ in range(rounds):
        plain = 0.0
        for name, rules in RULES.items():
            table = waits
            if name.endswith("_key"):
                table = waits.append_column(name, pa.array(np.char.add("x", _keys(operations, 5))))
            before = _processor()
            tables.resolve(table, events, unique_ids=True, **rules)
            took = _processor() - before
            plain = plain or took
            ratios[name].append(took / plain)
    return {name: statistics.median(some) for name, some in ratios.items()}


def _keys(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, count, count).astype("U")


def _tables(count: int) -> tuple[pa.Table, pa.Table]:
    dice = np.random.default_rng(1)
    day = 86_400_000_000

    def times(size: int) -> pa.Array:
        return pa.array(dice.integers(1_772_409_600_000_000, 1_772_409_600_000_000 + 7 * day, size)).cast(
            pa.timestamp("us", "UTC")
        )

    waits = {
        "op_id": np.arange(count).astype("U"),
        "key": _keys(count, 2),
        "start": times(count),
        "timeout_ms": np.full(count, day // 1000),
    }
    keys = np.concatenate([_keys(count, seed) for seed in range(3, 7)])
    return pa.table(waits), pa.table({"key": keys, "at": times(4 * count)})


def _processor() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measure, and print the ratio of each rule."""
    for name, ratio in measure(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000).items():
        print(f"{name:20}{ratio:6.2f}{'' if ratio <= TARGET else f'  above {TARGET}'}")


if __name__ == "__main__":
    main()
