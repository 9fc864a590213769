"""Starts, events, cancels and expiry race in real threads; forks. Each operation ends once (P1, P4, T3)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from abeyant import Resolution, Resolver, SystemTimer, Watch
from seeds import share, with_slow


@pytest.fixture(autouse=True)
def switch_often() -> Iterator[None]:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"count": "after_start", "combine": "sum"},
        {"serves": "oldest"},
        {"serves": "newest", "combine": "sum", "count": "from_start"},
        {"holds": "at_deadline", "combine": "last"},
    ],
    ids=str,
)
@pytest.mark.parametrize("pool", with_slow([0, 3], [0]))
def test_each_operation_ends_once_p1_p4(rules: Any, pool: int) -> None:
    ends: Counter[Any] = Counter()
    taken: Counter[Any] = Counter()
    outcomes: Counter[str] = Counter()
    lock = threading.Lock()
    executor = ThreadPoolExecutor(pool) if pool else None
    number = share(1500)

    with SystemTimer(tick=0.0005, executor=executor) as timer:
        resolver = Resolver(timer, **rules)

        def on_end(resolution: Resolution) -> None:
            with lock:
                ends[resolution.op_id] += 1
                outcomes[resolution.outcome] += 1
            if dice.random() < 0.3:
                resolver.event(dice.randrange(8), dice.randint(-1, 3))

        dice = random.Random(5)

        def work(seed: int) -> None:
            own = random.Random(seed)
            for n in range(number):
                watches = [Watch(own.randrange(8), own.randint(1, 4))]
                watches += [Watch(own.randrange(8, 10), 3, role="cancel")] if own.random() < 0.2 else []
                watches += [Watch(own.randrange(8), role="extend")] if own.random() < 0.2 else []
                watches += [Watch(10, role="pause")] if own.random() < 0.2 else []
                resolver.start((seed, n), watches, timeout=own.choice([0, 0.0003, 0.002]), on_end=on_end)
                resolver.event(own.randrange(11), own.randint(-2, 4))
                if own.random() < 0.1:
                    resolver.forget(own.randrange(10))
                if own.random() < 0.1 and resolver.cancel((seed, n)):
                    with lock:
                        taken[seed, n] += 1

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        resolver.event(10, 0)  # nobody is paused any more
        give_up = time.monotonic() + 60
        while len(resolver):
            assert time.monotonic() < give_up
            time.sleep(0.002)
        for line in resolver._keys.values():
            assert not line.states
            assert not line.users
            assert not getattr(line, "waiting", None)
        if executor is not None:
            executor.shutdown()
    assert ends + taken == Counter({(seed, n): 1 for seed in range(4) for n in range(number)})
    assert min(outcomes["completed"], outcomes["expired"], outcomes["cancelled"]) > 10, outcomes


FORKS = """
import os
from abeyant import ManualTimer, Resolver, Watch
timer, ended = ManualTimer(), []
resolver = Resolver(timer)
resolver.start(1, [Watch("key")], timeout=5, on_end=ended.append)
child = os.fork()
if child == 0:
    assert len(resolver) == 0 and resolver.event("key") == 0
    resolver.forget("key")
    resolver.start(1, [Watch("key")], timeout=5, on_end=ended.append)
    assert resolver.event("key") == 1 and len(ended) == 1
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert resolver.event("key") == 1 and len(ended) == 1
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_what_is_pending_at_a_fork_is_the_parents_p1() -> None:
    subprocess.run([sys.executable, "-c", FORKS], check=True)
