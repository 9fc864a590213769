"""Run the suites of anyio and aiohttp on asyncio's loop and on ours, and compare test by test.

    python3 -m scripts.test_peers                      both, all of them
    python3 -m scripts.test_peers aiohttp              one of them
    python3 -m scripts.test_peers -- -k timeout        these tests; what follows `--` goes to pytest

The tests come with the source distribution, of the version that we pin; they run in `.venv-peers`, with what
requirements/peers.txt names. A test that passes on asyncio's loop and not on ours is run again, alone, on both. One
that differs every time is named, and the exit status is 1. What fails on asyncio's own loop may fail on ours.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from scripts.set_up import ROOT, make_environment, requirements

PEERS = ("anyio", "aiohttp")
FOLDER = ROOT / "build" / "peers"
ATTEMPTS = 3
TEST_SECONDS = 60  # for one test
RUN_SECONDS = 3600  # for all of a suite on one loop
OURS = ("-p", "aio.conformance.as_plugin")
OPTIONS = {
    # Not our loop's business: other loops and schedulers.
    "anyio": ("-k", "not trio and not uvloop"),
    # What aiohttp's own configuration leaves out too, and its benchmarks.
    "aiohttp": ("-m", "not dev_mode and not autobahn and not internal", "--ignore-glob=*/test_benchmarks_*"),
}


def prepare() -> Path:
    """The environment; the Python of it."""
    python = make_environment(ROOT / ".venv-peers")
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "-r", ROOT / "requirements" / "peers.txt"], check=True)
    return python


def fetch(python: Path, peer: str) -> Path:
    """The tests of a peer, without its package beside them, for that is installed."""
    pinned = dict(line.split("==") for line in requirements("peers"))
    folder = FOLDER / f"{peer}-{pinned[peer]}"
    if (folder / "tests").exists():
        return folder
    with tempfile.TemporaryDirectory() as place:
        pip: list[str | Path] = [
            python,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--no-binary",
            peer,
            "--dest",
            place,
        ]
        subprocess.run([*pip, f"{peer}=={pinned[peer]}"], check=True)
        [archive] = Path(place).glob("*.tar.gz")
        with tarfile.open(archive) as source:
            source.extractall(place, filter="data")
        [unpacked] = [path for path in Path(place).iterdir() if path.is_dir()]
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("pyproject.toml", "pytest.ini", "setup.cfg"):
            if (unpacked / name).exists():
                shutil.copy(unpacked / name, folder)
        shutil.copytree(unpacked / "tests", folder / "tests")
    return folder


def run(python: Path, folder: Path, options: tuple[str, ...]) -> dict[str, str]:
    """Run the tests there; how each ended, by its name. A test that hangs fails; a run that hangs ends this process."""
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    paths = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    command: list[str | Path] = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--no-header"]
    command += ["--tb=short", "-o", "addopts=", f"--timeout={TEST_SECONDS}", f"--junitxml={results}", *options]
    with tempfile.TemporaryFile() as said:  # not a pipe, which what a test leaves behind could hold open
        began = subprocess.Popen(
            command, cwd=folder, env={**os.environ, "PYTHONPATH": paths}, stdin=subprocess.DEVNULL, stdout=said,
            stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            began.wait(RUN_SECONDS)
        except subprocess.TimeoutExpired:
            results.unlink(missing_ok=True)
        finally:  # workers that hang, and servers that a test left behind
            with contextlib.suppress(ProcessLookupError):
                os.killpg(began.pid, signal.SIGKILL)
            began.wait()
        said.seek(0)
        words = said.read().decode(errors="replace")
    if not results.exists():
        raise SystemExit(f"test-peers: error: the tests in {folder} did not run to their end:\n{words[-3000:]}")
    outcomes = {}
    for case in ElementTree.parse(results).iter("testcase"):
        kinds = {child.tag for child in case}
        ended = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        outcomes[f"{case.get('classname')}::{case.get('name')}"] = ended
    return outcomes


def worse(stock: dict[str, str], ours: dict[str, str]) -> list[str]:
    """Those that pass on asyncio's loop and not on ours."""
    return sorted(name for name, ended in stock.items() if ended == "passed" and ours.get(name) != "passed")


def compare(python: Path, peer: str, chosen: tuple[str, ...]) -> bool:
    """Print how a peer's suite ends on both loops; whether none is worse on ours."""
    folder = fetch(python, peer)
    options = (*OPTIONS[peer], *chosen)
    stock, ours = run(python, folder, options), run(python, folder, (*OURS, *options))
    suspects = worse(stock, ours)
    for _ in range(ATTEMPTS - 1):
        if suspects:
            names = " or ".join(dict.fromkeys(name.rpartition("::")[2].partition("[")[0] for name in suspects))
            again = ("-k", names)
            suspects = sorted(
                set(suspects) & set(worse(run(python, folder, again), run(python, folder, (*OURS, *again))))
            )
    counts = [f"{sum(ended == 'passed' for ended in one.values()):,} of {len(one):,} pass" for one in (stock, ours)]
    print(f"{folder.name}: on asyncio's loop {counts[0]}, on ours {counts[1]}; {len(suspects)} are worse", flush=True)
    print("".join(f"  {name}\n" for name in suspects), end="")
    return not suspects


def main() -> None:
    """Do what the module's docstring says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    own = sys.argv[1:]
    rest = tuple(own[own.index("--") + 1 :]) if "--" in own else ()
    parser.add_argument("peers", nargs="*", metavar="PEER", help=f"{' or '.join(PEERS)}; both unless said")
    peers = parser.parse_args(own[: own.index("--")] if "--" in own else own).peers or PEERS
    if unknown := set(peers) - set(PEERS):
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {' and '.join(PEERS)}")
    python = prepare()
    fine = [compare(python, peer, rest) for peer in peers]
    raise SystemExit(0 if all(fine) else 1)


if __name__ == "__main__":
    main()
