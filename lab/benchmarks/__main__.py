"""`make bench`: measure, print the tables, write the page."""

from __future__ import annotations

import argparse
import sys
from itertools import groupby
from pathlib import Path

from abeyant.errors import AbeyantError
from lab import peers
from lab.benchmarks import notes, picture, plots, table, wording
from lab.benchmarks.arguments import make_parser
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.page import FIGURES, PAGE, figures_page, page
from lab.benchmarks.programs import BENCHMARKS, grid
from lab.benchmarks.results import Results as View
from lab.benchmarks.results import view
from lab.experiment import Cell, cell
from lab.results import Results
from lab.runner import Runner


def main(argv: list[str] | None = None) -> int:
    """Run the command line. Return the exit code."""
    options = make_parser().parse_args(argv)
    full = options.out / "results.jsonl"
    if (options.render or options.update) and not full.exists():
        print(f"benchmarks: error: there is no full run yet ({full}): run make bench", file=sys.stderr)
        return 2
    if options.render:
        _write_page(view(Results(full).records()), options.docs)
        return 0
    chosen = _chosen(options)
    if options.list:
        for one in chosen:
            row = one.experiment.removeprefix("bench ")
            print(f"{row:<20} {wording.size(int(one.choices()['size'])):>6}  {peers.LABELS[one.design]}")
        return 0
    if not chosen:
        print("benchmarks: error: the options select no measurement: see --list", file=sys.stderr)
        return 2
    path = full
    if (options.quick or options.rows or options.rivals or options.sizes) and not options.update:
        path = options.out / ("quick.jsonl" if options.quick else "selected.jsonl")
    runner = Runner(Results(path), quick=options.quick, resume=options.resume)
    try:
        failed = [runner.run(BENCHMARKS[name], list(some)).failed for name, some in groupby(chosen, _experiment)]
    except KeyboardInterrupt:
        print(f"\ninterrupted; --resume continues {path}", file=sys.stderr)
        return 130
    except AbeyantError as error:
        print(f"benchmarks: error: {error}", file=sys.stderr)
        return 2
    records = [record for record in runner.results.records() if path == full or record.date == runner.date]
    results = view(records)
    print(f"\n{table.as_text(results)}\n\nresults: {path}")
    _write_page(results, options.docs if path == full else options.out / path.stem)
    return 1 if any(failed) else 0


def _chosen(options: argparse.Namespace) -> list[Cell]:
    effort = options.effort or ("quick" if options.quick else "full")
    names = options.rivals or [name for name in peers.LABELS if not (options.quick and name == "jvm-heap")]
    return [
        cell(f"bench {row.name}", design, parameters)
        for row in ROWS.values()
        if row.name in (options.rows or ROWS)
        for design, parameters in grid(row, effort)
        if design in names and (options.sizes is None or parameters["size"] in options.sizes)
    ]


def _experiment(one: Cell) -> str:
    return one.experiment


def _write_page(results: View, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    images = plots.draw(results, folder / "benchmarks")
    if not images:
        print("no plots: matplotlib is not installed (pip install -r requirements/bench.txt)")
    (folder / FIGURES).write_text(figures_page(results))
    path = folder / PAGE
    path.write_text(page(results, {f"benchmarks/{name}": caption for name, caption in images.items()}, notes.read()))
    print(f"page: {path}")
    try:
        print(f"picture: {picture.draw(folder)}")
    except picture.MissingFigureError as error:  # a run of some rows only
        print(f"no picture: {error}")


if __name__ == "__main__":
    sys.exit(main())
