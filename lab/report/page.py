"""Make the report's page: for each experiment its claims and verdicts, its figure, how to read and how to repeat it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Final, NamedTuple

import pandas as pd

from abeyant.pages.document import document
from abeyant.pages.formatting import escaped
from lab.claim import Claim, Finding
from lab.experiments import EXPERIMENTS
from lab.machine import BUSY
from lab.report.judging import judge
from lab.run import Run, runs

_CLASSES: Final = {
    "held": "held",
    "held in part": "part",
    "not held here": "not",
    "inconclusive": "open",
    "not decided": "open",
}


class Chapter(NamedTuple):
    """An experiment, its runs (the latest first), and the latest run's findings."""

    name: str
    runs: list[Run]
    findings: list[tuple[Claim, Finding]]


def chapters(rows: pd.DataFrame) -> list[Chapter]:
    """Return a chapter for each experiment that was run, in the lab's order."""
    return [
        Chapter(name, mine, [(claim, judge(claim, mine[0])) for claim in EXPERIMENTS[name].claims])
        for name in EXPERIMENTS
        if (mine := runs(rows, name))
    ]


def page(chapters: Sequence[Chapter]) -> str:
    """Return the report as one self-contained HTML page."""
    return document(
        kicker="Abeyant · the lab",
        title="The published comparisons, repeated",
        findings=_findings(chapters),
        sections="\n".join(_section(chapter) for chapter in chapters),
        made=_provenance(chapters),
        figures={
            f"plot-{chapter.name}": {"0": drawn}
            for chapter in chapters
            if not isinstance(drawn := EXPERIMENTS[chapter.name].figure(chapter.runs[0]), str)
        },
        style=resources.files(__package__).joinpath("lab.css").read_text(encoding="utf-8"),
    )


def _findings(chapters: Sequence[Chapter]) -> list[str]:
    counted = Counter(finding.verdict for chapter in chapters for _, finding in chapter.findings)
    total = sum(counted.values())
    verdicts = ", ".join(f"{number} {verdict}" for verdict, number in counted.most_common())
    alike: dict[str, list[str]] = {}
    for chapter in chapters:
        alike.setdefault(_circumstances(chapter), []).append(chapter.name)
    return [
        f"{total} claims: {verdicts}.",
        *(f"{escaped(', '.join(names))}: {circumstances}." for circumstances, names in alike.items()),
        "All designs implement the same port, each as well as we could, and are compiled like ours.",
    ]


def _circumstances(chapter: Chapter) -> str:
    """Return the conditions of the latest run: a quick or a full grid, and how busy the machine was."""
    last = chapter.runs[0]
    grid = "a run with --quick, fewer and smaller cells" if last.quick else "a full run"
    if EXPERIMENTS[chapter.name].clock == "virtual":
        return f"{grid}, on a virtual clock, which no load disturbs"
    if last.others is None:
        return f"{grid}; how busy the machine was is not recorded"
    busy = "a busy machine" if last.others > BUSY else "a quiet machine"
    return f"{grid}, on {busy}: other processes used at least {last.others:.0%} of its CPU in the busiest 10 % of cells"


def _section(chapter: Chapter) -> str:
    experiment = EXPERIMENTS[chapter.name]
    plot = f"plot-{chapter.name}"
    drawn = experiment.figure(chapter.runs[0])
    parts = [
        f"<h2>{escaped(experiment.title)}</h2>",
        f'<ul class="claims">{"".join(_claim(claim, finding) for claim, finding in chapter.findings)}</ul>',
        drawn
        if isinstance(drawn, str)
        else f'<div class="plot" id="{plot}" role="img" aria-label="{escaped(experiment.title)}" hidden></div>'
        f'<p class="nothing" id="{plot}-nothing" hidden>Nothing was measured.</p>',
        f'<p class="read">{experiment.reading}</p>',
        f'<p class="small again">To repeat it: <code>python -m lab run {chapter.name}</code></p>',
        _earlier(chapter),
    ]
    return f"<section>{''.join(parts)}</section>"


def _claim(claim: Claim, finding: Finding) -> str:
    return (
        f'<li class="{_CLASSES[finding.verdict]}"><p>{escaped(claim.text)}'
        f' <span class="verdict">{escaped(finding.verdict)}</span></p>'
        f"<p>{escaped(finding.figure)}.</p>"
        f'<p class="small">Rule: {escaped(claim.rule)}</p>'
        f'<p class="small">Source: {escaped(claim.source)}</p></li>'
    )


def _earlier(chapter: Chapter) -> str:
    """Return the earlier runs' findings as HTML."""
    if len(chapter.runs) < 2:
        return ""
    body = "".join(
        f"<tr><td>{_when(run)}</td><td>{escaped(claim.text)}</td><td>{escaped(finding.verdict)}</td>"
        f"<td>{escaped(finding.figure)}</td></tr>"
        for run in chapter.runs[1:]
        for claim in EXPERIMENTS[chapter.name].claims
        for finding in [judge(claim, run)]
    )
    return (
        f"<details><summary>Earlier runs ({len(chapter.runs) - 1})</summary><div class='wide'><table><thead><tr>"
        f"<th>began</th><th>claim</th><th>verdict</th><th>figure</th></tr></thead><tbody>{body}</tbody></table></div></details>"
    )


def _provenance(chapters: Iterable[Chapter]) -> str:
    entries = "".join(
        f"<dt>{escaped(chapter.name)}</dt><dd>{_when(run)}, {len(run.cells)} cells; {escaped(run.machine)};"
        f" {escaped(run.version)}</dd>"
        for chapter in chapters
        for run in chapter.runs[:1]
    )
    return f"<dl>{entries}</dl>"


def _when(run: Run) -> str:
    return f"{run.date:%Y-%m-%d %H:%M} UTC"
