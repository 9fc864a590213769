"""A command whose standard output cannot be written: a status of its own, and whether its result is there."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
PROGRAM = """
import argparse, sys
from abeyant import cli, ending
parser = argparse.ArgumentParser()
parser.set_defaults(debug=False)
ending.add_output_options(parser)
def run(args):
    ending.end(args, lambda: print("found " * 10_000), out="result", found={"operations": 7})
    return 0
parser.set_defaults(run=run)
cli._parser = lambda words: parser
raise SystemExit(cli.main(sys.argv[1:]))
"""


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("option", [["--json"], ["--quiet"], []])
def test_the_result_is_named_and_the_status_is_not_that_of_a_failure(option: list[str]) -> None:
    with FULL.open("w") as full:
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *option], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 1
    assert run.stderr == (
        "abeyant: error: result is complete, but the standard output cannot be written: No space left on device\n"
    )


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("option", [["--json"], []])
def test_a_command_whose_result_is_its_output_says_that_it_is_lost(option: list[str]) -> None:
    with FULL.open("w") as full:
        run = subprocess.run(
            [sys.executable, "-m", "abeyant", "info", *option], stdout=full, stderr=subprocess.PIPE, text=True
        )
    said = "abeyant: error: the standard output cannot be written: No space left on device\n"
    assert (run.returncode, run.stderr) == (1, said)
