"""What docs/browser/wheel.html needs beside it: the drawing, Pyodide from npm, and this package as a pure wheel.

    python3 -m scripts.browser_files build/site/browser

Nothing of it is committed. `make docs` calls this. What cannot be had it prints, and writes into `missing.txt`, which
the page shows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.set_up import ROOT

PYODIDE = "pyodide@314.0.7"
NEEDED = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip", "pyodide-lock.json")


MISSING = "missing.txt"
_ERROR = re.compile(r"(npm )?(error|ERROR)\b")


class NotHadError(Exception):
    """Something cannot be had; the message says what, and why."""


def run(what: str, *command: str | Path, **environment: str) -> None:
    """Run a command; where it fails raise NotHadError with `what` and the first error that it printed."""
    ran = subprocess.run(
        [str(part) for part in command], cwd=ROOT, env={**os.environ, **environment},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if ran.returncode:
        lines = [line.strip() for line in ran.stdout.splitlines() if line.strip()] or ["it printed nothing"]
        first = next((line for line in lines if _ERROR.match(line)), lines[-1])
        raise NotHadError(f"{what} failed: {first}")


def copy_drawing(folder: Path) -> None:
    """Put the drawing of the window and of reports into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("js", "css"):
        shutil.copy(ROOT / "src" / "abeyant" / "pages" / f"wheel.{kind}", folder / f"drawing.{kind}")


def fetch_pyodide(folder: Path) -> None:
    """Put Pyodide's files into `folder`."""
    npm = shutil.which("npm")
    if npm is None:
        raise NotHadError("no npm on this machine, from which Pyodide comes")
    with tempfile.TemporaryDirectory() as place:
        options = ["--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", place]
        run("npm install", npm, "install", *options, PYODIDE)
        folder.mkdir(parents=True, exist_ok=True)
        for name in NEEDED:
            shutil.copy(Path(place, "node_modules", "pyodide", name), folder)


def build_wheel(folder: Path) -> Path:
    """Build the wheel that any Python takes, of the source alone, into `folder`; return it."""
    # Isolated: pip fetches what pyproject.toml builds with. A venv of Python 3.11 has a setuptools that is too old.
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    run("building the pure wheel", *pip, "--wheel-dir", folder, ROOT, ABEYANT_NO_COMPILE="1")
    built = next(folder.glob("abeyant-*-py3-none-any.whl"), None)
    if built is None:
        raise NotHadError("building the pure wheel made none")
    return built


def main() -> None:
    """Do what the module's docstring says."""
    folder = Path(sys.argv[1]).resolve()
    (folder / MISSING).unlink(missing_ok=True)
    copy_drawing(folder)
    try:
        fetch_pyodide(folder / "pyodide")
        build_wheel(folder).rename(folder / "abeyant.whl")
    except NotHadError as error:
        (folder / MISSING).write_text(f"{error}\n", encoding="utf-8")
        print(f"browser_files: the page that runs the wheel in the browser will say that it cannot: {error}")


if __name__ == "__main__":
    main()
