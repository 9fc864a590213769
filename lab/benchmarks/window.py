"""Measure what the live page (`abeyant.window`) costs the program that it shows, beside the program without a page.

    python -m lab.benchmarks.window [--quick]

A million timers are pending, and 10,000 operations wait in a purgatory while one thread completes and submits others as
fast as it can. Rounds take turns: no window; a window that nobody looks at; a window with an open page (the client is
another process). The thread reads the clocks every 20 operations. For each round we report its processor time per
operation, and its longest stall: the processor time that the process's other threads took between two reads, during
which they held the interpreter's lock. The longest gap on the wall clock is also printed; other work on the machine
makes it longer. A full garbage collection in another thread is a stall, too; the last line says how long these took.
Ratios compare two rounds that follow each other. Meanwhile the other process opens the page again and again and waits
for its first event, as a browser does.
"""

from __future__ import annotations

import argparse
import gc
import http.client
import multiprocessing
import statistics
import threading
import time
from typing import Any

from abeyant import DelayedOperation, Purgatory, SystemTimer, window

PER_LOOK = 20  # operations between two reads of the clock
SECONDS = 1.0  # a round
MODES = ("no window", "nobody looks", "a page is open")


class Wait(DelayedOperation):
    """An operation that waits until `change` completes it."""

    def try_complete(self) -> bool:
        """Return False: only `change` completes the operation."""
        return False


class Stream:
    """An open page's stream of server-sent events."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        connection.request("GET", "/events")
        self.response = connection.getresponse()

    def read(self) -> int:
        """Wait for the next event; return its size in bytes."""
        while not (line := self.response.readline()).startswith(b"data"):
            if not line:
                raise EOFError("the window closed the stream")
        return len(line)


def open_pages(port: int, stop: Any, opened: Any, pages: Any) -> None:
    """Keep a page open, and open another page after each of its events, until `stop` is set. In a process of its own.

    Put the seconds and bytes of each further page on the queue `pages`: of the document and its first event.
    """
    first = Stream(http.client.HTTPConnection("127.0.0.1", port))
    while not stop.is_set():
        first.read()
        opened.set()
        began = time.perf_counter()
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/")
        size = len(connection.getresponse().read())
        another = Stream(connection)  # a browser keeps the connection, too
        size += another.read()
        pages.put((time.perf_counter() - began, size))
        another.response.close()
        connection.close()
    pages.put(None)


def change(purgatory: Purgatory[Wait], waits: list[Wait], seconds: float) -> tuple[float, float, float]:
    """Complete and submit operations for some seconds; return µs per operation, the longest stall and gap in ms."""
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


class Collections:
    """Recorder of the ms that full garbage collections take in threads other than the one that makes the recorder."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self._here = threading.get_ident()
        self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < 2 or threading.get_ident() == self._here:
            return
        if phase == "start":
            self._began = time.thread_time()
        else:
            self.ms.append((time.thread_time() - self._began) * 1e3)


def main() -> None:
    """Measure the cost of a window, and print the figures."""
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
    collections = Collections()
    for _ in range(rounds):
        for mode in MODES:
            view = None if mode == "no window" else window.serve(timer, purgatory)
            reader = None
            if view is not None and mode == "a page is open":
                stop, opened, queue = context.Event(), context.Event(), context.Queue()
                reader = context.Process(target=open_pages, args=(view.port, stop, opened, queue))
                reader.start()
                opened.wait()
            cost, stall, gap = change(purgatory, waits, SECONDS)
            costs[mode].append(cost)
            stalls[mode].append(stall)
            gaps[mode].append(gap)
            if reader is not None:
                stop.set()
                while (page := queue.get()) is not None:
                    pages.append(page[0])
                    size = page[1]
                reader.join()
            if view is not None:
                view.close()
    print(f"{timers:,} timers pending, 10,000 operations changing; {rounds} rounds of {SECONDS:g} s each")
    for mode in MODES:
        ratio = statistics.median(one / beside for one, beside in zip(costs[mode], costs["no window"], strict=True))
        print(
            f"  {mode:<15} {statistics.median(costs[mode]):.2f} µs of processor time an operation ({ratio:.3f}x); "
            f"longest stall {statistics.median(stalls[mode]):.2f} ms (worst round {max(stalls[mode]):.2f}); "
            f"wall clock's longest gap {min(gaps[mode]):.1f} ms"
        )
    plain = sorted(costs["no window"])
    print(f"  without a window the rounds themselves differ by {plain[-1] / plain[0]:.2f}x")
    page_ms = sorted(1e3 * seconds for seconds in pages)
    late = page_ms[int(0.95 * len(page_ms))]
    print(
        f"  page and first event, {len(page_ms)} times meanwhile: median {statistics.median(page_ms):.0f} ms, p95 "
        f"{late:.0f} ms; {size:,} bytes"
    )
    longest = f", {max(collections.ms):.0f} ms at most" if collections.ms else ""
    print(f"  full garbage collections in the window's thread: {len(collections.ms)}{longest}")
    timer.close()
    purgatory.close("cancel")


if __name__ == "__main__":
    main()
