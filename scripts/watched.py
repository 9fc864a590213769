"""Commands side by side, with a sign of life every few seconds: what each does, megabytes, seconds.

Knows what pip, Cython and setuptools print. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

_EVERY_SECONDS = 3.0
_KEPT_LINES = 40  # of what a command said, shown if it fails

_NEWS: list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]] = [
    (re.compile(r"Collecting ([^\s=<>!~;\[]+)"), lambda found: f"looking for {found[1]}"),
    (re.compile(r"Downloading (\S+)(?: \((.+)\))?"), lambda found: f"downloading {_short(found[1])}"),
    (re.compile(r"Using cached (\S+)"), lambda found: f"taking {_short(found[1])} from pip's cache"),
    (re.compile(r"Building wheel for (\S+)"), lambda found: f"unpacking {found[1]}"),
    (
        re.compile(r"Installing collected packages: (.+)"),
        lambda found: f"installing {_several(found[1].split(', '))}",
    ),
    (re.compile(r"\[\s*(\d+)/(\d+)\] Cythonizing"), lambda found: f"translating module {found[1]} of {found[2]} to C"),
    (re.compile(r"building '(\S+)' extension"), lambda found: f"compiling {found[1]}"),
]
_SIZE = re.compile(r"\((\d+(?:\.\d+)?) MB\)")


class Watched:
    """One command, told by `name`. Its output is kept, and read for news."""

    def __init__(self, name: str, command: Sequence[str | Path], **environment: str) -> None:
        self.name = name
        self.command = [str(part) for part in command]
        self.news = "starting"
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._environment = environment
        self._process: subprocess.Popen[str] | None = None
        self._downloads = Path()
        self._file = ""  # that it downloads now
        self._megabytes = 0.0

    def run(self, folder: Path) -> int:
        """Run it to its end, with temporary files of its own below `folder`; return its exit status."""
        with tempfile.TemporaryDirectory(dir=folder, ignore_cleanup_errors=True) as name:
            self._downloads = Path(name)
            with subprocess.Popen(
                self.command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                env={**os.environ, **self._environment, "TMPDIR": name, "PYTHONUNBUFFERED": "1"},
            ) as self._process:
                assert self._process.stdout is not None
                for line in self._process.stdout:
                    self._hear(line.strip())
            return self._process.returncode

    def stop(self) -> None:
        """End it, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def _hear(self, line: str) -> None:
        if line:
            self.lines.append(line)
        for pattern, words in _NEWS:
            found = pattern.match(line)
            if found is None:
                continue
            self.news = words(found)
            self._file = _file_name(found[1]) if self.news.startswith("downloading") else ""
            size = _SIZE.search(line)
            self._megabytes = float(size[1]) if size is not None else 0.0

    def __str__(self) -> str:
        if not self._file or not self._megabytes:
            return f"{self.name}: {self.news}"
        there = 0
        with contextlib.suppress(OSError):  # pip moves it away at this moment
            there = max((file.stat().st_size for file in self._downloads.glob(f"*/{self._file}")), default=0)
        if there / 1e6 > 0.999 * self._megabytes:  # pip says nothing more of it for a while
            return f"{self.name}: unpacking {_short(self._file)}"
        return f"{self.name}: {self.news}, {there / 1e6:.0f} of {self._megabytes:.0f} MB"


def run_all(watched: Sequence[Watched], folder: Path, began: float) -> None:
    """Run all at once, and say every few seconds what they do; `began` is the moment that seconds count from.

    Where one fails the others are ended, and this process ends with what it said.
    """
    status: dict[Watched, int] = {}

    def work(one: Watched) -> None:
        status[one] = one.run(folder)

    threads = [threading.Thread(target=work, args=(one,), daemon=True) for one in watched]
    for thread in threads:
        thread.start()
    told = 0.0
    try:
        while any(thread.is_alive() for thread in threads) and not any(status.values()):
            time.sleep(0.1)
            running = [one for one in watched if one not in status]
            if running and time.monotonic() - told >= _EVERY_SECONDS:
                told = time.monotonic()
                say("; ".join(map(str, running)), began, passing=True)
    finally:
        for one in watched:
            one.stop()
        for thread in threads:
            thread.join()
    failed = next((one for one in status if status[one] != 0), None)  # the first to end so
    if failed is not None:
        print("\n".join(("", *failed.lines)), file=sys.stderr)
        raise SystemExit(f"set-up: error: {failed.name}: {' '.join(failed.command)} failed; its last words are above")


def say(what: str, began: float, *, passing: bool = False) -> None:
    """One line with its seconds; a `passing` one is overwritten by the next, on a terminal."""
    line = f"set-up: {time.monotonic() - began:4.0f} s  {what}"
    if sys.stdout.isatty():
        line = f"\r\x1b[K{line[: os.get_terminal_size().columns - 1] if passing else line}"
    print(line, end="" if passing and sys.stdout.isatty() else "\n", flush=True)


def _file_name(address: str) -> str:
    return address.rpartition("/")[2]


def _short(address: str) -> str:
    """A distribution's name and version, of the name of its file."""
    return "-".join(_file_name(address).removesuffix(".tar.gz").split("-")[:2])


def _several(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{len(names)} packages"
