"""Real threads against one purgatory on a real clock, every end of every operation counted (P1-P4).

    python tests/purgatory/stress.py [--seconds 5] [--without PART]

In a round, submitters hand in operations that wait on two keys each, and advancers move each key on, once,
and check it, once. Both go through the keys in the same order, and a key waits for an operation that wants it
before it moves on, so it moves on just as the operation comes in. Many have a deadline within the round; some
share a lock; some complete others from inside; a meddler cancels some and steals the ends of others; contestants
submit one operation to two purgatories at once. After the round, with every thread back, each operation must have
ended exactly once, with nobody's further help: one that is fulfilled and still pending has lost its wake-up.

Threads are made to give way at any line of the purgatory (where it is interpreted), for the gaps in which
races happen are a few bytecodes wide.

`--without` takes one part of the purgatory out, to show that this test would notice (see PARTS); only where it is
interpreted (ABEYANT_PURE=1), for that is where parts can be taken out. Prints what it found as JSON; exit code 1
if it found anything.
"""

from __future__ import annotations

import _thread
import argparse
import json
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import partial
from types import FrameType, TracebackType
from typing import Any

from abeyant.purgatory import (
    DelayedOperation,
    OperationReusedError,
    Purgatory,
    nesting,
    operation,
    thread_state,
)
from abeyant.purgatory.ports import ReentrantLock
from abeyant.timer import SystemTimer

KEYS = tuple(range(12))
SUBMITTERS, ADVANCERS, MEDDLERS, CONTESTANTS = 3, 2, 1, 2
HOT = "hot"  # a key that most operations wait on, and that always has what they want
NEVER = "never"  # a key that never has what they want
LONG = 600.0  # seconds: beyond any run
DAEMONS = getattr(_thread, "daemon_threads_allowed", lambda: True)()  # subinterpreters may allow none
STUCK = 5.0  # seconds without an end to a round: a deadlock


class NoLock:
    """A lock that keeps nobody out."""

    def acquire(self, blocking: bool = True, /) -> bool:
        return True

    def release(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class Stressed(DelayedOperation):
    """Waits until the progress of its keys has reached its levels; counts all that happens to it."""

    def __init__(self, arena: Round, key: int, random: random.Random, lock: ReentrantLock | None) -> None:
        hopeless = random.random() < 0.2
        timeouts = (0.0, 0.001) if hopeless else (LONG, LONG, LONG, 0.0, 0.001)
        super().__init__(random.choice(timeouts), lock=lock)
        self.arena = arena
        self.keys = (key, (key + 1) % len(KEYS), NEVER if hopeless else HOT)
        self.pokes = random.random() < 0.1
        self.inside = 0  # the thread that is in its code
        self.wins: list[str] = []  # every "it was me who ended it"; appending is atomic
        self.completions: list[int] = []
        self.expirations: list[int] = []

    def fulfilled(self) -> bool:
        return all(self.arena.moved[key] for key in self.keys)

    def enter(self) -> bool:
        """Note who is in; True where this is the outermost call of this thread's."""
        me = threading.get_ident()
        if self.inside == me:
            return False
        if self.inside:
            self.arena.found["two threads inside one operation"] += 1
        self.inside = me
        return True

    def try_complete(self) -> bool:
        outermost = self.enter()
        try:
            fulfilled = self.fulfilled()
            self.arena.dawdle()
            if not fulfilled:
                return False
            won = self.force_complete()
            if won:
                self.wins.append("completed")
            return won
        finally:
            if outermost:
                self.inside = 0

    def on_complete(self) -> None:
        outermost = self.enter()
        self.completions.append(1)
        self.arena.dawdle()
        if self.expirations:
            self.arena.found["on_expiration before on_complete"] += 1
        if self.pokes:
            self.arena.poke()
        if outermost:
            self.inside = 0

    def on_expiration(self) -> None:
        outermost = self.enter()
        if not self.completions:
            self.arena.found["on_expiration before on_complete"] += 1
        self.expirations.append(1)
        self.wins.append("expired")
        if outermost:
            self.inside = 0


class Round:
    """One round: threads run to its end, then everything is counted."""

    def __init__(
        self,
        purgatory: Purgatory[Stressed],
        rival: Purgatory[Stressed],
        seed: int,
        found: Counter[str],
        no_lock: bool,
    ) -> None:
        self.purgatory = purgatory
        self.seed = seed
        self.found = found
        self.no_lock = no_lock
        self.moved: dict[Hashable, bool] = {**dict.fromkeys(KEYS, False), HOT: True, NEVER: False}
        self.operations: list[Stressed] = []
        self.shared = threading.RLock()
        self.start = threading.Barrier(SUBMITTERS + ADVANCERS + MEDDLERS + CONTESTANTS)
        self.contested = [Stressed(self, key, random.Random(seed), None) for key in KEYS]
        self.together = threading.Barrier(CONTESTANTS)
        self.rival = rival
        self.refusals: list[Stressed] = []
        self.wanted = {key: threading.Event() for key in KEYS}  # set when somebody is about to wait on it

    def dawdle(self) -> None:
        """Now and then let other threads in, at the worst of moments; sometimes for so long that they do come."""
        dice = random.random()
        if dice < 0.3:
            time.sleep(0.0005 if dice < 0.06 else 0)

    def poke(self) -> None:
        """What an operation does to others from inside its own code; in every second round nothing.

        For to check the hot key makes good for a wake-up that was lost.
        """
        if self.seed % 2:
            return
        if random.random() < 0.5:
            self.purgatory.check_and_complete(HOT)
        else:
            self.steal(random.choice(self.operations[-6:] or self.contested))  # those that others are at just now

    def steal(self, operation: Stressed) -> None:
        if operation.force_complete():
            operation.wins.append("stolen")

    def submit(self, number: int) -> None:
        rng = random.Random(f"{self.seed} {number}")
        for key in KEYS:
            lock: Any = NoLock() if self.no_lock else self.shared if rng.random() < 0.3 else None
            wait = Stressed(self, key, rng, lock)
            self.operations.append(wait)
            self.wanted[wait.keys[1]].set()
            self.purgatory.try_complete_else_watch(wait, wait.keys)

    def advance(self, number: int) -> None:
        for key in KEYS:
            if key % ADVANCERS == number % ADVANCERS:
                self.wanted[key].wait(0.01 if key else 0)  # the worst of moments: just as operations come in
                self.moved[key] = True
                self.purgatory.check_and_complete(key)
                if key % 5 == 4:
                    time.sleep(0.001)  # deadlines pass just as others are fulfilled

    def meddle(self, number: int) -> None:
        rng = random.Random(f"{self.seed} {number} meddle")
        for _ in range(4):
            time.sleep(0.001)
            if self.operations:
                wait = rng.choice(self.operations)
                if rng.random() < 0.5 or self.purgatory.cancel(wait):
                    self.steal(wait)
        for wait in self.purgatory.cancel_for_key(rng.choice(KEYS)) if rng.random() < 0.2 else []:
            self.steal(wait)

    def contest(self, number: int) -> None:
        """Submit what another thread submits to another purgatory at the same moment: one of the two gets it."""
        target = self.purgatory if number % 2 else self.rival
        for wait in self.contested:
            self.together.wait()
            try:
                target.try_complete_else_watch(wait, wait.keys)
            except OperationReusedError:
                self.refusals.append(wait)

    def guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001  counted
            self.found[f"raised {error!r:.80}"] += 1

    def at_once(self, action: Callable[[int], None], number: int) -> None:
        self.start.wait()
        action(number)

    def all_end(self, actions: list[Callable[[], None]], seconds: float) -> bool:
        """Run each in a thread of its own; tell whether all ended within so many seconds."""
        threads = [threading.Thread(target=self.guarded, args=[action], daemon=DAEMONS) for action in actions]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + seconds
        for thread in threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            import faulthandler  # which subinterpreters cannot import

            faulthandler.dump_traceback(sys.stderr)
            self.found["stuck"] += 1
            return False
        return True

    def run(self) -> None:
        actions = [self.submit] * SUBMITTERS + [self.advance] * ADVANCERS + [self.meddle] * MEDDLERS
        actions += [self.contest] * CONTESTANTS
        if self.all_end([partial(self.at_once, action, number) for number, action in enumerate(actions)], STUCK):
            # In a thread too, for what a broken purgatory has left locked is waited for.
            self.all_end([self.count], 2 * STUCK)

    def count(self) -> None:
        for wait in self.contested:
            self.steal(wait)
            if self.refusals.count(wait) != CONTESTANTS - 1:
                self.found[f"accepted {CONTESTANTS - self.refusals.count(wait)} times"] += 1
        self.operations += self.contested
        time.sleep(0.005)  # the last deadlines pass; an operation may be in the timer's hands even then
        deadline = time.monotonic() + 1
        for wait in self.operations:
            while wait.timeout < LONG and len(wait.wins) == 0 and time.monotonic() < deadline:
                time.sleep(0.001)
            wait.lock.acquire()  # whoever is still inside finishes first
            wait.lock.release()
            if not wait.is_completed:
                self.found["lost wake-up" if wait.timeout == LONG else "never expired"] += 1
            elif len(wait.wins) != 1:
                self.found[f"ended {len(wait.wins)} times"] += 1
            elif len(wait.completions) != 1:
                self.found[f"on_complete ran {len(wait.completions)} times"] += 1
            elif len(wait.expirations) != (wait.outcome == "expired"):
                self.found[f"on_expiration ran {len(wait.expirations)} times"] += 1
        for purgatory in (self.purgatory, self.rival):
            if (purgatory.watched, purgatory.watched_keys, purgatory.delayed) != (0, 0, 0):
                self.found["left in the purgatory"] += 1
            try:
                purgatory._check()
            except AssertionError as error:
                self.found[f"invariant: {error!s:.80}"] += 1


def give_way(frame: FrameType, event: str, argument: object) -> TraceFunction | None:
    """A trace function: in the code under test, let another thread in at a line in fifty."""
    return give_way_at_lines if frame.f_code.co_filename.startswith(TRACED) else None


def give_way_at_lines(frame: FrameType, event: str, argument: object) -> TraceFunction | None:
    if random.random() < 0.02:
        time.sleep(0)
    return give_way_at_lines


TRACED = (os.path.dirname(os.path.dirname(nesting.__file__)), __file__)
TraceFunction = Callable[[FrameType, str, Any], Any]


# -- the parts that can be taken out


class WithoutSecondTry(Purgatory[Stressed]):
    """Try, watch, start the timer."""

    tries = threading.local()

    def try_complete_else_watch(self, operation: Stressed, keys: Iterable[Hashable]) -> bool:
        self.tries.left = 1
        self.tries.operation = operation
        try:
            return super().try_complete_else_watch(operation, keys)
        finally:
            self.tries.operation = None

    def _attempt(self, operation: DelayedOperation) -> bool:
        if getattr(self.tries, "operation", None) is operation:
            if self.tries.left == 0:
                return False
            self.tries.left -= 1
        return super()._attempt(operation)


def without_adoption_lock(timer: SystemTimer) -> Purgatory[Stressed]:
    vars(operation)["_UNSUBMITTED"] = NoLock()
    return Purgatory("stress", timer)


class WithoutStoppingTheTimer(Purgatory[Stressed]):
    """The timer is noted as started, whether or not the operation ended meanwhile."""

    def _start_timer(self, operation: DelayedOperation) -> None:
        operation._dop_task = self._timer.call_later(operation.timeout, self._expire, operation)
        with self._directory._lock:
            self._delayed += 1


def without_lists_lock(timer: SystemTimer) -> Purgatory[Stressed]:
    purgatory: Purgatory[Stressed] = Purgatory("stress", timer)
    no_lock: Any = NoLock()
    purgatory._directory._lock = no_lock
    return purgatory


def wait_inside(operation: nesting.Locked) -> bool:
    """A thread inside one operation waits for another's lock."""
    nesting._take(operation, True)
    thread_state.set_depth(thread_state.depth() + 1)
    return True


def without_the_rule_of_nesting(timer: SystemTimer) -> Purgatory[Stressed]:
    for module in (nesting, operation):
        vars(module)["enter_at_any_depth"] = wait_inside
    return Purgatory("stress", timer)


PARTS: dict[str, Callable[[SystemTimer], Purgatory[Stressed]]] = {
    "nothing": lambda timer: Purgatory("stress", timer),
    "operation-lock": lambda timer: Purgatory("stress", timer),  # see Round.submit
    "lists-lock": without_lists_lock,
    "adoption-lock": without_adoption_lock,
    "second-try": lambda timer: WithoutSecondTry("stress", timer),
    "stopping-the-timer": lambda timer: WithoutStoppingTheTimer("stress", timer),
    "rule-of-nesting": without_the_rule_of_nesting,
}
"""The last two have tests of their own that are sure to notice, in test_laws.py and test_reentrancy.py."""


def stress(seconds: float, without: str = "nothing", seed: int = 0) -> dict[str, object]:
    """Rounds for so many seconds, or until something is found."""
    found: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    rounds = operations = 0
    began = time.monotonic()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    tracer = threading.gettrace()
    threading.settrace(give_way)
    timer = SystemTimer("stress")
    try:
        purgatory = PARTS[without](timer)
        rival: Purgatory[Stressed] = Purgatory("rival", timer)
        while not found and time.monotonic() < began + seconds:
            this = Round(purgatory, rival, seed + rounds, found, no_lock=without == "operation-lock")
            this.run()
            rounds += 1
            operations += len(this.operations)
            outcomes.update(wait.wins[0] for wait in this.operations if wait.wins)
            if not found and len(timer):
                found["left in the timer"] += len(timer)
        # Where threads are stuck, asking or closing would be stuck with them.
        if "stuck" not in found and purgatory.stats().errors:
            found["errors reported"] += purgatory.stats().errors
    finally:
        threading.settrace(tracer)
        sys.setswitchinterval(interval)
        if "stuck" not in found:
            timer.close()
    return {
        "without": without,
        "found": dict(found),
        "seconds": round(time.monotonic() - began, 3),
        "rounds": rounds,
        "operations": operations,
        "outcomes": dict(outcomes),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--without", choices=PARTS, default="nothing")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    result = stress(options.seconds, options.without, options.seed)
    print(json.dumps(result), flush=True)
    return 1 if result["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
