"""K1 with a data directory: kill -9 loses nothing that was acknowledged, and the brokers start again by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.kill import run


@pytest.mark.slow
def test_killed_brokers_lose_nothing(tmp_path: Path) -> None:
    assert run(tmp_path, rounds=2, seed=1) >= 1_000
