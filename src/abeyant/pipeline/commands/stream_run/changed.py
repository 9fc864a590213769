"""Find files that changed after a stream read them: Spark reads a file once, so rows added later are in no table."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from abeyant.pipeline.spark.location import is_uri

__all__ = ["ChangedFiles"]

_EVERY_SECONDS: Final = 30.0
_LOCAL: Final = "file:"


class ChangedFiles:
    """Finder of files that changed after a stream read them. It needs the stream's checkpoint on this machine."""

    def __init__(self, checkpoint: str, *, quiet: bool = False, clock: Callable[[], float] = time.monotonic) -> None:
        self.found: set[str] = set()
        """The paths of files found to have changed."""
        self._sources = None if is_uri(checkpoint) else Path(checkpoint) / "sources"
        self._quiet = quiet
        self._clock = clock
        self._next = clock() + _EVERY_SECONDS

    def look_now_and_then(self) -> None:
        """Call `look` if half a minute has passed since the last call."""
        if self._clock() >= self._next:
            self.look()
            self._next = self._clock() + _EVERY_SECONDS

    def look(self) -> None:
        """Print a message to stderr for each file that is newly found to have changed. O(files that were read)."""
        for path, taken_ms in self._read_files():
            with suppress(OSError):
                changed = Path(path).stat().st_mtime_ns // 1_000_000 != taken_ms
                if changed and path not in self.found:
                    self.found.add(path)
                    if not self._quiet:
                        print(f"abeyant: {describe(path)}", file=sys.stderr, flush=True)

    def _read_files(self) -> Iterator[tuple[str, int]]:
        """Yield each local file that the stream has read, with its modification time at that time, in ms since 1970."""
        logs = sorted(self._sources.glob("*/*")) if self._sources is not None and self._sources.is_dir() else []
        for log in logs:
            if log.name.removesuffix(".compact").isdecimal():
                with suppress(OSError, ValueError, KeyError, TypeError):
                    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
                        entry = json.loads(line)
                        uri = str(entry["path"])
                        if uri.startswith(_LOCAL):
                            yield "/" + unquote(uri.removeprefix(_LOCAL)).lstrip("/"), int(entry["timestamp"])


def describe(path: str) -> str:
    """Return the message about a changed file: which rows are missing, and what to do."""
    return (
        f"{path} has changed since the stream read it: rows that were added later are in no table; "
        "put new rows into a new file, and move only complete files into the directory"
    )
