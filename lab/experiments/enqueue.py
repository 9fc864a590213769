"""Run the published benchmark of purgatories: how many requests per second can be enqueued, and at what cost.

Source: Apache Kafka `TestPurgatoryPerformance`, which made the figures of "Apache Kafka, Purgatory, and Hierarchical
Timing Wheels" (Matsuda, 2015). Requests arrive at a target rate. Each waits on three keys, with a time-out of 200 ms. A
second thread completes the requests whose latency is shorter. Past saturation, requests cannot be submitted at their
planned times, and the achieved rate stays behind the target rate.
"""

from __future__ import annotations

import gc
import subprocess
import threading
import time
from array import array
from contextlib import nullcontext
from time import monotonic_ns
from typing import Any, ClassVar, Final

from abeyant import DelayedOperation
from abeyant.engine import TimingWheel, is_compiled
from abeyant.errors import AbeyantError
from abeyant.pages.figure import Figure
from lab import jvm
from lab.claim import MATSUDA, Claim, Finding, Verdict
from lab.experiment import Experiment, Measure, Parameters
from lab.experiments.workload import LOADS, TIMEOUT_MS, arrivals, latencies, timed_out_share
from lab.look import line, title
from lab.panels import (
    LOG,
    RATE,
    Panel,
    figure_of,
    hover_words,
    in_order,
    measured_axis,
)
from lab.purgatories import DESIGNS, PURGE_INTERVAL, Room
from lab.run import Run

RATES = (10_000, 25_000, 40_000, 70_000, 100_000, 200_000, 300_000, 500_000)
_PYTHON = ("ours", "kafka", "old")
_KEYS = ["fakeKey17", "fakeKey42", "fakeKey73"]  # as there: three of a hundred, chosen once
_MS = 1_000_000  # ns
_WARM_SECONDS = 2.0  # the JVM's compiler needs a while before it is measured


def grid(quick: bool) -> list[tuple[str, Parameters]]:
    """Return the grid: target rates from 10 k/s to past saturation, few and many time-outs.

    A cell has up to 1 M requests, planned over 6 s; past saturation it is stopped after 12 s.
    """
    rates = (25_000, 100_000, 500_000) if quick else RATES
    loads = ("low",) if quick else tuple(LOADS)
    seconds = 2 if quick else 6
    return [
        (
            design,
            {
                "load": load,
                "rate": rate,
                "requests": min(1_000_000, rate * seconds),
                "seconds": 2 * seconds,
                "size": 100,
                "memory_mb": 512,
                "purge_interval": PURGE_INTERVAL,
            },
        )
        for load in loads
        for rate in rates
        for design in (*_PYTHON, "kafka-jvm")
    ]


def measure(design: str, parameters: Parameters) -> list[Measure]:
    """Measure one run of the benchmark, in this process (genuine Kafka: in a JVM)."""
    if design == "kafka-jvm":
        return _measure_on_jvm(parameters)
    return _measure(design, parameters)


class Request(DelayedOperation):
    """A request of the benchmark: an operation that completes when its latency is over."""

    __slots__ = ("completes_at", "data", "started")

    late: ClassVar[list[int]] = []
    """By how many ns each expired request was late."""

    def __init__(self, now: int, latency: int, size: int) -> None:
        DelayedOperation.__init__(self, TIMEOUT_MS / 1000)
        self.started = now
        self.completes_at = now + latency
        self.data = bytearray(size)

    def try_complete(self) -> bool:
        """Complete if the latency is over (see `DelayedOperation.try_complete`)."""
        return monotonic_ns() >= self.completes_at and self.force_complete()

    def on_expiration(self) -> None:
        """Record how late this request expired."""
        self.late.append(monotonic_ns() - self.started - TIMEOUT_MS * _MS)


class Completer(threading.Thread):
    """Thread that completes requests when their latency is over, and samples how many wait."""

    def __init__(self, room: Room) -> None:
        super().__init__(name="completer", daemon=True)
        self._queue = TimingWheel(_MS, 256, monotonic_ns())
        self._lock = threading.Lock() if not is_compiled() else nullcontext()  # the GIL does, where it is one C call
        self._room = room
        self._ends = False
        self.watched = self.pending = 0

    def add(self, request: Request) -> None:
        """Complete the request when its latency is over."""
        with self._lock:
            self._queue.add(request.completes_at, request)

    def run(self) -> None:
        """Complete the requests that are due, every millisecond."""
        purgatory = self._room.purgatory
        while not self._ends:
            with self._lock:
                due: list[Any] = self._queue.advance(monotonic_ns())
            for request in due:
                request.force_complete()
            self.watched = max(self.watched, purgatory.watched)
            self.pending = max(self.pending, purgatory.delayed)
            time.sleep(0.001)

    def stop(self) -> None:
        """Stop the thread, and wait until it has ended."""
        self._ends = True
        self.join()


class Collections:
    """Recorder of the ns that the garbage collector's runs take: their total and the longest."""

    def __init__(self) -> None:
        self.total = self.longest = 0
        self._began = 0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.perf_counter_ns()
        else:
            spent = time.perf_counter_ns() - self._began
            self.total += spent
            self.longest = max(self.longest, spent)


def _measure(design: str, parameters: Parameters) -> list[Measure]:
    from numpy.random import default_rng

    count, rate = int(parameters["requests"]), int(parameters["rate"])
    load = LOADS[str(parameters["load"])]
    random = default_rng(17)
    plan = array("q", arrivals(count, rate, random).tobytes()), array("q", latencies(count, load, random).tobytes())
    Request.late.clear()
    room = DESIGNS[design].real(int(parameters["purge_interval"]))
    completer = Completer(room)
    collections = Collections()
    completer.start()
    gc.collect()
    cpu = time.process_time_ns()
    began = monotonic_ns()
    submitted = _enqueue(plan, room, completer, int(parameters["size"]), began, int(parameters["seconds"]))
    enqueued = monotonic_ns()
    drained = _drain(room, submitted)
    cpu = time.process_time_ns() - cpu
    completer.stop()
    ended, expired = room.ended()
    room.close()
    expected = sum(latency >= TIMEOUT_MS * _MS for latency in plan[1][:submitted])
    late = sorted(Request.late)
    return [
        Measure("achieved rate", submitted * 1e9 / (enqueued - began), "requests/s"),
        Measure("sustained rate", submitted * 1e9 / max(drained - began - TIMEOUT_MS * _MS, 1), "requests/s"),
        Measure("target rate", rate, "requests/s"),
        Measure("submitted", submitted, "requests"),
        Measure("not ended", submitted - ended, "requests"),
        Measure("CPU a request", cpu / submitted / 1_000, "us"),
        Measure("CPU", cpu / 1e9, "s"),
        Measure("collector", collections.total / 1e6, "ms"),
        Measure("longest pause", collections.longest / 1e6, "ms"),
        Measure("watched, most", completer.watched, "watches"),
        Measure("in the timer, most", completer.pending, "operations"),
        Measure("timed out", expired / submitted, "share"),
        Measure("timed out, expected", expected / submitted, "share"),
        Measure("timed out, of the distribution", timed_out_share(load), "share"),
        Measure("lateness, median", _at(late, 0.5) / _MS, "ms"),
        Measure("lateness, 99 %", _at(late, 0.99) / _MS, "ms"),
        Measure("lateness, most", _at(late, 1.0) / _MS, "ms"),
        Measure("early", sum(lateness < 0 for lateness in late), "requests"),
        Measure("until all had ended", (drained - enqueued) / 1e9, "s"),
        Measure("out of memory", 0, "runs"),
    ]


def _measure_on_jvm(parameters: Parameters) -> list[Measure]:
    """Measure one run in a JVM of its own. Raise AbeyantError with the first line of its output if it fails."""
    load = LOADS[str(parameters["load"])]
    numbers = [
        parameters["requests"], parameters["rate"], load.p50, load.p75, parameters["size"],
        parameters["purge_interval"], parameters["seconds"], _WARM_SECONDS,
    ]  # fmt: skip
    command = jvm.command("lab.Enqueue", f"{parameters['memory_mb']}m", *numbers)
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if "OutOfMemoryError" in ran.stderr:
        return [Measure("out of memory", 1, "runs")]
    rows = [line.split("\t") for line in ran.stdout.splitlines()]
    if ran.returncode or not rows:
        said = (ran.stderr or ran.stdout).strip().splitlines()
        raise AbeyantError(f"the JVM ended with status {ran.returncode}: {said[0] if said else 'no output'}")
    return [Measure(metric, float(value), unit) for metric, value, unit in rows]


def _enqueue(
    plan: tuple[array[int], array[int]], room: Room, completer: Completer, size: int, began: int, seconds: int
) -> int:
    """Submit each request at its planned time; give up after `seconds`. Return how many were submitted."""
    submit, complete = room.purgatory.try_complete_else_watch, completer.add
    patience = TIMEOUT_MS * _MS
    gives_up = began + seconds * 1_000_000_000
    submitted = 0
    for at, latency in zip(*plan, strict=True):
        now = monotonic_ns()
        if began + at > now:
            time.sleep((began + at - now) / 1e9)
            now = monotonic_ns()
        elif now > gives_up:
            break
        request = Request(now, latency, size)
        submit(request, _KEYS)
        if latency < patience:
            complete(request)
        submitted += 1
    return submitted


def _drain(room: Room, submitted: int) -> int:
    """Wait until all submitted requests have ended, at most 30 s; return the time (ns)."""
    until = time.monotonic() + 30
    while room.ended()[0] < submitted and time.monotonic() < until:
        time.sleep(0.002)
    return monotonic_ns()


def _at(sorted_values: list[int], quantile: float) -> float:
    return float(sorted_values[min(int(len(sorted_values) * quantile), len(sorted_values) - 1)]) if sorted_values else 0


def _kilo(rate: float) -> str:
    return f"{rate / 1_000:,.0f} k/s"


def _peaks(run: Run, metric: str) -> dict[str, float]:
    """Return each design's highest value of a rate (`metric`), with few time-outs."""
    rows = run.of(load="low").dropna(subset=[metric])
    return {str(design): float(rate) for design, rate in rows.groupby("design")[metric].max().items()}


def _saturation(run: Run) -> Finding:
    peaks = _peaks(run, "sustained rate")
    if not {"old", "kafka", "ours"} <= set(peaks):
        return Finding("not decided", "the run has not measured the old design, Kafka's and ours")
    named = {"old": "the old design", "kafka": "Kafka's design in Python", "ours": "ours", "kafka-jvm": "genuine Kafka"}
    said = ", ".join(f"{words} {_kilo(peaks[design])}" for design, words in named.items() if design in peaks)
    ratio = peaks["kafka"] / peaks["old"]
    verdict: Verdict = "held" if ratio >= 2 else "held in part" if ratio >= 1.2 else "not held here"
    said = f"enqueued and ended, at best: {said}; Kafka's design {ratio:.1f} times the old one (2 decides)"
    few, many = (_kilo(_kept_up(run, "old", load)) for load in ("low", "high"))
    return Finding(verdict, f"{said}. The old one keeps up with {few} where few time out, with {many} where many do")


def _kept_up(run: Run, design: str, load: str) -> float:
    """Return the highest target rate of which a design sustained 95 %; 0 if there is none."""
    rows = run.of(design, load=load)
    kept = rows[rows["sustained rate"] >= 0.95 * rows["rate"]]["rate"]
    return float(kept.max()) if len(kept) else 0.0


def _ours_at_300k(run: Run) -> Finding:
    rates = _peaks(run, "sustained rate")
    if "ours" not in rates:
        return Finding("not decided", "the run has not measured ours")
    best = rates["ours"]
    verdict: Verdict = "held" if best >= 300_000 else "held in part" if best >= 200_000 else "not held here"
    return Finding(verdict, f"ours enqueued and ended {_kilo(best)} at best, time-outs included (300 k/s decides)")


def _cpu(run: Run) -> Finding:
    rows = run.of(load="low")
    kept = rows[rows["sustained rate"] >= 0.95 * rows["rate"]]
    both = set(kept[kept["design"] == "old"]["rate"]) & set(kept[kept["design"] == "kafka"]["rate"])
    if not both:
        return Finding("not decided", "there is no rate that both designs kept up with")
    rate = max(both)
    old, new = (float(run.of(design, load="low", rate=rate)["CPU a request"].iloc[0]) for design in ("old", "kafka"))
    verdict: Verdict = "held" if old >= 1.1 * new else "not held here"
    return Finding(
        verdict, f"at {rate:,} requests/s the old design spends {old:.1f} µs a request, Kafka's {new:.1f} µs"
    )


def _on_time(run: Run) -> Finding:
    rows = run.cells[run.cells["sustained rate"] >= 0.95 * run.cells["rate"]]
    ours = rows[rows["design"] == "ours"]
    if ours.empty:
        return Finding("not decided", "ours kept up with no rate")
    off = float((ours["timed out"] - ours["timed out, expected"]).abs().max())
    early = int(ours["early"].sum())
    said = f"ours: {off:.2%} of requests at most have another outcome than their latency calls for, {early} are early"
    theirs = rows[rows["design"] == "kafka-jvm"]
    if len(theirs):
        share = float((theirs["early"] / (theirs["timed out"] * theirs["submitted"])).max())
        said += f"; genuine Kafka expires up to {share:.0%} of its time-outs a fraction of a millisecond early"
    verdict: Verdict = "held" if off < 0.02 and not early else "not held here"
    return Finding(verdict, said)


CLAIMS: Final[list[Claim]] = [
    Claim(
        "The old purgatory saturates at 25,000 to 40,000 requests a second; the one with the timing wheel goes on.",
        MATSUDA,
        _saturation,
        "Held if the best rate of Kafka's design is at least 2 times the old one's; in part from 1.2 times.",
    ),
    Claim(
        "The new design needs less CPU at the same rate.",
        MATSUDA,
        _cpu,
        "Held if the old design spends at least 1.1 times the CPU, at the highest rate of which both end 95 %.",
    ),
    Claim(
        "Ours takes 300,000 requests a second from Python, on two cores.",
        "Abeyant's own aim",
        _ours_at_300k,
        "Held from 300,000 requests/s; in part from 200,000.",
    ),
    Claim(
        "What times out is what should: never early, and nothing that would have completed.",
        "laws T1, P1; Kafka truncates both ends to milliseconds",
        _on_time,
        "Held if fewer than 2 % of ours end otherwise than their latency calls for, and none is early.",
    ),
]


_LOAD_WORDS: Final = {"low": "few time-outs", "high": "many time-outs"}


def figure(run: Run) -> Figure:
    """Plot the sustained rate, CPU, the longest pause and the entries on watch lists against the target rate."""
    panels = [
        Panel("enqueued and ended, requests/s", "rate", "sustained rate", "requests/s", RATE),
        Panel("CPU a request, µs", "rate", "CPU a request", "µs", LOG),
        Panel("longest pause of the collector, ms", "rate", "longest pause", "ms", LOG),
        Panel("most on the watch lists", "rate", "watched, most", "watches", RATE),
    ]
    loads = sorted(run.choices("load"), key=list(_LOAD_WORDS).index)

    def draw(plot: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for load in loads:
            for design in in_order(run):
                cells = run.of(design, load=load).sort_values("rate")
                if panel.y not in cells or cells[panel.y].isna().all():
                    continue
                plot.add_scatter(
                    x=cells[panel.x],
                    y=cells[panel.y].where(cells[panel.y] > 0),
                    name=title(design),
                    legendgroup=design,
                    showlegend=first and bool(load == loads[0]),
                    mode="lines+markers",
                    line=line(design, dash="solid" if load == "low" else "dot"),
                    marker={"size": 5},
                    hovertemplate=hover_words(f"{title(design)}, {_LOAD_WORDS[load]}", panel.unit, "%{x:,}/s"),
                    **axes,
                )
        if panel.y == "sustained rate":
            rates = run.choices("rate")
            plot.add_scatter(
                x=rates, y=rates, mode="lines", showlegend=False, hoverinfo="skip",
                line={"color": "rgba(128,128,128,0.5)", "width": 1, "dash": "dash"}, **axes,
            )  # fmt: skip

    return figure_of(panels, draw, "target rate, requests/s", rows=2, across=measured_axis(run.choices("rate")))


READING: Final = (
    "Requests arrive at the target rate (Poisson). Latencies are log-normal: 20 ms at the 50th percentile and 60 "
    "ms at the 75th (dotted: 200 and 400 ms). Each request has a time-out of 200 ms, 100 bytes and three keys. A "
    "second thread completes them. The first figure counts what was enqueued and has ended, per second, until all "
    "had; the last request's time-out is not counted. The dashed line is what was asked for: a design that leaves "
    "it is saturated. All but the genuine Kafka run in one Python process, whose threads share its interpreter "
    "lock. Watches and pauses past saturation are those of a backlog."
)

EXPERIMENT = Experiment(
    "enqueue",
    "How many requests a second",
    "real",
    grid,
    measure,
    lambda design: jvm.why_no_jvm() if design == "kafka-jvm" else None,
    claims=CLAIMS,
    figure=figure,
    reading=READING,
)
