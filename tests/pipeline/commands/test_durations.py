"""Durations on a command line are what was written, to the last bit."""

from __future__ import annotations

import argparse

import pytest

from abeyant.pipeline.commands import replay
from abeyant.pipeline.commands.durations import duration, duration_or


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    replay.add_arguments(parser.add_subparsers())
    return parser.parse_args(["replay", "logs", "--out", "out", *options])


def test_milliseconds_are_whole() -> None:
    args = parsed("--timeout", "9ms,1.001s,0.3m,own,1d", "--tick", "9ms,0.5ms,1.001s")
    assert args.timeout == [9, 1_001, 18_000, None, 86_400_000]
    assert args.tick == [9.0, 0.5, 1_001.0]
    assert [replay._ms_or_own(f"{ms}ms") for ms in range(3_000)] == list(range(3_000))


def test_seconds_are_the_nearest_float() -> None:
    assert [duration(text) for text in ("9ms", "0.1s", "1.5h")] == [0.009, 0.1, 5_400.0]
    assert duration_or("off")("off") is None


@pytest.mark.parametrize("timeout", ["0.5ms", "1.0005s"])
def test_a_part_of_a_millisecond_is_no_time_out(timeout: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--timeout", timeout)
    assert f"'{timeout}' is not a whole number of milliseconds" in capsys.readouterr().err


def test_what_is_longer_than_anybody_waits_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed("--timeout", "9" * 400 + "d")
    assert "is longer than ten thousand years (3652500d)" in capsys.readouterr().err
    assert duration("3652500d") == 3_652_500 * 86_400
