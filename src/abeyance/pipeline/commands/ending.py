"""How every command with a result ends: what was found, and where it is; for a person, a program, or the browser."""

from __future__ import annotations

import argparse
import json
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

from abeyance.pipeline.results.directory import read_marker

__all__ = ["add_ending", "end"]


def add_ending(parser: argparse.ArgumentParser, *, report: bool = True) -> None:
    """Add --quiet and --json; and --open for a command that writes a report."""
    where = "report" if report else "result"
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--quiet", action="store_true", help=f"no progress, no summary: only the {where}'s path")
    how.add_argument("--json", action="store_true", help="print one JSON object, for programs, in place of the summary")
    if report:
        parser.add_argument("--open", action="store_true", help="open the report in the browser")


def end(args: argparse.Namespace, summary: Callable[[], None], report: Path | None = None) -> None:
    """Say what is in the result at `args.out` and where it is. `summary` prints what a person looks for first.

    The JSON object has the absolute paths `out` and `report` (null where there is none), and as `result` what the
    result's marker file records.
    """
    out = args.out.absolute()
    if args.json:
        paths = {"out": str(out), "report": None if report is None else str(report.absolute())}
        print(json.dumps({**paths, "result": read_marker(out)}, ensure_ascii=False))
    elif args.quiet:
        print(report or args.out)
    else:
        summary()
        print(f"\nReport: {report}" if report is not None else f"\nResult: {args.out}")
    if report is not None and args.open and not webbrowser.open(report.absolute().as_uri()):
        print(f"abeyance: no browser could be started: open {report} yourself", file=sys.stderr)
