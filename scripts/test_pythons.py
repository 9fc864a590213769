"""Run the tests of the rooms below Spark, interpreted, on every other Python that the package declares.

    python3 -m scripts.test_pythons                 all that this machine has
    python3 -m scripts.test_pythons 3.13            that one
    python3 -m scripts.test_pythons -- tests/timer  these tests only; what follows `--` goes to pytest

Looks for `python3.X` on the PATH and among pyenv's, makes an environment for each, `.venv-3.X`, with the tests' pinned
requirements, and ends with a line each: what passed, or why it was left out. Exit status 1 where a test failed.
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

from scripts.set_up import ROOT, make_environment, requirements

BELOW_SPARK = ("tests/engine", "tests/timer", "tests/idle", "tests/purgatory", "tests/aio")
# What those tests import; of each the version that is pinned.
NEEDED = (
    "aiohttp", "anyio", "httpx", "hypothesis", "nest-asyncio", "nest-asyncio2", "numpy", "pytest", "pytest-asyncio",
    "pytest-xdist", "starlette", "uvicorn", "uvloop",
)  # fmt: skip


def declared() -> list[str]:
    """The versions that pyproject.toml declares, as "3.11"."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    return re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)


def find(version: str) -> Path | None:
    """An interpreter of this version that starts."""
    on_path = shutil.which(f"python{version}")
    pyenvs = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [Path(on_path)] if on_path else []
    candidates += sorted(pyenvs.glob(f"{version}.*/bin/python"), reverse=True)
    for candidate in candidates:
        asked = subprocess.run(
            [candidate, "-c", "import sys; print(sys.executable, *sys.version_info[:2])"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if asked.returncode == 0 and asked.stdout.split()[1:] == version.split("."):
            return Path(asked.stdout.split()[0])
    return None


def prepare(version: str, interpreter: Path) -> Path:
    """Its environment, with what the tests need; returns the Python of it."""
    folder = ROOT / f".venv-{version}"
    if not (folder / "bin" / "python").exists():
        subprocess.run([interpreter, "-m", "venv", folder], check=True)
    python = make_environment(folder)
    pinned = dict(line.split("==") for line in requirements("test"))
    wanted = [f"{name}=={pinned[name]}" for name in NEEDED]
    subprocess.run([python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *wanted], check=True)
    return python


def test(python: Path, options: list[str]) -> tuple[bool, str]:
    """Run the tests; whether they passed, and pytest's last line."""
    chosen = options or ["-m", "not slow", *BELOW_SPARK]
    command: list[str | Path] = [
        python,
        "-m",
        "pytest",
        "-q",
        "--numprocesses=auto",
        "--maxprocesses=4",
        "--dist=loadfile",
        *chosen,
    ]
    environment = os.environ | {"ABEYANCE_PURE": "1", "PYTHONPATH": str(ROOT / "src")}
    ran = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if ran.returncode:
        print(ran.stdout)
    return ran.returncode == 0, (ran.stdout.strip().splitlines() or ["no output"])[-1]


def main() -> None:
    """Do what the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("versions", nargs="*", help="as 3.13; by default all that are declared but the running one")
    own = sys.argv[1:]
    rest = own[own.index("--") + 1 :] if "--" in own else []
    options = parser.parse_args(own[: own.index("--")] if "--" in own else own)
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    lines, passed = [], True
    for version in options.versions or [version for version in declared() if version != running]:
        interpreter = find(version)
        if interpreter is None:
            lines.append(f"{version:<6} left out: no python{version} on the PATH, nor among pyenv's")
            continue
        began = time.monotonic()
        print(f"test-pythons: {interpreter}", flush=True)
        fine, told = test(prepare(version, interpreter), rest)
        passed = passed and fine
        lines.append(
            f"{version:<6} {'passed' if fine else 'FAILED'}: {told.strip('= ')}; {time.monotonic() - began:.0f} s"
        )
    print("\n".join(lines))
    raise SystemExit(0 if passed else 1)


if __name__ == "__main__":
    main()
