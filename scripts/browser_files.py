"""What docs/browser/wheel.html needs beside it: Pyodide from npm, and this package as a pure wheel.

    python3 -m scripts.browser_files build/site/browser

Nothing of it is committed. `make docs` calls this; where there is no npm it says so, and so does the page.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.set_up import ROOT

PYODIDE = "pyodide@314.0.7"
NEEDED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")


class NotHadError(Exception):
    """Something cannot be had; the message says what, and why."""


def run(*command: str | Path, **environment: str) -> None:
    """Run a command; raise NotHadError with the last of what it said where it fails."""
    ran = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if ran.returncode:
        raise NotHadError(f"{command[0]} failed: {(ran.stdout.strip().splitlines() or ['it said nothing'])[-1]}")


def fetch_pyodide(folder: Path) -> None:
    """Put Pyodide's files into `folder`."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotHadError("no npm on this machine, from which Pyodide comes")
    with tempfile.TemporaryDirectory() as place:
        run(npm, "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", place, PYODIDE)
        folder.mkdir(parents=True, exist_ok=True)
        for name in NEEDED:
            shutil.copy(Path(place, "node_modules", "pyodide", name), folder)


def build_wheel(folder: Path) -> Path:
    """Build the wheel that any Python takes, of the source alone, into `folder`; return it."""
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        import setuptools  # noqa: F401

        pip.append("--no-build-isolation")  # what builds it is there already, pinned
    except ImportError:
        pass
    run(*pip, "--wheel-dir", folder, ROOT, ABEYANT_NO_COMPILE="1")
    return next(folder.glob("abeyant-*-py3-none-any.whl"))


def main() -> None:
    """Do what the module's docstring says."""
    folder = Path(sys.argv[1]).resolve()
    try:
        fetch_pyodide(folder / "pyodide")
        build_wheel(folder).rename(folder / "abeyant.whl")
    except NotHadError as error:
        print(f"browser_files: the page that runs the wheel in the browser will say that it cannot: {error}")


if __name__ == "__main__":
    main()
