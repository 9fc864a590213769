"""Millions of starts, stops, refreshes and expiries, and the memory that is left behind: none, it should be.

    python tests/engine/soak.py [--operations 20000000] [--subject wheel ...] [--trace]

In rounds. In each a few thousand timers are pending while others come and go; most are part of a reference cycle
through their callback, handles are dropped as often as kept, and some whole timers are dropped with all that is in
them. After a round everything has ended and the collector has run, so what the process holds must be what it held
after the round before. The first rounds are left out: caches fill, arrays reach their size.

Under valgrind or a sanitizer the resident memory says nothing: they hold freed memory back on purpose.
`--trace` says where memory grew (tracemalloc; slow). Prints a line a subject as JSON; exit code 1 for a leak.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import sys
import threading
import time
import tracemalloc
import weakref
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from abeyant import ManualTimer, SystemTimer, TimerTask
from abeyant.engine import TimingWheel
from abeyant.kernels.bulk import BulkWheel
from abeyant.kernels.replay import NEVER, replay

ROUNDS, WARM_UP = 10, 4
PENDING = 3000
SAMPLE = 16  # every so manyth object has a weak reference on it
PATIENCE = 30.0  # seconds for a thread to end, or for timers to expire

# Blocks: a few of them belong to the interpreter's own caches, and to the counting. Bytes: the allocator gives memory
# back by the arena. A leak of one object, or of one slot, in a hundred operations is far beyond either.
BLOCKS_ALLOWED = 500
BYTES_ALLOWED = 4 << 20


class Growth(NamedTuple):
    """From after the warm-up to the end."""

    operations: int
    blocks: int  # that the interpreter's allocator has handed out
    resident: int  # bytes
    alive: int  # sampled objects that something still refers to, the collector having run

    @property
    def leaks(self) -> bool:
        return self.blocks > BLOCKS_ALLOWED or self.resident > BYTES_ALLOWED or self.alive > 0


class Load:
    """What a timer calls. With its handle kept it is in a cycle: load -> handle, and timer -> bound method -> load."""

    __slots__ = ("__weakref__", "itself", "task")

    def __init__(self) -> None:
        self.itself = self
        self.task: object = None

    def __call__(self, *_: object) -> None:
        self.task = None


Watch = list["weakref.ref[Any]"]
Round = Callable[[int, random.Random, Watch], None]  # does so many operations, and ends all that it began


def _load(number: int, watch: Watch) -> Load:
    load = Load()
    if number % SAMPLE == 0:
        watch.append(weakref.ref(load))
    return load


def _until(done: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + PATIENCE
    while not done():
        if time.monotonic() > give_up:
            raise TimeoutError(what)
        time.sleep(0.001)


class Wheel:
    """The bare wheel; a new one now and then, the old one dropped as it is."""

    def __init__(self) -> None:
        self.wheel = TimingWheel(10, 16)

    def __call__(self, operations: int, rng: random.Random, watch: Watch) -> None:
        wheel = self.wheel
        handles: list[int] = []
        for number in range(operations):
            match rng.randrange(8):
                case 0 | 1 | 2 if len(wheel) < PENDING:
                    handles.append(wheel.add(wheel.clock + rng.choice((0, 7, 900, 100_000)), _load(number, watch)))
                case 3 | 4 if handles:
                    wheel.refresh(rng.choice(handles), wheel.clock + rng.randrange(5000))
                case 5 | 6 if handles:
                    wheel.remove(handles.pop(rng.randrange(len(handles))))
                case _:
                    wheel.advance(wheel.clock + rng.randrange(60), 50)
            if number % 1000 == 999:
                del handles[: -PENDING // 2]  # lost, and still pending
        if rng.random() < 0.3:
            self.wheel = TimingWheel(10, 16)
        else:
            wheel.drain()


class Bulk:
    """Columns into the wheel and out of it, and through the replay."""

    def __init__(self) -> None:
        self.wheel = BulkWheel(10, 16)

    def __call__(self, operations: int, rng: random.Random, watch: Watch) -> None:
        done = 0
        while done < operations:
            now = self.wheel.clock
            deadlines = array("q", [now + rng.randrange(100_000) for _ in range(PENDING)])
            handles = self.wheel.add_many(deadlines)
            self.wheel.refresh_many(handles[::3], deadlines[::3])
            self.wheel.remove_many(handles[::2])
            self.wheel.advance(now + 40_000)
            ends = array("q", [rng.choice((NEVER, deadline)) for deadline in deadlines])
            replay(deadlines, array("q", [7000]) * PENDING, ends, tick=100)
            self.wheel.remove_many(handles)
            done += 5 * PENDING


class Manual:
    """The virtual clock, callbacks that start the next, and timers that are dropped with all that is in them."""

    def __init__(self) -> None:
        self.timer = ManualTimer(tick=0.001)

    def __call__(self, operations: int, rng: random.Random, watch: Watch) -> None:
        timer = self.timer
        kept: list[TimerTask] = []
        for number in range(operations):
            match rng.randrange(8):
                case 0 | 1 | 2 if len(timer) < PENDING:
                    load = _load(number, watch)
                    load.task = task = timer.call_later(rng.choice((0.0, 0.01, 1.0, 300.0)), load)
                    if rng.random() < 0.5:
                        kept.append(task)
                case 3 | 4 if kept:
                    rng.choice(kept).refresh()
                case 5 | 6 if kept:
                    kept.pop(rng.randrange(len(kept))).cancel()
                case _:
                    timer.advance(0.005)
            if number % 1000 == 999:
                del kept[: -PENDING // 2]
                dropped = ManualTimer()
                watch.append(weakref.ref(dropped))
                for delay in (1.0, 1e6):
                    load = _load(0, watch)
                    load.task = dropped.call_later(delay, load, dropped)  # timer -> task -> timer
        timer.advance(400.0)
        assert len(timer) == 0


class System:
    """The thread: expiries race with stops and refreshes; timers are closed, and dropped while idle."""

    def __init__(self) -> None:
        self.timer = SystemTimer("soak")
        self.timer.call_later(0.0, int)

    def __call__(self, operations: int, rng: random.Random, watch: Watch) -> None:
        timer = self.timer
        kept: list[TimerTask] = []
        for number in range(operations):
            match rng.randrange(4):
                case 0 | 1 if len(timer) < PENDING:
                    load = _load(number, watch)
                    load.task = task = timer.call_later(rng.choice((0.0, 0.002, 0.02)), load)
                    if rng.random() < 0.5:
                        kept.append(task)
                case 2 if kept:
                    rng.choice(kept).refresh()
                case 3 if kept:
                    kept.pop(rng.randrange(len(kept))).cancel()
                case _:
                    time.sleep(0.0005)
            if number % 1000 == 999:
                del kept[: -PENDING // 2]
        kept.clear()
        threads = threading.active_count()
        for ends in ("closed", "dropped", "dropped"):
            other = SystemTimer("dropped")
            watch.append(weakref.ref(other))
            load = _load(0, watch)
            load.task = other.call_later(3600.0 if ends == "closed" else 0.0, load, other)
            if ends == "closed":
                other.close()
            else:
                _until(lambda other=other: not len(other), "a task that was due did not run")  # type: ignore[misc]
        del other, load
        _until(lambda: not len(timer), "timers that were due did not run")
        # A callback that has just left the wheel may be running; its thread's frame lets go of it a moment later.
        _until(lambda: not gc.collect() and threading.active_count() <= threads, "a dropped timer's thread goes on")


SUBJECTS: dict[str, Callable[[], Round]] = {"wheel": Wheel, "bulk": Bulk, "manual": Manual, "system": System}


def resident() -> int:
    """The process's resident memory, in bytes; 0 where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def soak(name: str, operations: int, trace: bool = False) -> Growth:
    """Run one subject; `operations` in all, warm-up included."""
    rng = random.Random(1)
    subject = SUBJECTS[name]()
    before = (0, 0)
    snapshot = None
    alive = 0
    for number in range(ROUNDS):
        watch: Watch = []
        subject(operations // ROUNDS, rng, watch)
        gc.collect()
        if any(reference() is not None for reference in watch):
            time.sleep(0.05)  # a thread's frame may be about to let go
            gc.collect()
        alive += sum(reference() is not None for reference in watch)
        del watch
        if number == WARM_UP - 1:
            before = sys.getallocatedblocks(), resident()
            if trace:
                tracemalloc.start(10)
                snapshot = tracemalloc.take_snapshot()
    growth = Growth(operations, sys.getallocatedblocks() - before[0], resident() - before[1], alive)
    if snapshot is not None:
        for line in tracemalloc.take_snapshot().compare_to(snapshot, "lineno")[:10]:
            print(line, file=sys.stderr)
        tracemalloc.stop()
    return growth


def main() -> int:
    """Soak what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--operations", type=int, default=20_000_000, help="for each subject")
    parser.add_argument("--subject", choices=SUBJECTS, nargs="+", default=list(SUBJECTS))
    parser.add_argument("--trace", action="store_true", help="say where memory grew")
    options = parser.parse_args()
    leaks = False
    for name in options.subject:
        began = time.monotonic()
        growth = soak(name, options.operations, options.trace)
        seconds = round(time.monotonic() - began, 1)
        print(json.dumps({"subject": name, **growth._asdict(), "leaks": growth.leaks, "seconds": seconds}), flush=True)
        leaks |= growth.leaks
    return int(leaks)


if __name__ == "__main__":
    sys.exit(main())
