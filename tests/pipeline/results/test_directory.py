"""A result appears whole or not at all, and nothing that is not ours is ever replaced."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from abeyant.errors import AbeyantError
from abeyant.pipeline.results.directory import MARKER, check_target, is_result, new_result, write_marker


def make(out: Path, content: str = "new", *, overwrite: bool = False) -> None:
    with new_result(out, overwrite=overwrite) as aside:
        (aside / "table").write_text(content)
        write_marker(aside, {"requests": 1})


def left_beside(out: Path) -> list[Path]:
    return [path for path in out.parent.iterdir() if path != out]


def test_a_result_appears_at_the_end(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    make(out)
    assert (out / "table").read_text() == "new"
    assert {path.name for path in out.iterdir()} == {"table", MARKER}
    assert left_beside(out) == []
    assert is_result(out)
    assert out.stat().st_mode & 0o777 == 0o755


def test_an_empty_directory_is_taken(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    make(out)
    assert is_result(out)


@pytest.mark.parametrize("below", ["", "deeper"])
def test_the_directory_that_one_stands_in_is_not_replaced(
    tmp_path: Path, below: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    (out / below).mkdir(parents=True)
    if below:
        write_marker(out, {"requests": 1})
    monkeypatch.chdir(out / below)
    with pytest.raises(AbeyantError, match="out is or contains the working directory"):
        check_target(out, overwrite=True)
    with pytest.raises(AbeyantError, match="is or contains the working directory"):
        make(Path(".." if below else "."), overwrite=True)
    assert Path.cwd() == out / below
    make(out / below / "result")


def test_a_result_is_replaced_only_when_told_to(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out, "old")
    with pytest.raises(AbeyantError, match="already holds a result; use --overwrite"):
        make(out)
    assert (out / "table").read_text() == "old"
    make(out, overwrite=True)
    assert (out / "table").read_text() == "new"
    assert left_beside(out) == []


@pytest.mark.parametrize("marker", [None, "", "[]", '{"tool": "other"}'])
def test_what_is_not_ours_is_left_alone(tmp_path: Path, marker: str | None) -> None:
    out = tmp_path / "precious"
    out.mkdir()
    (out / "thesis.txt").write_text("years")
    if marker is not None:
        (out / MARKER).write_text(marker)
    with pytest.raises(AbeyantError, match="is not a result of abeyant: it is left alone"):
        make(out, overwrite=True)
    assert (out / "thesis.txt").read_text() == "years"
    with pytest.raises(AbeyantError, match="is left alone"):
        check_target(out / "thesis.txt", overwrite=True)
    (tmp_path / "link").symlink_to(out)
    with pytest.raises(AbeyantError, match="is left alone"):
        check_target(tmp_path / "link", overwrite=True)


def test_what_appears_meanwhile_is_not_lost(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def meanwhile() -> None:
        with new_result(out, overwrite=True):
            out.mkdir()
            (out / "someone's").write_text("else")

    with pytest.raises(AbeyantError, match="is left alone"):
        meanwhile()
    assert (out / "someone's").exists()
    assert left_beside(out) == []


@pytest.mark.parametrize("failure", [RuntimeError("x"), KeyboardInterrupt()])
def test_a_failed_run_leaves_nothing(tmp_path: Path, failure: BaseException) -> None:
    out = tmp_path / "out"
    make(out, "old")

    def fail() -> None:
        with new_result(out, overwrite=True) as aside:
            (aside / "table").write_text("half")
            raise failure

    with pytest.raises(type(failure)):
        fail()
    assert (out / "table").read_text() == "old"
    assert left_beside(out) == []


def test_a_full_disk_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(AbeyantError, match="the disk is full"), new_result(tmp_path / "out", overwrite=False):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert list(tmp_path.iterdir()) == []


def test_a_parent_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(AbeyantError, match="cannot write"):
        make(tmp_path / "file" / "out")


def test_what_a_killed_run_left_is_removed_but_not_one_that_runs(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in (".out.abeyant-dead", ".out.abeyant-alive", ".out.other", ".outer.abeyant-x"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".lock").write_text("")
    with (tmp_path / ".out.abeyant-alive" / ".lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        make(out)
    assert {path.name for path in left_beside(out)} == {".out.abeyant-alive", ".out.other", ".outer.abeyant-x"}


def test_a_result_that_a_kill_caught_half_replaced_is_put_back(tmp_path: Path) -> None:
    out = tmp_path / "out"
    make(out, "old")
    (tmp_path / ".out.abeyant-k").mkdir()
    out.rename(tmp_path / ".out.abeyant-k" / "replaced")
    with pytest.raises(AbeyantError, match="already holds a result"):
        make(out)
    assert (out / "table").read_text() == "old"
