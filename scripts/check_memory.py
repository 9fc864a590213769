"""Look for errors of memory in the compiled core: every test of it, under two checkers. Linux, gcc.

    make sanitize                                       or, in an environment that `make test` has set up:
    .venv/bin/python scripts/check_memory.py [--checker address|debug] [tests...]

`address`: compiled with AddressSanitizer and UndefinedBehaviorSanitizer, and Python's own allocator switched off,
so that every object is a block of its own: a use after free, a read beyond an array's end, a second free end the
run there and then with a trace. `debug`: compiled as ever, under PYTHONMALLOC=debug, which fences every block and
checks the fences when it is freed, and that the GIL is held.

Works on a copy, so the checkout stays as it is. Without tests named, all of the rooms that are compiled: the thread
stress test included. Some ten minutes on two cores. The exit code is 1
where a checker or a test found something.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("scripts", "src", "tests", "examples", "setup.py", "pyproject.toml", "README.md", "LICENSE")
TESTS = ("tests/engine", "tests/kernels", "tests/timer", "tests/purgatory")
LEFT_OUT = (  # by default: they run interpreted copies, in which there is nothing to find
    "--ignore=tests/engine/test_mutants.py",
    "--deselect=tests/purgatory/test_stress.py::test_the_stress_test_notices_what_is_missing",
)

SANITIZERS = "-fsanitize=address,undefined -fno-sanitize-recover=undefined"
BUILD = {
    "address": {"ABEYANT_CFLAGS": f"{SANITIZERS} -fno-omit-frame-pointer -g -O1", "LDFLAGS": SANITIZERS},
    "debug": {},
}
# The soak counts blocks and resident memory, which the sanitizer's own allocator changes.
UNFIT = {"address": ["--ignore=tests/engine/test_memory.py"], "debug": []}
# CPython keeps what it made until the process ends, on purpose: that is no leak.
RUN = {
    "address": {
        "PYTHONMALLOC": "malloc",
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    },
    "debug": {"PYTHONMALLOC": "debug"},
}


def sanitizer_libraries() -> str:
    """What has to be loaded before Python is, for it was not linked with the sanitizers."""
    names = ("libasan.so", "libubsan.so")
    found = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in names
    ]
    for name, path in zip(names, found, strict=True):
        if not Path(path).is_absolute():
            raise SystemExit(f"check_memory: error: gcc has no {name}; install its sanitizer libraries")
    return " ".join(found)


def compiled_copy(folder: Path, checker: str) -> None:
    """The checkout, without what was built in it, compiled in `folder` for the checker."""
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, folder / name)
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
        cwd=folder, env={**os.environ, **BUILD[checker]}, check=True,
    )  # fmt: skip
    if not list(folder.glob("src/abeyant/engine/*.so")):
        raise SystemExit("check_memory: error: nothing was compiled, so there is nothing to check; see above")


def check(checker: str, tests: list[str]) -> bool:
    """Run tests under one checker; whether it or a test found something."""
    with tempfile.TemporaryDirectory(prefix="abeyant-check-") as name:
        folder = Path(name)
        print(f"check_memory: {checker}: compiling", flush=True)
        compiled_copy(folder, checker)
        environment = {**os.environ, **RUN[checker], "PYTHONPATH": str(folder / "src")}
        if checker == "address":
            environment["LD_PRELOAD"] = sanitizer_libraries()
            for options in (
                "ASAN_OPTIONS",
                "UBSAN_OPTIONS",
            ):  # into files: pytest keeps what it prints
                environment[options] += f":log_path={folder / 'found'}"
        print(f"check_memory: {checker}: running", flush=True)
        command = [sys.executable, "-m", "pytest", *tests, *UNFIT[checker]]
        failed = subprocess.run(command, cwd=folder, env=environment).returncode != 0
        reports = sorted(folder.glob("found.*"))
        for report in reports:
            print(report.read_text(errors="replace"), file=sys.stderr)
        return failed or bool(reports)


def main() -> int:
    """Do what the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--checker", choices=BUILD, action="append", help="this one only; by default all")
    parser.add_argument("tests", nargs="*", default=[*TESTS, *LEFT_OUT], help="as for pytest")
    options = parser.parse_args()
    failed = [checker for checker in options.checker or BUILD if check(checker, options.tests)]
    for checker in failed:
        print(f"check_memory: {checker}: found something, see above", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
