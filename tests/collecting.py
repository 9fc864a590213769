"""Let the garbage collector run at every allocation there is, and do the worst a finaliser can do at one of them."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def collecting(at: int, action: Callable[[], object]) -> Iterator[list[int]]:
    """Collect at every chance in this thread; run `action` in the collection number `at`. Yields their count."""
    count = [0]
    this_thread = threading.get_ident()
    pins: list[object] = []

    def hook(phase: str, _: dict[str, int]) -> None:
        if threading.get_ident() != this_thread:
            return
        if phase == "start":
            count[0] += 1
            if count[0] == at:
                action()
        else:
            pins.append([])  # counts as an allocation: the very next one collects again

    assert gc.isenabled(), "an earlier test has left the collector off"
    thresholds = gc.get_threshold()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # while another thread collects, this one's allocations do not
    gc.collect()  # in full, which empties the interpreter's free lists: what comes from those does not count
    gc.callbacks.append(hook)
    gc.set_threshold(1, 10**6, 10**6)  # of the youngest only: all else would take long
    try:
        yield count
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(hook)
