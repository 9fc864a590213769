"""Attaching to a program that did not open a window."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import abeyant
from abeyant.window import attached as there
from abeyant.window.__main__ import main
from web.http import call

PROGRAM = """
import time, abeyant
timer = abeyant.SystemTimer(name="theirs")
timer.call_later(3600, print)
print("ready", flush=True)
while True: time.sleep(0.05)
"""


def test_what_runs_in_the_program(tmp_path: Path) -> None:
    timer = abeyant.SystemTimer(name="mine")
    there.attached(str(tmp_path / "answer"), 0)
    window = there._windows.pop()
    with window, timer:
        assert json.loads((tmp_path / "answer").read_text()) == {"url": window.url}
        timers = call(window.port, "GET", "/state?show=wheels").json["timers"]
        assert "mine" in [one["name"] for one in timers]


@pytest.mark.skipif(hasattr(sys, "remote_exec"), reason="this Python can attach")
def test_a_python_that_cannot_attach_says_so_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["1"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "cannot attach to a process: use 3.14 or call abeyant.window.serve" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.skipif(not hasattr(sys, "remote_exec"), reason="this Python cannot attach; 3.14 can")
def test_attach(capsys: pytest.CaptureFixture[str]) -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as program:
        try:
            assert program.stdout is not None
            program.stdout.readline()
            assert main([str(program.pid)]) == 0
            port = int(capsys.readouterr().out.rpartition(":")[2].strip("/\n"))
            assert call(port, "GET", "/state").json["timers"][0]["name"] == "theirs"
        finally:
            program.kill()
