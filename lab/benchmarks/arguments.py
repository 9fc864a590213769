"""The command line of `python -m lab.benchmarks`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from lab import peers
from lab.benchmarks.catalogue import ROWS
from lab.runner import ROOT


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of `python -m lab.benchmarks`."""
    parser = argparse.ArgumentParser(
        prog="python -m lab.benchmarks",
        description=(
            "Measure Abeyant's timers and purgatory beside their peers. A full run writes "
            "build/bench/results.jsonl and docs/benchmarks.md; one with --quick, --rows, --rivals or --sizes "
            "writes to build/bench only; with --update its figures replace those of the last full run."
        ),
        epilog=f"rows: {', '.join(ROWS)}. rivals: {', '.join(peers.LABELS)}.",
    )
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds; under 2 minutes")
    parser.add_argument("--rows", type=_names(ROWS), metavar="A,B", help="only these rows")
    parser.add_argument("--rivals", type=_names(peers.LABELS), metavar="A,B", help="only these rivals")
    parser.add_argument("--sizes", type=_sizes, metavar="N,M", help="only these sizes")
    parser.add_argument("--update", action="store_true", help="replace these figures in the last full run")
    parser.add_argument("--resume", action="store_true", help="continue the interrupted run")
    parser.add_argument("--render", action="store_true", help="measure nothing; rewrite the last full run's page")
    parser.add_argument("--list", action="store_true", help="measure nothing; list what would be measured")
    parser.add_argument("--effort", choices=["full", "quick", "tiny"], help=argparse.SUPPRESS)
    parser.add_argument(
        "--out", type=Path, default=ROOT / "build" / "bench", help="folder of the results (build/bench)"
    )
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of a full run's page (docs)")
    return parser


class _names:  # noqa: N801  (argparse shows a type's name)
    def __init__(self, known: Iterable[str]) -> None:
        self._known = list(known)

    def __call__(self, text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in self._known:
                raise argparse.ArgumentTypeError(f"unknown: {name!r}; choose from {', '.join(self._known)}")
        return names


def _sizes(text: str) -> list[int]:
    try:
        return [int(size.replace("_", "")) for size in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"sizes are whole numbers, as in 0,100000; not {text!r}") from None
