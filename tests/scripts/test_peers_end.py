"""What a peer's tests leave behind cannot hold `make test-peers`, nor can a run that never ends."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scripts import test_peers as peers

RESULTS = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_one"/>
<testcase classname="tests.test_a" name="test_two"><failure/></testcase>
<testcase classname="tests.test_b" name="test_one"><skipped/></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def held(tmp_path: Path) -> Iterator[threading.Thread]:
    """A thread that ends once nobody holds the named pipe `held` any more."""
    os.mkfifo(tmp_path / "held")
    thread = threading.Thread(target=lambda: (tmp_path / "held").read_bytes())
    thread.start()
    yield thread
    thread.join(60)
    assert not thread.is_alive(), "what the tests started runs on"


def python(folder: Path, ending: str) -> Path:
    """A program in place of Python: starts one that never ends, its output open and the named pipe held; and then."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\nexec 3> held\nsleep 1000 &\n{ending}\n")
    program.chmod(0o755)
    return program


def test_a_run_ends_with_its_tests_whatever_they_leave_behind(tmp_path: Path, held: threading.Thread) -> None:
    (tmp_path / "told.xml").write_text(RESULTS)
    assert peers.run(python(tmp_path, "cp told.xml results.xml"), tmp_path, ()) == {
        "tests.test_a::test_one": "passed",
        "tests.test_a::test_two": "failed",
        "tests.test_b::test_one": "skipped",
    }


def test_a_run_that_hangs_is_ended_and_what_it_said_is_shown(
    tmp_path: Path, held: threading.Thread, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Patient(subprocess.Popen[bytes]):
        """Begins to count the seconds when the program has begun."""

        def wait(self, timeout: float | None = None) -> int:
            while timeout is not None and not (tmp_path / "begun").exists():
                time.sleep(0.01)
            return super().wait(timeout)

    monkeypatch.setattr(subprocess, "Popen", Patient)
    monkeypatch.setattr(peers, "RUN_SECONDS", 0.01)
    with pytest.raises(SystemExit, match="did not run to their end:\nthe last word"):
        peers.run(python(tmp_path, "echo the last word; : > begun\nsleep 1000"), tmp_path, ())


def test_worse_is_what_passes_on_asyncios_loop_only() -> None:
    stock = {"a": "passed", "b": "failed", "c": "passed", "d": "passed", "e": "skipped"}
    ours = {"a": "passed", "b": "failed", "c": "failed", "d": "skipped", "f": "failed"}
    assert peers.worse(stock, ours) == ["c", "d"]
