"""`make bench`: measure, print the tables, write the page."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lab import jvm, peers
from lab.benchmarks import notes, picture, plots, runner, table, wording
from lab.benchmarks.arguments import parser
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.page import page
from lab.benchmarks.plan import Plan, Task
from lab.benchmarks.progress import Progress, described
from lab.benchmarks.results import Results, read
from lab.machine import load, machine, versions


def main(given: list[str] | None = None) -> int:
    """Do as the command line says; return the exit code."""
    options = parser().parse_args(given)
    full = options.out / "results.json"
    if (options.render or options.update) and not full.exists():
        print(f"benchmarks: error: there is no full run yet ({full}); do one first", file=sys.stderr)
        return 2
    if options.render:
        _write_page(read(full), options.docs)
        return 0
    selected = bool(options.quick or options.rows or options.rivals or options.sizes)
    plan = _plan(options)
    if options.list:
        for task in plan.tasks:
            print(f"{task.row:<20} {wording.size(task.size):>6}  {peers.LABELS[task.rival]}")
        return 0
    if not plan.tasks:
        print("benchmarks: error: nothing was chosen: see --list", file=sys.stderr)
        return 2

    results = Results(machine(), versions(), load(), plan.left_out)
    if any(task.rival in peers.JVM for task in plan.tasks):
        results.versions |= jvm.versions()
    path = full
    if selected and not options.update:
        path = options.out / ("quick.json" if options.quick else "selected.json")
    unfinished = path.with_suffix(".unfinished.json")
    tasks = _taken_up(unfinished, results, plan) if options.resume else plan.tasks
    try:
        _measure(tasks, options.effort or ("quick" if options.quick else "full"), results, unfinished)
    except KeyboardInterrupt:
        print(f"\ninterrupted; --resume goes on from {unfinished}", file=sys.stderr)
        return 130
    print("\n" + table.as_text(results))
    if options.update:
        results = _updated(read(full), results)
    results.write(path)
    unfinished.unlink(missing_ok=True)
    print(f"\nresults: {path}")
    _write_page(results, options.docs if path == full else options.out / path.stem)
    return 1 if results.failed else 0


def _plan(options: argparse.Namespace) -> Plan:
    names = options.rivals or [name for name in peers.LABELS if not (options.quick and name == "jvm-heap")]
    plan = Plan(options.rows or list(ROWS), names, options.sizes, options.quick)
    wanted = [name for name in peers.JVM if any(task.rival == name for task in plan.tasks)]
    if wanted and not options.list:
        print("building the rivals on the JVM ...", flush=True)
        why = jvm.why_no_jvm()
        for name in wanted if why else ():
            plan.leave_out(name, str(why))
    for name, reason in plan.left_out.items():
        print(f"left out: {peers.LABELS[name]}: {reason}", flush=True)
    return plan


def _measure(tasks: list[Task], effort: str, results: Results, unfinished: Path) -> None:
    measuring = runner.Runner(effort, tasks)
    progress = Progress(tasks)
    for task in tasks:
        progress.begin(task)
        try:
            measurement = measuring.measure(task)
        except runner.FailedError as error:
            results.failed[described(task)] = str(error)
            progress.end(task, f"failed: {error}")
            continue
        results.add(measurement)
        results.write(unfinished)
        progress.end(task, f"{wording.median(measurement):>8} {ROWS[task.row].unit:<4}")


def _taken_up(unfinished: Path, results: Results, plan: Plan) -> list[Task]:
    """Take over what an interrupted run has measured; return what is left to do."""
    if not unfinished.exists():
        return plan.tasks
    earlier = read(unfinished)
    if (earlier.machine, earlier.versions) != (results.machine, results.versions):
        print(f"not resumed: {unfinished} is of another machine or of other versions", file=sys.stderr)
        return plan.tasks
    for measurement in earlier.measurements:
        results.add(measurement)
    done = {measurement.key for measurement in earlier.measurements}
    left = [task for task in plan.tasks if (task.rival, task.row, task.size) not in done]
    print(f"resumed: {len(plan.tasks) - len(left)} of {len(plan.tasks)} measurements were there already", flush=True)
    return left


def _updated(earlier: Results, later: Results) -> Results:
    for measurement in later.measurements:
        earlier.add(measurement)
    earlier.updated = True
    earlier.versions |= later.versions
    earlier.load = max(earlier.load, later.load)
    measured = {measurement.rival for measurement in later.measurements}
    earlier.left_out = {name: why for name, why in earlier.left_out.items() if name not in measured}
    earlier.failed |= later.failed
    return earlier


def _write_page(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    drawn = plots.draw(results, folder / "benchmarks")
    if not drawn:
        print("no plots: matplotlib is not installed (pip install -r requirements/bench.txt)")
    path = folder / "benchmarks.md"
    path.write_text(page(results, {f"benchmarks/{name}": caption for name, caption in drawn.items()}, notes.read()))
    print(f"page: {path}")
    try:
        print(f"picture: {picture.draw(folder)}")
    except picture.NotThereError as error:  # a run of some rows only
        print(f"no picture: {error}")


if __name__ == "__main__":
    sys.exit(main())
