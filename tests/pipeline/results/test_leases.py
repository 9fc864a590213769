"""One process at a time writes to a place: the second is told who the first is, and a dead one gives way."""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from abeyant.cli import main
from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.running import spark_for
from abeyant.pipeline.results.directory import check_target, new_result
from abeyant.pipeline.results.leases.local import acquire, check_free, leased, release, result_lease, stream_lease
from pipeline.another_process import another_holds
from pipeline.orders import MAPPING, write_orders

TAKE_TURNS = """
import sys
from pathlib import Path
from abeyant.errors import AbeyantError
from abeyant.pipeline.results.leases.local import leased
claim, mark, turns = Path(sys.argv[1]), Path(sys.argv[2]), 0
while turns < 100:
    try:
        with leased(claim, claim.parent):
            mark.mkdir()
            mark.rmdir()
            turns += 1
    except AbeyantError as error:
        assert "is being written by" in str(error), error
"""


def test_the_second_is_refused_at_once_and_the_dead_give_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In every way in, before Spark starts."""
    orders, payments = write_orders(tmp_path)
    out = tmp_path / "result"
    with another_holds(result_lease(out), out) as pid:
        who = f"{out} is being written by process {pid} on {socket.gethostname()}, since 20"
        command = ["resolve", orders, payments, *MAPPING, "--out", str(out)]
        assert main(command) == 2
        line = capsys.readouterr().err
        assert line.startswith(f"abeyant: error: {who}")
        assert line.endswith(": wait until it ends, or name another place\n")
        assert line.count("\n") == 1
        with pytest.raises(AbeyantError) as refused, new_result(out, overwrite=False):
            pytest.fail("two write")
        assert who in str(refused.value)
    assert result_lease(out).exists()  # it was killed
    check_target(out, overwrite=False)
    with new_result(out, overwrite=False) as aside:
        (aside / "table").touch()
    assert not result_lease(out).exists()

    stream = tmp_path / "stream"
    with another_holds(stream_lease(stream), stream) as pid:
        assert main(["stream", orders, payments, *MAPPING, "--out", str(stream)]) == 2
        assert f"{stream} is being written by process {pid} on " in capsys.readouterr().err
    with leased(stream_lease(stream), stream):
        pass
    assert not stream.exists()


def test_a_command_holds_its_place_before_spark_starts(tmp_path: Path) -> None:
    def start(*_: object, **__: object) -> None:
        holds.append(result_lease(tmp_path / "out").exists())
        raise AbeyantError("no Spark here")

    holds: list[bool] = []
    args = argparse.Namespace(out=tmp_path / "out", overwrite=False, quiet=True, conf=[], master="local")
    with pytest.raises(AbeyantError, match="no Spark here"), spark_for(args, "test", start=start):  # type: ignore[arg-type]
        pass
    assert holds == [True]
    assert list(tmp_path.iterdir()) == []


def test_within_a_process_a_thread_holds_it_again_and_another_does_not(tmp_path: Path) -> None:
    out = tmp_path / "out"
    said: list[str] = []

    def other() -> None:
        with pytest.raises(AbeyantError) as refused, leased(result_lease(out), out):
            pytest.fail("two write")
        said.append(str(refused.value))

    with leased(result_lease(out), out):
        with leased(result_lease(out), out):
            check_free(result_lease(out), out)
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert result_lease(out).exists()
    assert f"process {os.getpid()} on " in said[0]
    assert list(tmp_path.iterdir()) == []


def test_what_is_shared_goes_with_its_last_holder(tmp_path: Path) -> None:
    claim = stream_lease(tmp_path / "out")
    assert acquire(claim, tmp_path / "out", "one")
    assert not acquire(claim, tmp_path / "out", "one")
    assert acquire(claim, tmp_path / "out", "two")
    for holder in ("one", "one", "none"):
        release(claim, holder)
    with leased(claim, tmp_path / "out"):
        assert not acquire(claim, tmp_path / "out", "two")
    assert claim.exists(), "a query is no other writer of its own process"
    (tmp_path / "out" / "batch").touch()
    release(claim, "two")
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["batch"]


def test_many_at_once_are_one_after_the_other(tmp_path: Path) -> None:
    """The claim is removed while others wait for it: nobody may hold a file that is no longer there."""
    claim = stream_lease(tmp_path / "out")
    call = [sys.executable, "-c", TAKE_TURNS, str(claim), str(tmp_path / "mark")]
    takers = [subprocess.Popen(call) for _ in range(3)]
    assert [process.wait() for process in takers] == [0, 0, 0]
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_takes_no_files_is_not_said_to_be_held() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("this system has no /proc")
    out = Path("/proc/abeyant-result")
    with pytest.raises(AbeyantError, match=r"^cannot write /proc/abeyant-result: "), leased(result_lease(out), out):
        pass
