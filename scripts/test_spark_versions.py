"""Run the pipeline's tests with the oldest and the newest patch of every minor version of PySpark that is declared.

    python3 -m scripts.test_spark_versions                   all that PyPI has
    python3 -m scripts.test_spark_versions 4.1.0 4.2.1       those
    python3 -m scripts.test_spark_versions --quick           a few tests, with the oldest
    python3 -m scripts.test_spark_versions -- tests/pipeline   these tests only; what follows `--` goes to pytest

Each but the installed one is put in a folder of its own, `.venv-spark-X.Y.Z` (0.5 GB), which comes before the
environment on Python's path; all else is the same. Ends with a table, a line for each. Exit status 1 where anything
failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from importlib.metadata import version as installed
from typing import NamedTuple

from scripts.set_up import ROOT
from scripts.test_pythons import last

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
# As set_up does: stored in its wheel as it is.
STORED = "--config-settings=--build-option=--compression=stored"
UNPACK = ("-q", "--no-deps", "--no-compile", "--no-build-isolation", STORED)
PIPELINE = ("-m", "not slow", "tests/pipeline")
QUICK = ("tests/pipeline/test_both_sessions.py", "-k", "classic")
# PySpark 4.1 leaves sockets to the garbage collector.
LENIENT = ("-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning")


class Range(NamedTuple):
    """The versions that pyproject.toml declares: from `oldest`, below `end`."""

    oldest: tuple[int, ...]
    end: tuple[int, ...]


def numbers(version: str) -> tuple[int, ...]:
    """The version as numbers, to compare it."""
    return tuple(int(part) for part in version.split("."))


def declared() -> Range:
    """What pyproject.toml says of PySpark."""
    found = re.search(r'"pyspark>=([\d.]+),<([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found is not None
    return Range(numbers(found[1]), numbers(found[2]))


def oldest() -> str:
    """The first patch of the oldest minor version that is declared."""
    return ".".join(map(str, (*declared().oldest, 0, 0)[:3]))


def ends_of_minors(versions: list[str]) -> list[str]:
    """The oldest and the newest patch of each declared minor version among them, in order."""
    first, end = declared()
    patches = sorted(numbers(version) for version in versions if re.fullmatch(r"\d+\.\d+\.\d+", version))
    minors: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
    for patch in patches:
        if first <= patch < end:
            minors.setdefault(patch[:2], []).append(patch)
    wanted = dict.fromkeys(patch for minor in minors.values() for patch in (minor[0], minor[-1]))
    return [".".join(map(str, patch)) for patch in wanted]


def published() -> list[str]:
    """All versions of PySpark that pip finds. Raises SystemExit with its last word where it finds none."""
    ran = subprocess.run([*PIP, "index", "versions", "pyspark"], capture_output=True, text=True, check=False)
    found = re.search(r"Available versions: (.+)", ran.stdout)
    if found is None:
        raise SystemExit(f"pip does not say which versions of pyspark there are: {last(ran.stdout + ran.stderr)}")
    return found[1].split(", ")


def prepare(version: str) -> str:
    """The folder that has this PySpark, made if need be; empty for the one that is installed. Raises RuntimeError."""
    if version == installed("pyspark"):
        return ""
    folder = ROOT / f".venv-spark-{version}"
    # With a newer one their streams are refused.
    also = ["pyarrow<26"] if (4, 1) <= numbers(version) < (4, 1, 4) else []
    whole = folder / f"pyspark-{version}.dist-info" / "RECORD"  # pip moves the folders when all of them are there
    if not whole.exists():
        shutil.rmtree(folder, ignore_errors=True)
        command = [*PIP, "install", *UNPACK, "--target", str(folder), f"pyspark=={version}", *also]
        ran = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"pip: {last(ran.stdout)}")
    return str(folder)


def test(folder: str, tests: list[str]) -> tuple[bool, str]:
    """Run the tests; whether they passed, and pytest's last word with its seconds."""
    path = os.pathsep.join(filter(None, (folder, str(ROOT / "src"))))
    # Not one archive of classes (180 MB) for each version in the user's cache.
    environment = {**os.environ, "PYTHONPATH": path, "ABEYANT_CLASS_ARCHIVE": "off"}
    environment.pop("SPARK_HOME", None)
    options = ("-q", "-p", "no:cacheprovider", *LENIENT)
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if ran.returncode:
        print(ran.stdout)
    return ran.returncode == 0, last(ran.stdout)


def line(version: str, tests: list[str]) -> tuple[bool, list[str]]:
    """Test with one version, and tell of it while it goes on; whether all passed, and its line of the table."""
    began = time.monotonic()
    print(f"pyspark {version}: fetching, unless it is there ...", flush=True)
    try:
        folder = prepare(version)
    except RuntimeError as error:
        return False, [version, f"FAILED: {error}"]
    print(f"pyspark {version}: {time.monotonic() - began:.0f} s, testing ...", flush=True)
    fine, said = test(folder, tests)
    return fine, [version, said if fine else f"FAILED: {said}"]


def table(rows: list[list[str]]) -> str:
    """The rows in two columns, a heading above."""
    every = [["PySpark", "the pipeline's tests"], *rows]
    width = max(len(row[0]) for row in every)
    return "\n".join(f"{version.ljust(width)}  {said}" for version, said in every)


def main() -> None:
    """Do what the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="as 4.1.0; by default of each declared minor the oldest and newest")
    parser.add_argument("--quick", action="store_true", help="few tests, with the oldest")
    own = sys.argv[1:]
    at = own.index("--") if "--" in own else len(own)
    options = parser.parse_args(own[:at])
    versions = options.versions or ([oldest()] if options.quick else ends_of_minors(published()))
    tests = own[at + 1 :] or list(QUICK if options.quick else PIPELINE)
    done = [line(version, tests) for version in versions]
    print(table([row for _, row in done]))
    raise SystemExit(0 if all(fine for fine, _ in done) else 1)


if __name__ == "__main__":
    main()
