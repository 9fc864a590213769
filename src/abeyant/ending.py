"""Print a command's result and its path, as text or as JSON; open its report in the browser."""

from __future__ import annotations

import argparse
import json
import os
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

from abeyant.errors import AbeyantError

__all__ = [
    "OutputError",
    "add_json",
    "add_open",
    "add_output_options",
    "discard_output",
    "end",
    "print_json",
    "print_json_text",
    "standard_output",
]


def add_output_options(parser: argparse.ArgumentParser, *, report: bool = True) -> None:
    """Add --quiet and --json, which may be combined; for a command that writes a report also --open and --title."""
    noun = "report" if report else "result"
    parser.add_argument("--quiet", action="store_true", help=f"no progress, no summary: only the {noun}'s path")
    add_json(parser)
    if report:
        add_open(parser)
        parser.add_argument(
            "--title", type=_title, metavar="TEXT", help="title of the report (default: what was found, in one line)"
        )


def _title(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text!r} is no title: give one line of printable text")
    return text.strip()


def add_json(parser: argparse._ActionsContainer) -> None:
    """Add --json."""
    parser.add_argument("--json", action="store_true", help="print one JSON object, for programs, in place of text")


def add_open(parser: argparse.ArgumentParser) -> None:
    """Add --open."""
    parser.add_argument("--open", action="store_true", help="open the report in the browser")


def end(
    args: argparse.Namespace,
    summary: Callable[[], None],
    *,
    out: Path | str,
    report: Path | str | None = None,
    found: Mapping[str, Any],
) -> None:
    """Print a command's result and path as text, as JSON (--json), or only the path (--quiet). --open opens the report.

    `summary` prints the result as text. The JSON object has the absolute paths `out` and `report` (null without a
    report), and in `result` the mapping `found`. URIs are printed unchanged.
    """
    with standard_output(out):
        if args.json:
            report_path = None if report is None else _absolute(report)
            print_json_text(_json({"out": _absolute(out), "report": report_path, "result": found}))
        elif args.quiet:
            print(report or out)
        else:
            summary()
            print(f"\nReport: {report}" if report is not None else f"\nResult: {out}")
    if report is None or not args.open:
        return
    if isinstance(report, str):
        print(f"abeyant: a browser cannot open {report}: copy it to this machine first", file=sys.stderr)
    else:
        # Keep the browser's own output out of what a program reads.
        with _output_to_errors() if args.json or args.quiet else nullcontext():
            opened = webbrowser.open(report.absolute().as_uri())
        if not opened:
            print(f"abeyant: no browser could be started: open {report} yourself", file=sys.stderr)


class OutputError(AbeyantError):
    """Standard output cannot be written. The command's work is done: its result, if it writes one, is complete."""


@contextmanager
def standard_output(out: Path | str | None = None) -> Iterator[None]:
    """Raise OutputError if printing in the `with` block fails. Its message says that `out` is complete."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        complete = "" if out is None else f"{out} is complete, but "
        raise OutputError(f"{complete}the standard output cannot be written: {error.strerror}") from error


def discard_output() -> None:
    """Redirect the standard output to the null device, so that Python's flush at exit does not fail again."""
    with suppress(OSError, ValueError):
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, sys.stdout.fileno())
        os.close(null_device)


@contextmanager
def _output_to_errors() -> Iterator[None]:
    """Redirect standard output to standard error in the `with` block, also of processes that it starts."""
    sys.stdout.flush()
    output = os.dup(1)
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(output, 1)
        os.close(output)


def _absolute(place: Path | str) -> str:
    return place if isinstance(place, str) else str(place.absolute())


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON object on one line."""
    with standard_output():
        print_json_text(_json(document))


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False)


def print_json_text(text: str) -> None:
    """Print JSON text as a line. Escape its characters if standard output cannot encode them."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text))
    print(text)
