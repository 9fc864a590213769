"""Time and chance of a program come from its seed, and are given back afterwards."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from abeyant import simulation
from abeyant.simulation.control import EPOCH
from simulation import programs


def run(main: Callable[[], Any], seed: int = 1, **options: Any) -> simulation.Run:
    return simulation.run(main, seed=seed, any_hashes=True, **options)


def test_the_same_seed_gives_the_same_trace_and_another_seed_another() -> None:
    first, second, other = run(programs.main, 1), run(programs.main, 1), run(programs.main, 2)
    assert first.error is None
    assert first.value == second.value
    assert (first.hash, first.seconds, first.drawn) == (second.hash, second.seconds, second.drawn)
    assert other.hash != first.hash


def test_the_same_in_processes_of_their_own_under_any_hash_seed() -> None:
    """S1"""

    def hashes(hash_seed: str, pure: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "ABEYANT_PURE": pure}
        command = [sys.executable, "-W", "error", programs.__file__, "0", "8"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        assert not done.stderr
        return done.stdout

    first = hashes("1", "1" if os.environ.get("ABEYANT_PURE") else "")
    assert len(set(first.split())) == 16
    assert hashes("random", "1") == first


def test_hashes_that_are_not_fixed_are_refused() -> None:
    program = f"""
import sys; sys.path.insert(0, {str(Path(programs.__file__).parents[1])!r})
from abeyant import simulation
from simulation import programs
simulation.run(programs.main, seed=1)"""
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert "PYTHONHASHSEED=0" in done.stderr.splitlines()[-1]


def test_the_machines_own_is_back_afterwards() -> None:
    before = random.getstate(), time.time(), gc.isenabled(), gc.get_freeze_count()
    run(programs.main)
    assert random.getstate() == before[0]
    assert before[1] <= time.time() < EPOCH
    assert gc.isenabled() == before[2]
    assert before[3] // 2 <= gc.get_freeze_count() <= before[3], "what was frozen may go, but stays frozen"
    time.sleep(0)
    assert os.urandom(8) != os.urandom(8)
    subprocess.run([sys.executable, "-c", ""], check=True)


def test_an_hour_takes_no_time() -> None:
    async def main() -> float:
        began = time.monotonic()
        await asyncio.sleep(3600)
        return time.monotonic() - began

    assert run(main).value == 3600


def test_a_process_may_have_a_clock_of_its_own() -> None:
    seen = []

    async def look() -> None:
        seen.append(time.time())

    async def main() -> None:
        for ahead in (0.0, 60.0):
            process = simulation.current().process("looker", look)
            process.clock_ahead = ahead
            process.start()
            await process.wait()

    run(main)
    assert 60 <= seen[1] - seen[0] < 61


@pytest.mark.slow
def test_runs_leave_nothing_behind() -> None:
    run(programs.main)
    gc.collect()
    before = len(gc.get_objects())
    for seed in range(20):
        run(programs.main, seed)
    assert len(gc.get_objects()) - before < 500


def test_a_quiet_tape_gives_the_least_of_everything() -> None:
    loud, quiet = run(programs.main), run(programs.main, tape={"link": 0})
    assert quiet.error is None
    assert quiet.seconds < loud.seconds
    assert run(programs.main, tape=dict(loud.drawn)).hash == loud.hash


def test_a_program_that_waits_for_nothing_is_named() -> None:
    async def main() -> None:
        await simulation.current().create_future()

    error = run(main).error
    assert "nothing can run any more" in str(error)
    assert "Task" in str(error)


def test_a_program_that_waits_too_long_is_named() -> None:
    assert "limit of 60 s" in str(run(lambda: asyncio.sleep(61), limit=60.0).error)


def test_a_program_that_spins_is_named() -> None:
    async def spin() -> None:
        while True:
            await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.create_task(spin(), name="the spinner")

    with pytest.raises(simulation.SpinningError, match="the spinner spins"):
        run(main)


def test_a_spin_until_a_deadline_ends() -> None:
    async def main() -> None:
        while time.monotonic() < 0.2:
            await asyncio.sleep(0)

    assert run(main).seconds == pytest.approx(0.2, abs=0.002)


def test_an_error_names_its_seed() -> None:
    async def main() -> None:
        assert random.random() < 0.8

    with pytest.raises(AssertionError) as caught:
        simulation.search(main, range(50), any_hashes=True)
    [note] = caught.value.__notes__
    seed = int(note.split()[1].rstrip(":"))
    assert isinstance(run(main, seed).error, AssertionError)


@pytest.mark.parametrize(
    ("misuse", "said"), [(lambda: time.sleep(1), "time.sleep"), (lambda: sys.exit(3), "sys.exit.3.")]
)
def test_a_refusal_and_an_exit_name_their_seed_too(misuse: Callable[[], object], said: str) -> None:
    async def main() -> None:
        misuse()

    with pytest.raises(simulation.SimulationError, match=said) as caught:
        simulation.search(main, [7], any_hashes=True)
    assert caught.value.__notes__ == ["seed 7: simulation.run(..., seed=7) repeats it"]


def test_clocks_by_their_id_are_of_the_run() -> None:
    async def main() -> tuple[float, int, float]:
        await asyncio.sleep(2)
        clock = time.CLOCK_MONOTONIC
        return time.clock_gettime(clock), time.clock_gettime_ns(clock), time.clock_gettime(time.CLOCK_REALTIME)

    assert run(main).value == (2.0, 2_000_000_000, EPOCH + 2.0)
    assert time.clock_gettime(time.CLOCK_MONOTONIC) == pytest.approx(time.monotonic(), abs=60)


async def _nothing() -> None:
    pass


@pytest.mark.parametrize(
    ("main", "options", "said"),
    [
        (5, {}, r"write run\(main, ...\), not run\(5, ...\)"),
        (lambda: 5, {}, "returned 5"),
        (_nothing, {"limit": 0}, "limit must be more than 0 seconds, not 0"),
        (_nothing, {"limit": float("nan")}, "limit must be more than 0 seconds, not nan"),
    ],
)
def test_what_cannot_be_run_is_refused(main: Any, options: Any, said: str) -> None:
    with pytest.raises(simulation.SimulationError, match=said):
        run(main, **options)


def test_a_coroutine_in_place_of_its_function_is_refused() -> None:
    coroutine = _nothing()
    with pytest.raises(simulation.SimulationError, match=r"write run\(main, ...\), not run\(_nothing\(\), ...\)"):
        run(coroutine)  # type: ignore[arg-type]
    coroutine.close()
