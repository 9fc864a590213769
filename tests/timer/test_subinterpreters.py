"""Of the interpreters of one process the first runs what is compiled, the others its source; each has its timers."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import abeyant
from abeyant.engine import is_compiled

PROGRAM = Path(__file__).with_name("subinterpreters.py")
POOL = """
from concurrent.futures import InterpreterPoolExecutor
import abeyant, abeyant.cli

def wait(seconds):
    timer, done = abeyant.SystemTimer(), __import__("threading").Event()
    timer.call_later(seconds, done.set)
    ran = done.wait(30)
    timer.close()
    return ran

if __name__ == "__main__":
    abeyant.cli.main(["info", "--json"])
    with InterpreterPoolExecutor(2) as pool:
        assert list(pool.map(wait, [0.01, 0.02, 0.03])) == [True] * 3
        pool.submit(abeyant.cli.main, ["info", "--json"]).result()
"""


@pytest.mark.parametrize("program", ["timers", pytest.param("stress", marks=pytest.mark.slow)])
def test_each_interpreter_has_timers_of_its_own(program: str) -> None:
    source = Path(abeyant.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM, program],
        env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = sorted(ran.stdout.splitlines())
    main = [line for line in told if line.startswith("0 ")]
    others = [line for line in told if line not in main]
    assert [line[:10] for line in others] == ["1 found {}", "2 found {}"], ran.stdout
    if is_compiled():
        assert set(main) == {"0 found {} compiled"}
        assert all("interpreted: the compiled engine works only in the interpreter" in line for line in others)


@pytest.mark.skipif(sys.version_info < (3, 14), reason="InterpreterPoolExecutor came with 3.14")
def test_a_pool_of_interpreters_takes_it_and_info_tells_how_each_runs(tmp_path: Path) -> None:
    program = tmp_path / "pool.py"
    program.write_text(POOL)
    source = Path(abeyant.__file__).parents[1]
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", program],
        env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    told = [json.loads(part)["engine"] for part in re.findall(r"{.*?}", ran.stdout, re.DOTALL)]
    if is_compiled():
        assert told[0] == "compiled"
        assert told[1].startswith("interpreted: the compiled engine works only in the interpreter"), told
    else:
        assert [one.partition(":")[0] for one in told] == ["interpreted"] * 2
