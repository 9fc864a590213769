"""`abeyant pending`: of which stream it tells, as far as that is known before Spark starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from abeyant.cli import main
from abeyant.pipeline.commands.pending import _checkpoint, _text_lines
from abeyant.pipeline.commands.stream_run.description import DESCRIPTION


def stream(out: Path, checkpoint: Path) -> Path:
    (checkpoint / "state").mkdir(parents=True)
    (out / DESCRIPTION).write_text(json.dumps({"checkpoint": str(checkpoint)}))
    return out


def test_a_stream_that_was_moved_is_told_of_and_not_the_one_in_its_place(tmp_path: Path) -> None:
    moved = stream(tmp_path / "out", tmp_path / "out" / "checkpoint").rename(tmp_path / "old")
    there = stream(tmp_path / "out", tmp_path / "out" / "checkpoint")
    assert (_checkpoint(str(moved)), _checkpoint(str(there))) == (f"{moved}/checkpoint", f"{there}/checkpoint")
    (tmp_path / "apart").mkdir()
    apart = stream(tmp_path / "apart", tmp_path / "kept elsewhere")
    assert _checkpoint(str(apart)) == f"{tmp_path}/kept elsewhere"
    assert _checkpoint(f"{tmp_path}/kept elsewhere") == f"{tmp_path}/kept elsewhere"


@pytest.mark.parametrize("description", ["{", "{}", "[]", "7", "\0"])
def test_a_damaged_description_is_refused_in_one_line(
    description: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / DESCRIPTION).write_text(description)
    assert main(["pending", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"abeyant: error: {tmp_path}/{DESCRIPTION} is damaged and names no checkpoint: give the checkpoint as DIR\n"
    )


def test_a_key_is_on_its_own_line_and_moves_no_cursor(spark: SparkSession) -> None:
    key = "'a\\nb \\u001b[2J \\u202e'"
    time = "timestamp '2026-01-02 03:04:05'"
    table = spark.sql(f"SELECT {time} deadline, {time} start, 1L required, {key} key, 'i' instance, 'o' op_id, '' kind")
    _, line = _text_lines(table)
    at, key = "2026-01-02 03:04:05", "a?b ?[2J ?".replace("?", "\N{REPLACEMENT CHARACTER}")
    assert line == f"{at}  {at}           1  {key:<24}  i/o"
