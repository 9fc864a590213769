"""The command line."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from lab import peers
from lab.benchmarks.catalogue import ROWS
from lab.runner import ROOT


def parser() -> argparse.ArgumentParser:
    """What `python -m lab.benchmarks` takes."""
    made = argparse.ArgumentParser(
        prog="python -m lab.benchmarks",
        description=(
            "Measure Abeyant's timers and purgatory beside their peers. A full run writes "
            "build/bench/results.jsonl and docs/benchmarks.md; one with --quick, --rows, --rivals or --sizes "
            "writes into build/bench only, unless --update puts its figures in place of the last full run's."
        ),
        epilog=f"rows: {', '.join(ROWS)}. rivals: {', '.join(peers.LABELS)}.",
    )
    made.add_argument("--quick", action="store_true", help="small sizes, few rounds: does it work, under 2 minutes")
    made.add_argument("--rows", type=_names(ROWS), metavar="A,B", help="only these rows")
    made.add_argument("--rivals", type=_names(peers.LABELS), metavar="A,B", help="only these rivals")
    made.add_argument("--sizes", type=_sizes, metavar="N,M", help="only these sizes")
    made.add_argument("--update", action="store_true", help="put the figures into the last full run's, and its page")
    made.add_argument("--resume", action="store_true", help="go on with the same run, which was interrupted")
    made.add_argument("--render", action="store_true", help="measure nothing: write the last full run's page anew")
    made.add_argument("--list", action="store_true", help="measure nothing: say what would be")
    made.add_argument("--effort", choices=["full", "quick", "tiny"], help=argparse.SUPPRESS)
    made.add_argument("--out", type=Path, default=ROOT / "build" / "bench", help="for results (build/bench)")
    made.add_argument("--docs", type=Path, default=ROOT / "docs", help="for the page of a full run (docs)")
    return made


class _names:  # noqa: N801  (argparse shows a type's name)
    def __init__(self, known: Iterable[str]) -> None:
        self._known = list(known)

    def __call__(self, text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in self._known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(self._known)}")
        return names


def _sizes(text: str) -> list[int]:
    try:
        return [int(size.replace("_", "")) for size in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"sizes are whole numbers, as in 0,100000; not {text!r}") from None
