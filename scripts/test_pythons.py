"""Run the tests of the rooms below Spark, and CPython's asyncio tests on our loop, on every Python that is declared.

    python3 -m scripts.test_pythons                 all that this machine has, or Debian
    python3 -m scripts.test_pythons 3.13 3.14t      those
    python3 -m scripts.test_pythons graalpy         fewer tests, on GraalPy from Maven Central (graalpy.py)
    python3 -m scripts.test_pythons --quick         few tests, on the oldest and the newest but the running one
    python3 -m scripts.test_pythons -- tests/timer  these tests only; what follows `--` goes to pytest

Looks for `python3.X` (and `python3.Xt`, free-threaded) on the PATH, among pyenv's, and in a Debian root that is made
for it (debian_pythons.py). Each but the running one gets an environment, `.venv-3.X`, with the tests' pinned
requirements. Each runs the tests twice: interpreted, and compiled (the others without optimisation). Ends with a table,
a line for each, or why it was left out. Exit status 1 where anything failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

from scripts import debian_pythons, graalpy
from scripts.browser_files import NotHadError
from scripts.set_up import ROOT, requirements

BELOW_SPARK = (
    "tests/engine", "tests/kernels", "tests/timer", "tests/idle", "tests/purgatory", "tests/resolver", "tests/aio",
    "tests/test_never_made.py",
)  # fmt: skip
QUICK = (
    "tests/timer/test_manual.py",
    "tests/timer/test_system.py",
    "tests/timer/test_subinterpreters.py",
    "tests/idle/test_idle.py",
    "tests/purgatory/test_laws.py",
    "tests/aio/test_loop.py",
    "tests/aio/test_newer_asyncio.py",
)
# What those tests import, and what compiles us; of each the version that is pinned.
NEEDED = (
    "aiohttp", "anyio", "cython", "httpx", "hypothesis", "nest-asyncio", "nest-asyncio2", "pytest", "pytest-asyncio",
    "pytest-xdist", "setuptools", "starlette", "uvicorn", "uvloop",
)  # fmt: skip
ASK = "import sys, sysconfig; t = sysconfig.get_config_var('Py_GIL_DISABLED'); print(sys.executable, end='|'); " + (
    "print(*sys.version_info[:2], sep='.', end='t|' if t else '|'); print(sys.version.split()[0])"
)
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"  # in the environment that `make test` has set up
COUNTS = r"([\d,]+) tests, .* ours ([\d,]+) pass, .* (\d+) differ.*, (\d+) without a reason"  # aio/conformance's
COLUMNS = ("Python", "interpreted", "compiled", "CPython's asyncio tests on our loop")


class Interpreter(NamedTuple):
    """A Python to test on."""

    path: str  # where its command can be run
    release: str  # as 3.14.10
    inside: tuple[str, ...] = ()  # what to put before its commands

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command of it in the checkout, its output kept."""
        return subprocess.run(
            [*self.inside, *map(str, command)], cwd=ROOT, env={**os.environ, **environment},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        )  # fmt: skip


def declared() -> list[str]:
    """The versions that pyproject.toml declares, oldest first, as "3.11" and "3.14t"."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    free_threaded = [f"{version}t" for version in versions if int(version[2:]) >= 14]
    return versions + (free_threaded if "Free Threading" in text else [])


def ends(versions: list[str], running: str) -> list[str]:
    """The oldest and the newest of them, but the running one, whose tests run anyway; without the free-threaded."""
    plain = [version for version in versions if not version.endswith("t")]
    return [version for version in dict.fromkeys([plain[0], plain[-1]]) if version != running]


def ask(path: str, version: str, inside: tuple[str, ...] = ()) -> Interpreter | None:
    """The interpreter, if it starts and is of that version."""
    ran = subprocess.run([*inside, path, "-c", ASK], capture_output=True, text=True, check=False)
    if ran.returncode or ran.stdout.split("|")[1:2] != [version]:
        return None
    executable, _, release = ran.stdout.strip().split("|")
    return Interpreter(executable, release, inside)


def find(version: str) -> Interpreter | None:
    """One on the PATH, or of pyenv's."""
    on_path = shutil.which(f"python{version}")
    pyenvs = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    pattern = f"{version[:-1]}.*t" if version.endswith("t") else f"{version}.*"
    candidates = [on_path] if on_path else []
    candidates += sorted((str(path) for path in pyenvs.glob(f"{pattern}/bin/python")), reverse=True)
    for candidate in candidates:
        found = ask(candidate, version)
        if found is not None:
            return found
    return None


def find_all(versions: list[str]) -> dict[str, Interpreter | str]:
    """Each of them, or why it is left out. What this machine lacks is looked for in Debian."""
    found: dict[str, Interpreter | str] = {}
    for version in versions:
        here = Interpreter(sys.executable, sys.version.split()[0]) if version == RUNNING else find(version)
        found[version] = here if here is not None else f"no python{version} on the PATH, nor among pyenv's"
    debians = [version for version in versions if isinstance(found[version], str) and not version.endswith("t")]
    if debians:
        try:
            debian_pythons.make(debians)
        except debian_pythons.NotHadError as error:
            return found | {version: f"{found[version]}; {error}" for version in debians}
        for version in debians:
            there = ask(f"/usr/bin/python{version}", version, tuple(debian_pythons.inside()))
            found[version] = there if there is not None else f"{found[version]}; nor does Debian's start"
    return found


def prepare(version: str, interpreter: Interpreter) -> Interpreter:
    """Its environment, with what the tests need. Raises RuntimeError with pip's last word."""
    python = f"{ROOT}/.venv-{version}/bin/python"
    # lexists: the Python of one in the root is a link to what is not there outside.
    if not os.path.lexists(python) or interpreter.run(python, "-m", "pip", "--version").returncode:
        made = interpreter.run(interpreter.path, "-m", "venv", "--clear", f"{ROOT}/.venv-{version}")
        if made.returncode:
            raise RuntimeError(f"no environment: {last(made.stdout)}")
    pinned = dict(line.split("==") for line in requirements("test"))
    pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-compile", "--only-binary=:all:")
    for group in ([name for name in NEEDED if name in pinned], ["numpy"]):
        if not interpreter.run(*pip, *[f"{name}=={pinned[name]}" for name in group]).returncode:
            continue
        # Wheels of some are for few Pythons each: where the pinned one has none, the newest that has. And if none has,
        # its tests say that they need it. For any other failure, of the network for one, there is no way round.
        for name in group:
            for wanted in (f"{name}=={pinned[name]}", name):
                done = interpreter.run(*pip, wanted)
                if not done.returncode:
                    break
                if "No matching distribution" not in done.stdout:
                    raise RuntimeError(f"pip: {last(done.stdout)}")
    return interpreter._replace(path=python)


def last(output: str) -> str:
    """The last line that is not empty."""
    return ([line.strip("= ") for line in output.splitlines() if line.strip("= ")] or ["no output"])[-1]


def test(python: Interpreter, tests: list[str], *, pure: bool) -> tuple[bool, str]:
    """Run the tests; whether they passed, and pytest's counts."""
    path = str(ROOT / "src")
    if not pure and python.path != sys.executable:
        built = python.run(
            python.path, "setup.py", "-q", "build_ext", "--inplace", ABEYANT_CFLAGS="-O0 -g0", ABEYANT_COMPILE_LAB="0"
        )
        check = "from abeyant.engine import is_compiled; raise SystemExit(not is_compiled())"
        if built.returncode or python.run(python.path, "-c", check, PYTHONPATH=path, ABEYANT_PURE="").returncode:
            print(built.stdout)
            return False, f"not compiled: {last(built.stdout)}"
    options = ("-q", "-p", "no:cacheprovider", "--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile")
    ran = python.run(python.path, "-m", "pytest", *options, *tests, ABEYANT_PURE="1" if pure else "", PYTHONPATH=path)
    if ran.returncode:
        print(ran.stdout)
    return ran.returncode == 0, re.sub(r" in [\d.]+s.*", "", last(ran.stdout))


def compare(python: Interpreter) -> tuple[bool, str]:
    """Run CPython's asyncio tests on asyncio's loop and on ours; whether they agree, and the counts."""
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    ran = python.run(python.path, "-m", "aio.conformance", PYTHONPATH=paths, ABEYANT_PURE="")
    if ran.returncode:
        print(ran.stdout)
    counts = re.search(COUNTS, ran.stdout)
    if counts is None:
        return ran.returncode == 0, "it comes without them" if "are skipped" in ran.stdout else last(ran.stdout)
    every, passed, differ, unexplained = counts.groups()
    return ran.returncode == 0, f"{passed} of {every} pass, {differ} differ, {unexplained} without a reason"


def line(version: str, interpreter: Interpreter | str, tests: list[str], *, suite: bool) -> tuple[bool, list[str]]:
    """All that is tried on one Python: whether it passed, and its line of the table."""
    if isinstance(interpreter, str):
        return True, [version, f"left out: {interpreter}"]
    began = time.monotonic()
    print(f"test-pythons: {version}: {interpreter.path}", flush=True)
    try:
        python = interpreter if version == RUNNING else prepare(version, interpreter)
    except RuntimeError as error:
        return True, [version, f"left out: {error}"]
    ran = [test(python, tests, pure=True), test(python, tests, pure=False)]
    if suite:
        ran.append(compare(python))
    print(f"test-pythons: {version}: {time.monotonic() - began:.0f} s", flush=True)
    origin = ", Debian" if interpreter.inside else ""
    cells = [told if fine else f"FAILED: {told}" for fine, told in ran]
    return all(fine for fine, _ in ran), [f"{interpreter.release}{'t' * version.endswith('t')}{origin}", *cells]


def on_graalpy(tests: list[str]) -> tuple[bool, list[str]]:
    """What is tried on GraalPy: whether it passed, and its line of the table."""
    print(f"test-pythons: graalpy: {graalpy.CACHE}", flush=True)
    try:
        status, said = graalpy.test(tests)
    except NotHadError as error:
        return True, ["graalpy", f"left out: {error}"]
    if status:
        print(said)
    told = re.sub(r" in [\d.]+s.*", "", last(said))
    return status == 0, [f"GraalPy {graalpy.VERSION}", f"{'FAILED: ' * bool(status)}{told}", "for CPython only", "-"]


def table(rows: list[list[str]]) -> str:
    """The rows in columns, a heading above; a row of two cells has a remark and no columns."""
    every = [list(COLUMNS), *rows]
    widths = [
        max([len(row[at]) for row in every if len(row) > at and len(row) != 2] or [0]) for at in range(len(COLUMNS))
    ]
    widths[0] = max(len(row[0]) for row in every)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in every
    )


def main() -> None:
    """Do what the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="as 3.13, or graalpy; by default all")
    parser.add_argument("--quick", action="store_true", help="few tests, on the oldest and the newest")
    own = sys.argv[1:]
    rest = own[own.index("--") + 1 :] if "--" in own else []
    options = parser.parse_args(own[: own.index("--")] if "--" in own else own)
    versions = options.versions or (ends(declared(), RUNNING) if options.quick else [*declared(), "graalpy"])
    tests = rest or ["-m", "not slow", *(QUICK if options.quick else BELOW_SPARK)]
    suite = not options.quick and not rest
    cpythons = find_all([version for version in versions if version != "graalpy"])
    done = [line(version, found, tests, suite=suite) for version, found in cpythons.items()]
    if "graalpy" in versions:
        done.append(on_graalpy(rest or graalpy.chosen()))
    print(table([row for _, row in done]))
    raise SystemExit(0 if all(fine for fine, _ in done) else 1)


if __name__ == "__main__":
    main()
