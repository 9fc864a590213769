"""The command `abeyant`.

Errors that a user can fix are one line and exit status 2; `--debug`, anywhere on the line, adds the traceback.
Exit status 1: the standard output cannot be written; a result, where there is one, is complete. Ctrl-C: 130. Exit
status 141: the reader of the standard output closed it, as `head` does.
"""

from __future__ import annotations

import argparse
import io
import os
import platform
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TextIO

import abeyant
from abeyant import _interpreted
from abeyant.command_line import CommandParser
from abeyant.ending import OutputError, add_json, discard_output, print_json, standard_output
from abeyant.engine import is_compiled
from abeyant.errors import AbeyantError
from abeyant.installation import install_command, lacking_by_extra

_READER_GONE: Final = 141
"""The exit status if the reader of our output is gone, as in shells for a command killed by SIGPIPE (128 + 13)."""

_OUTPUT_LOST: Final = 1
"""The exit status if the standard output cannot be written; the result, if the command writes one, is complete."""

_DESCRIPTION = """\
Delayed operations: what waited, for what, how long, and what expired.

  abeyant analyze logs/ --out result
      report what waited in Kafka brokers, and why
  abeyant replay logs/ --out result
      simulate other time-outs, ticks and wheel sizes
  abeyant model logs/ --out result
      compare produces with when they should have completed
  abeyant resolve orders.csv payments.csv --out result
      find what completed in time, and what expired
  abeyant stream orders/ payments/ --out result
      resolve operations from streams, Kafka topics included
  abeyant expired result --csv > late.csv
      list what expired
  abeyant pending result
      list what a stream is waiting for
  abeyant broker --brokers 3
      run a Kafka-compatible cluster in one process
  abeyant info
      show versions, and what is missing
"""


def _commands(words: Sequence[str]) -> Iterator[Callable[[Any], object]]:
    """Yield functions that each add a command to the parser; for `abeyant broker` only its own, to start sooner."""
    broker_only = next((word for word in words if not word.startswith("-")), "") == "broker"
    if not broker_only:
        from abeyant.pipeline.commands import analyze

        yield analyze.add_arguments
    from abeyant.window import command as broker

    yield broker.add_arguments
    if not broker_only:
        from abeyant.pipeline.commands import expired, model, pending, replay, resolve, stream

        for command in (resolve, stream, expired, pending, replay, model):
            yield command.add_arguments


def _parser(words: Sequence[str] = ()) -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="abeyant", description=_DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--version", action="version", version=f"abeyant {abeyant.__version__}")
    parser.set_defaults(debug=False)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add_arguments in _commands(words):
        add_arguments(commands)
    info = commands.add_parser(
        "info",
        help="what runs here, and what is missing",
        description="Print the versions in use, whether the engine is compiled, which Java Spark would get, "
        "and which extras are here.",
    )
    add_json(info)
    info.set_defaults(run=_info)
    return parser


def _info(args: argparse.Namespace) -> int:
    engine = "compiled" if is_compiled() else f"interpreted: {_interpreted.why()}"
    rows = [
        ("abeyant", abeyant.__version__),
        ("engine", engine),
        ("python", f"{platform.python_version()} ({sys.executable})"),
        ("spark", _version("pyspark")),
        ("java", _java()),
        ("extras", _extras()),
    ]
    if args.json:
        print_json(dict(rows))
        return 0
    with standard_output():
        for name, value in rows:
            print(f"{name:<10}{value}")
    return 0


def _version(distribution: str) -> str:
    import importlib.metadata

    try:
        return f"{distribution} {importlib.metadata.version(distribution)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {distribution}"


def _extras() -> str:
    """Return one line: the installed extras, the missing extras, and one command that installs the missing extras."""
    extras = lacking_by_extra()
    absent = {extra: names for extra, names in extras.items() if names}
    parts = [", ".join(extra for extra in extras if extra not in absent) or "none"]
    if absent:
        listed = ", ".join(f"{extra} ({', '.join(names)})" for extra, names in absent.items())
        parts += [f"missing: {listed}", f"to install: {install_command(*absent)}"]
    return "; ".join(parts)


def _java() -> str:
    from abeyant.pipeline.spark.java import find_java

    try:
        return str(find_java())
    except AbeyantError as error:
        return str(error)


def _of_system(error: OSError) -> str:
    """Return the message of an OSError, after its file name if it has one."""
    message = error.strerror or str(error) or type(error).__name__
    return message if error.filename is None else f"{error.filename}: {message}"


def _open_closed_streams() -> None:
    """Open the null device as stdout or stderr if that is None, because it was closed before Python started."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115  for as long as we run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    _open_closed_streams()
    words = sys.argv[1:] if arguments is None else arguments
    parser = _parser(words)
    if "_ARGCOMPLETE" in os.environ:  # set by the shell to complete a command line
        try:
            import argcomplete
        except ImportError:
            return 1  # completing a command line must not run the command
        argcomplete.autocomplete(parser)
    options = parser.parse_args(words)
    if not options.debug:
        warnings.showwarning = _show_warning
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as Python's stderr: no character may end the program
    try:
        status: int = options.run(options)
        with standard_output():
            pass  # flush here, so that a failure is reported
    except BrokenPipeError:
        # The reader closed the pipe, as `head` does. Python flushes its buffer at exit: send that to the null device.
        discard_output()
        return _READER_GONE
    except (AbeyantError, OSError) as error:
        if options.debug:
            raise
        print(f"abeyant: error: {error if isinstance(error, AbeyantError) else _of_system(error)}", file=sys.stderr)
        return _OUTPUT_LOST if isinstance(error, OutputError) else 2
    except KeyboardInterrupt as interrupt:  # its argument says which files are left behind
        if options.debug:
            raise
        print(": ".join(["abeyant: interrupted", *map(str, interrupt.args)]), file=sys.stderr)
        return 130
    return status


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print a warning as one line, without the file and line of our code."""
    print(f"abeyant: warning: {message}", file=sys.stderr)


if __name__ == "__main__":
    raise SystemExit(main())
