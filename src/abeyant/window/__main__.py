"""`python -m abeyant.window PID`: open a window in a program that runs without one, by remote debugging."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from abeyant.errors import AbeyantError

_PATIENCE = 30.0  # seconds: the program runs the script between two bytecodes of its main thread
_ORDER = "from abeyant.window.attached import attached\nattached({answer!r}, {port!r})\n"


def attach(pid: int, port: int) -> str:
    """Open a window in the process `pid`, on all of its timers and purgatories; return the window's address.

    Raises AbeyantError if this Python is older than 3.14, or if the process refuses or does not respond in 30 s.
    """
    remote_exec: Any = getattr(sys, "remote_exec", None)
    if remote_exec is None:
        version = ".".join(map(str, sys.version_info[:2]))
        raise AbeyantError(
            f"Python {version} cannot attach to a process: use 3.14 or call abeyant.window.serve(...) in the program"
        )
    with tempfile.TemporaryDirectory(prefix="abeyant-window-") as folder:
        answer, order = Path(folder, "answer.json"), Path(folder, "order.py")
        order.write_text(_ORDER.format(answer=str(answer), port=port), encoding="utf-8")
        try:
            remote_exec(pid, str(order))
        except (OSError, RuntimeError, ValueError) as error:
            raise AbeyantError(f"cannot attach to process {pid}: {error}") from None
        ends = time.monotonic() + _PATIENCE
        while not answer.exists():
            if time.monotonic() > ends:
                raise AbeyantError(
                    f"process {pid} has not answered within {_PATIENCE:g} s: is its main thread blocked?"
                )
            time.sleep(0.05)
        told: dict[str, str] = json.loads(answer.read_text(encoding="utf-8"))
    if "url" not in told:
        raise AbeyantError(f"process {pid}: {told['error']}")
    return told["url"]


def main(arguments: list[str] | None = None) -> int:
    """Attach to the process and print the window's address. Return 0; or print an error in one line and return 2."""
    parser = argparse.ArgumentParser(prog="python -m abeyant.window", description="Open a window in a running program.")
    parser.add_argument("pid", type=int, metavar="PID", help="process id of the program")
    parser.add_argument("--port", type=int, default=0, help="port of the window; 0 picks a free one (default: 0)")
    args = parser.parse_args(arguments)
    try:
        print(attach(args.pid, args.port))
    except AbeyantError as error:
        print(f"abeyant: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
