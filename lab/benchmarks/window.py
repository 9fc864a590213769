"""What a window costs the program that it looks at, beside the same program without one.

    python -m lab.benchmarks.window [--quick]

A million timers are pending, and 10,000 operations wait in a purgatory while one thread completes and submits others as
fast as it can. Rounds take turns: no window; a window that nobody looks at; one with an open page (the client is
another process). The thread reads the clocks every 20 operations. Per round: its processor time per operation, and its
longest stall. A stall is the processor time that the process's other threads took between two reads: for so long they
kept the interpreter's lock. The wall clock's longest gap stands beside it; other work on the machine makes that longer.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import statistics
import time
from typing import Any

from abeyant import DelayedOperation, Purgatory, SystemTimer, window

PER_LOOK = 20  # operations between two reads of the clock
SECONDS = 1.0  # a round
MODES = ("no window", "nobody looks", "a page is open")


class Wait(DelayedOperation):
    """Waits until it is completed."""

    def try_complete(self) -> bool:
        """Return False: `change` completes it."""
        return False


def read_events(port: int, stop: Any, events: Any) -> None:
    """Read a page's events until told to stop. In a process of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/events")
    response = connection.getresponse()
    while not stop.is_set():
        if response.readline().startswith(b"data"):
            with events.get_lock():
                events.value += 1


def page_time(port: int) -> tuple[float, int]:
    """Return the seconds for the page and its first event, as a browser asks for them, and the event's bytes."""
    began = time.perf_counter()
    size = 0
    for path in ("/", "/state"):
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", path)
        size = len(connection.getresponse().read())
        connection.close()
    return time.perf_counter() - began, size


def change(purgatory: Purgatory[Wait], waits: list[Wait], seconds: float) -> tuple[float, float, float]:
    """Complete and submit operations for so long; return µs per operation, the longest stall and gap in ms."""
    done = 0
    longest = stalled = 0.0
    place = 0
    began, spent = time.perf_counter(), time.thread_time()
    then = began
    others = time.process_time() - spent
    while then - began < seconds:
        for _ in range(PER_LOOK):
            waits[place].force_complete()
            waits[place] = new = Wait(60.0)
            purgatory.try_complete_else_watch(new, [place])
            place = (place + 1) % len(waits)
        done += PER_LOOK
        now = time.perf_counter()
        longest = max(longest, now - then)
        then = now
        elsewhere = time.process_time() - time.thread_time()
        stalled = max(stalled, elsewhere - others)
        others = elsewhere
    return (time.thread_time() - spent) / done * 1e6, stalled * 1e3, longest * 1e3


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description="what a window costs the program that it looks at")
    parser.add_argument("--quick", action="store_true", help="fewer timers and rounds")
    args, _ = parser.parse_known_args()
    timers, rounds = (100_000, 3) if args.quick else (1_000_000, 9)
    timer = SystemTimer(name="bench")
    purgatory: Purgatory[Wait] = Purgatory("requests", timer)
    for number in range(timers):
        timer.call_later(3600 + number % 80_000, print)
    waits = [Wait(60.0) for _ in range(10_000)]
    for place, wait in enumerate(waits):
        purgatory.try_complete_else_watch(wait, [place])
    costs: dict[str, list[float]] = {mode: [] for mode in MODES}
    stalls: dict[str, list[float]] = {mode: [] for mode in MODES}
    gaps: dict[str, list[float]] = {mode: [] for mode in MODES}
    pages: list[float] = []
    size = 0
    context = multiprocessing.get_context("spawn")
    for _ in range(rounds):
        for mode in MODES:
            view = None if mode == "no window" else window.serve(timer, purgatory)
            reader = None
            if view is not None and mode == "a page is open":
                stop, events = context.Event(), context.Value("i", 0)
                reader = context.Process(target=read_events, args=(view.port, stop, events))
                reader.start()
                while events.value == 0:
                    time.sleep(0.01)
            cost, stall, gap = change(purgatory, waits, SECONDS)
            costs[mode].append(cost)
            stalls[mode].append(stall)
            gaps[mode].append(gap)
            if reader is not None and view is not None:
                stop.set()
                reader.join()
                seconds, size = page_time(view.port)
                pages.append(seconds)
            if view is not None:
                view.close()
    print(f"{timers:,} timers pending, 10,000 operations changing; {rounds} rounds of {SECONDS:g} s each")
    for mode in MODES:
        print(
            f"  {mode:<15} {statistics.median(costs[mode]):.2f} µs of processor time an operation; longest stall "
            f"{statistics.median(stalls[mode]):.2f} ms (worst round {max(stalls[mode]):.2f}); wall clock's longest gap "
            f"{min(gaps[mode]):.1f} ms"
        )
    page_ms = [1e3 * seconds for seconds in pages]
    print(f"  page and first event: {min(page_ms):.0f} ms (median {statistics.median(page_ms):.0f}); {size:,} bytes")
    timer.close()
    purgatory.close("cancel")


if __name__ == "__main__":
    main()
