"""Another process that holds the claim to a place, as one that writes there does."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["another_holds"]

HOLD = """
import sys
from pathlib import Path
from abeyant.pipeline.results.leases.local import acquire
acquire(Path(sys.argv[1]), Path(sys.argv[2]), "test")
print("holds", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_holds(claim: Path, out: Path) -> Iterator[int]:
    """Let another process hold a claim while the block runs, and kill it then; gives its number."""
    call = [sys.executable, "-c", HOLD, str(claim), str(out)]
    with subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "holds\n"
            yield process.pid
        finally:
            process.kill()
