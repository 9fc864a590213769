"""Files that grow after a stream has taken them: named once, and counted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from abeyant.pipeline.commands.stream_run.changed import ChangedFiles


def took(checkpoint: Path, source: int, log: str, files: list[Path]) -> None:
    """Write what Spark's `FileStreamSourceLog` writes."""
    folder = checkpoint / "sources" / str(source)
    folder.mkdir(parents=True, exist_ok=True)
    entries = [
        json.dumps({"path": file.as_uri(), "timestamp": file.stat().st_mtime_ns // 1_000_000, "batchId": 0})
        for file in files
    ]
    (folder / log).write_text("\n".join(["v1", *entries]), encoding="utf-8")


def test_a_file_that_grew_or_was_replaced_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / name for name in ("a b.csv", "b.json", "c.parquet", "gone.csv")]
    for file in files:
        file.write_text("x\n")
        os.utime(file, (1_700_000_000, 1_700_000_000.5))
    took(tmp_path / "checkpoint", 0, "0", files[:2])
    took(tmp_path / "checkpoint", 1, "9.compact", files[2:])
    (tmp_path / "checkpoint" / "sources" / "1" / ".10.tmp").write_text("half")
    now = 0.0
    changed = ChangedFiles(str(tmp_path / "checkpoint"), clock=lambda: now)
    changed.look()
    assert (changed.found, capsys.readouterr().err) == (set(), "")
    with files[0].open("a") as grown:
        grown.write("y\n")
    files[3].unlink()
    changed.look_now_and_then()
    assert not changed.found  # half a minute is not over
    now = 31.0
    changed.look_now_and_then()
    assert changed.found == {str(files[0])}
    assert f"abeyant: {files[0]} has changed since the stream read it: rows" in capsys.readouterr().err
    files[2].write_text("another\n")
    changed.look()
    said = capsys.readouterr().err
    assert str(files[2]) in said
    assert str(files[0]) not in said
    assert len(changed.found) == 2


def test_a_checkpoint_on_a_store_or_not_there_names_nothing(tmp_path: Path) -> None:
    for checkpoint in ("s3a://bucket/checkpoint", str(tmp_path / "nowhere")):
        changed = ChangedFiles(checkpoint)
        changed.look()
        assert not changed.found
