"""What the purgatory's tests share: a virtual clock and a purgatory that ends each test sound and empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from abeyant.purgatory import Purgatory
from abeyant.timer import ManualTimer
from purgatory.waits import Wait


@pytest.fixture
def timer() -> Iterator[ManualTimer]:
    with ManualTimer() as timer:
        yield timer


@pytest.fixture
def reported() -> list[tuple[Exception, Wait]]:
    return []


@pytest.fixture
def purgatory(timer: ManualTimer, reported: list[tuple[Exception, Wait]]) -> Iterator[Purgatory[Wait]]:
    purgatory: Purgatory[Wait] = Purgatory("test", timer, on_error=lambda error, wait: reported.append((error, wait)))
    yield purgatory
    purgatory._check()
    purgatory.close()
    purgatory._check()
    assert purgatory.watched == purgatory.watched_keys == purgatory.delayed == 0
