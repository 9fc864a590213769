"""`abeyant analyze --watch`: what is told while a log is written is what `analyze` finds of it in the end."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from abeyant.cli import main
from pipeline.analysis.test_recordings import RECORDINGS, operations
from pipeline.analysis.test_watching import batch, standing

RECORDING = RECORDINGS / "follower-frozen"
PIECES = 8


def watch(logs: Path, out: Path, printed: Path, *more: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "abeyant.cli", "analyze", str(logs), "--out", str(out), "--watch", *more]
    with printed.open("wb") as stdout, printed.with_suffix(".err").open("wb") as stderr:
        return subprocess.Popen(command, stdout=stdout, stderr=stderr)


def wait_for(what: Any, seconds: float = 300) -> None:
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until
        time.sleep(0.2)


def told(out: Path) -> list[dict[str, Any]]:
    file = out / "incidents.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.slow
def test_a_recording_that_is_written_meanwhile_rotated_and_the_watch_killed(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    texts = {file.parent.name: gzip.decompress(file.read_bytes()) for file in RECORDING.glob("*/kafka-request.log.gz")}
    assert len(texts) == 3

    def write(piece: int) -> None:
        """Append a piece to each broker's log; all but the third, after which it is rotated, end within a line."""
        for broker, text in texts.items():
            file = logs / broker / "kafka-request.log"
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("ab") as stream:
                stream.write(text[cut(text, piece) : cut(text, piece + 1)])

    def cut(text: bytes, piece: int) -> int:
        at = len(text) * piece // PIECES
        return text.find(b"\n", at) + 1 if piece == 3 else at

    write(0)
    watching = watch(logs, out, tmp_path / "before")
    state = out / "watch-state"
    try:
        wait_for(state.exists)
        for piece in range(1, PIECES):
            write(piece)
            if piece == 2:
                watching.kill()  # in the middle of the incident
                watching.wait()
                watching = watch(logs, out, tmp_path / "printed", "--json")
            time.sleep(1.5)
            if piece == 2:
                for broker in texts:
                    (logs / broker / "kafka-request.log").rename(logs / broker / "kafka-request.log.1")
        expected = batch(operations(RECORDING))
        assert [row["kind"] for row in expected] == ["PRODUCE"]
        wait_for(lambda: standing(told(out)) == expected and told(out)[-1]["event"] in ("ends", "changed"))
        watching.send_signal(signal.SIGINT)
        assert watching.wait(120) == 0
    finally:
        watching.kill()
        watching.wait()
    followed = [line for line in (tmp_path / "before.err").read_text().splitlines() if "following" in line]
    assert followed[0].startswith("following ")
    for broker in texts:
        assert str(logs / broker / "kafka-request.log") in followed[0]
    rotated = [line for line in (tmp_path / "printed.err").read_text().splitlines() if "following" in line]
    assert {broker for broker in texts for line in rotated if "also following" in line and broker in line} == set(texts)
    lines = [json.loads(line) for line in (tmp_path / "printed").read_text().splitlines()]
    assert lines
    assert lines == told(out)[-len(lines) :]
    assert lines[-1]["suspects"][0]["suspect"] == "broker 3"


@pytest.mark.parametrize("option", ["--overwrite", "--open"])
def test_options_that_have_no_meaning_while_watching_are_refused(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(RECORDING), "--out", str(tmp_path / "out"), "--watch", option]) == 2
    assert f"leave {option} out" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_the_directory_of_another_watch_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "watch-state").write_bytes(
        b'{"logs": ["/other"], "instance": null, "timezone": "UTC", "offsets": {}}\n'
    )
    assert main(["analyze", str(RECORDING), "--out", str(tmp_path), "--watch"]) == 2
    assert "has the state of a watch of /other: name another --out" in capsys.readouterr().err
