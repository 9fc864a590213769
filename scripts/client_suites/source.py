"""Where a suite comes from: a folder, a git repository that the caller names, or a package of npm."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path


class SuiteError(Exception):
    """A suite cannot be had or run here; the text says why."""


def take(given: str, folder: Path) -> str:
    """Put a folder, or a git repository's newest commit, into `folder`; return what is known of its version."""
    shutil.rmtree(folder, ignore_errors=True)
    if Path(given, ".git").exists() or not Path(given).is_dir() or Path(given, "HEAD").exists():
        run(["git", "clone", "--quiet", "--depth=1", given, str(folder)])
        return run(["git", "-C", str(folder), "log", "-1", "--format=%h of %cs"]).strip()
    shutil.copytree(given, folder, symlinks=True)
    return given


def take_from_npm(package: str, inside: str, folder: Path) -> str:
    """Put what a package of npm has below `inside` into `folder`; return its version."""
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        packed = run(["npm", "pack", "--silent", package], Path(temporary)).split()[-1]
        with tarfile.open(Path(temporary, packed)) as archive:
            archive.extractall(temporary, filter="data")
        shutil.move(Path(temporary, "package", inside), folder)
    return packed.removesuffix(".tgz")


def run(command: list[str], folder: Path | None = None) -> str:
    """Run a command; raise `SuiteError` where it is missing or fails."""
    if shutil.which(command[0]) is None:
        raise SuiteError(f"there is no {command[0]} on the PATH")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        tail = " ".join((done.stdout + done.stderr).split())[-800:]
        raise SuiteError(f"{' '.join(command)} failed: {tail}")
    return done.stdout
