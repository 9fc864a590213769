"""The results page and the page of all figures, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from lab import peers
from lab.benchmarks import table, wording
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.results import Results
from lab.benchmarks.targets import TARGETS
from lab.machine import BUSY

PAGE, FIGURES = "benchmarks.md", "benchmarks-figures.md"
PEERS = ("asyncio", "uvloop", "kafka")


def page(results: Results, plots: dict[str, str], notes: dict[str, str]) -> str:
    """Return the results page. `plots` has captions by file name; `notes` say, by row, why a target is missed."""
    parts = [*_head(results), *_targets(results), *_missed(results, notes), *_plots(plots)]
    parts += [f"Each row of every rival at every size is on [a page of its own]({FIGURES})."]
    parts += [*_window(notes), *_method(results)]
    return "\n\n".join(parts) + "\n"


def figures_page(results: Results) -> str:
    """Return the page of all figures, with a table for each row of the catalogue."""
    return "\n\n".join(_tables(results)) + "\n"


def _head(results: Results) -> Iterator[str]:
    yield "# Benchmarks"
    yield "<!-- Written by `make bench`; edit lab/benchmarks/notes.md for the explanations. -->"
    runs = "in one run; parts of it were measured again later" if results.updated else "in one run"
    yield (
        f"Taken {results.dates()} by `make bench` on one machine, {runs}. Every rival, row and size has a fresh "
        "process, and rivals run side by side. All figures are medians. Compare the "
        "ratios: the figures themselves depend on the machine. "
        "[The broker](benchmarks-broker.md) has a page of its own."
    )
    facts = {**results.machine, **results.versions}
    yield "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in facts.items())])
    if results.others is not None and results.others > BUSY:
        yield (
            f"**The machine was not quiet:** other processes used at least {results.others:.0%} of its CPU in the "
            "busiest 10 % of the measurements. So the figures are too high, above all those of stalls."
        )
    missing = {**{peers.LABELS[name]: why for name, why in results.left_out.items()}, **results.failed}
    if missing:
        yield "\n".join(["Not measured:", "", *(f"- {name}: {why}" for name, why in missing.items())])


def _targets(results: Results) -> Iterator[str]:
    yield "## Targets"
    yield "What the design asks of `SystemTimer` and `Purgatory`, beside the peers' figures of this run."
    heading = "| what | asyncio | uvloop | Kafka (JVM) | to reach | here | |"
    lines = [heading, "|---|---:|---:|---:|---|---:|---|"]
    for target in TARGETS:
        judged = target.judge(results)
        figure, verdict = (wording.NONE, "not measured") if judged is None else (judged[0], "")
        if judged is not None:
            verdict = "reached" if judged[1] else "**missed**"
        peers = [target.of_peer(results, peer) for peer in PEERS]
        lines.append(f"| {target.title} | {' | '.join(peers)} | {target.aim} | {figure} | {verdict} |")
    yield "\n".join(lines)


def _missed(results: Results, notes: dict[str, str]) -> Iterator[str]:
    judged = [(target, target.judge(results)) for target in TARGETS]
    missed = [(target, verdict[0]) for target, verdict in judged if verdict is not None and not verdict[1]]
    if missed:
        yield "### Missed, and why"
    for row in dict.fromkeys(target.row for target, _ in missed):
        for target, figure in missed:
            if target.row == row:
                yield f"**{target.title}**: {figure}; target: {target.aim}."
        yield notes.get(row, "*Not explained yet.*")


def _plots(plots: dict[str, str]) -> Iterator[str]:
    if plots:
        yield "## At a glance"
    for path, caption in plots.items():
        yield f"![{caption}]({path})"
        yield caption


def _tables(results: Results) -> Iterator[str]:
    yield "# Figures of the benchmarks"
    yield "<!-- Written by `make bench`. -->"
    yield (
        f"Of the machine and the run that [Benchmarks]({PAGE}) names, by its method. "
        "Medians. A ratio is a rival's figure divided by the peer's, at the largest size at which both were measured. "
        "Below 1x is cheaper; of rates (k/s, M/s) above 1x is faster."
    )
    for row in ROWS.values():
        rows = table.as_markdown(results, row)
        if not rows:
            continue
        yield f"## {row.title[0].upper()}{row.title[1:]}"
        yield f"{row.about} Columns: {row.size_of}."
        yield rows


def _window(notes: dict[str, str]) -> Iterator[str]:
    if "window" in notes:
        yield "## The window"
        yield notes["window"]


def _method(results: Results) -> Iterator[str]:
    yield "## How it is measured"
    rounds = sorted({len(one.rounds) for one in results.of_row("pair")}) or [0]
    yield "\n".join(
        [
            f"- Costs are medians of {rounds[0]} rounds or more, after a warm-up, of up to 100,000 operations "
            "each. The cost of the same loop with nothing in it is deducted. The clock that a start reads is included. "
            "The garbage collector is on. All rounds are in `build/bench/results.jsonl`.",
            "- The callback is one function that does nothing, the same for all. Delays are random, 120 to 240 s, "
            "for the pending timers and for those measured. So a heap pays its average cost and not its worst. "
            "Handles are kept, as by a caller who may cancel, unless a row says otherwise.",
            "- asyncio and uvloop are measured inside the running loop. The loop gets an iteration every 1,000 "
            "operations: its cost is included, that of an empty one is deducted. `loop.call_later` is not "
            "thread-safe; Abeyant's and Kafka's timers are.",
            "- The heap delay queue is a list-based heap with marks for cancelled entries. It is rebuilt when more "
            "than half are marked. `sched` and `threading.Timer` are measured at small sizes only.",
            "- Kafka's `SystemTimer` and `DelayedOperationPurgatory` are the published jars "
            "(kafka-server-common), driven from Java (`lab/jvm`), with the G1 collector and a heap of 4 GB. The "
            "JIT compiler has 3 s to warm up, longer where it still "
            "gains. A Kafka task is its own callback and handle. Kafka leaves a completed operation on its other keys "
            "until another thread purges it; these figures do not count that.",
            "- The JVM thread-pool heap is `ScheduledThreadPoolExecutor` with one thread, which removes what is "
            "cancelled.",
            "- A stall is the longest gap between two looks at the clock by the thread that uses the timer. It is the "
            "median of seven rounds, or of fewer (at least three) where they take long. It contains what the "
            "operating system and the garbage collectors do.",
            "- A jump of a year is `ManualTimer.advance`, with the three callbacks but without the three starts. It is "
            "the median of rounds of 15 jumps. The columns' calls are single calls on whole arrays, with nothing "
            "deducted.",
            "- Memory is resident memory, on the JVM live heap: the median of three fresh processes.",
        ]
    )
