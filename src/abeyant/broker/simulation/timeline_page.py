"""Describe a failure on one HTML page: the faults, the history of the records, and the run as a timeline.

A similar run that passes, if one is known, is drawn beside the failed run, lane by lane. The page contains no picture
and no library, and loads nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import Final

from abeyant import __version__
from abeyant.broker.simulation.faults import THE_FAULTS_END
from abeyant.broker.simulation.search import RunId
from abeyant.broker.simulation.timeline import PARTS, Lane, Mark, Timeline, first_difference, record_stories, timeline
from abeyant.broker.simulation.world import RunResult
from abeyant.pages.document import document
from abeyant.pages.formatting import counted, escaped, shortened
from abeyant.pages.tiles import Tile, tiles

_TICKS: Final = 10
_MOST_MARKS: Final = 400  # in a lane
_STEPS: Final = (1, 2, 5)
_LEGEND: Final = (
    ("dot acknowledged", "acknowledged"), ("dot handed", "handed to a program"), ("dot committed", "committed"),
    ("dot joined", "assigned, or sought"), ("bar waited", "waited at a broker"), ("dot failed", "refused"),
    ("bar down", "down"), ("dot fault", "hit by a fault"), ("bar busy", "rebalancing, or a transaction open"),
    ("bar settled", "stable, or committed"), ("dot leader", "leader or in-sync replicas change"),
)  # fmt: skip


def timeline_page(
    outcome: RunResult, which: RunId, beside: tuple[RunId, RunResult] | None, command: str, *, tried: int = 1
) -> str:
    """Return the HTML page of a watched, failed run, which `command` repeats; `beside` is a watched run that passed."""
    failure = outcome.failure
    assert failure is not None
    run = timeline(outcome)
    passing = None if beside is None else timeline(beside[1])
    name = command.rpartition(" ")[2]
    return document(
        kicker=f"Simulated test {name}",
        title=shortened(failure.message, 240),
        tiles=tiles(_tiles(outcome, which, tried)),
        findings=[*map(escaped, _findings(run, beside, passing))],
        sections=_records(outcome, failure.message) + _chart(run, passing) + _error(failure.text) + _list(run, outcome),
        made=_made(outcome, which, command),
        figures={},
        style=_asset("timeline.css"),
        own_script=_asset("timeline.js"),
    )


def _tiles(outcome: RunResult, which: RunId, tried: int) -> list[Tile]:
    faults = len(outcome.faults)
    return [
        Tile("Seed", str(outcome.seed), f"found after {counted(tried, 'seed')}" if tried > 1 else ""),
        Tile("Faults", str(faults), "all that is needed" if which.kept is not None else "as the seed planned them"),
        Tile("Virtual time", f"{outcome.seconds:.1f} s", "from the beginning to the verdict"),
    ]


def _findings(run: Timeline, beside: tuple[RunId, RunResult] | None, passing: Timeline | None) -> Iterator[str]:
    for event in run.events:
        yield f"At {event.at:.3f} s {event.about}."
    if beside is None or passing is None:
        yield "No run near it passes, so there is none to compare it with."
        return
    same = first_difference(run, passing)
    until = "They do not differ." if same == math.inf else f"Up to {same:.3f} s both are the same."
    yield f"Beside it: {_named(beside[0], beside[1])}, which passes. {until}"


def _named(which: RunId, outcome: RunResult) -> str:
    if which.kept is None:
        return f"seed {which.seed}"
    if not which.kept:
        return f"seed {which.seed} without faults"
    return f"seed {which.seed} with {counted(len(outcome.faults), 'fault')} only"


def _records(outcome: RunResult, message: str) -> str:
    parts = []
    for value, steps in record_stories(outcome.history, message).items():
        events = {event.what for event in outcome.history.events if event.what != THE_FAULTS_END}
        rows = (
            f'<li><b>{at:.3f} s</b><span class="{"fault" if text in events else "step"}">{escaped(text)}</span></li>'
            for at, text in steps
        )
        parts.append(f'<h2>What became of {escaped(value)}</h2><ol class="steps">{"".join(rows)}</ol>')
    return "".join(parts)


def _chart(run: Timeline, passing: Timeline | None) -> str:
    until = run.until if passing is None else max(run.until, min(passing.until, 2 * run.until))
    lanes = {(lane.part, lane.name): lane for lane in run.lanes}
    passing_lanes = {} if passing is None else {(lane.part, lane.name): lane for lane in passing.lanes}
    names = sorted(dict.fromkeys([*lanes, *passing_lanes]), key=lambda key: PARTS.index(key[0]))
    rows, part = [_axis(until)], ""
    for key in names:
        if key[0] != part:
            part = key[0]
            rows.append(f'<h3 class="part">{escaped(part)}</h3>')
        rows.append(_lane(key[1], lanes.get(key), passing_lanes.get(key), until, two=passing is not None))
    shades = "".join(_shade(event, until) for event in run.events if event.at <= until)
    legend = "".join(f'<li><i class="m {look}"></i>{escaped(label)}</li>' for look, label in _LEGEND)
    lines = "In partitions the line is the high watermark, the dashed one the log end offset."
    both = " Hatched, below each lane: the run that passes." if passing else ""
    choice = '<label><input type="checkbox" id="beside" checked> the run that passes</label>' if passing else ""
    return (
        f'<h2>Timeline</h2><p class="read">{lines}{both} Polls that wait for nothing are left out.</p>'
        f'<ul class="legend">{legend}</ul>'
        '<div class="tools"><button type="button" id="smaller" aria-label="smaller">&minus;</button>'
        '<button type="button" id="larger" aria-label="larger">+</button>'
        f'<button type="button" id="whole-run">whole run</button>{choice}</div><div>'
        '<p class="about" id="about" role="status">Point at a mark, or go to one with Tab and the arrow keys; '
        "+ and &minus; enlarge.</p>"
        f'<div class="chart-box"><div class="chart" id="chart" role="group" aria-label="Timeline">{"".join(rows)}'
        f'<div class="shades" aria-hidden="true">{shades}</div></div></div></div>'
    )


def _axis(until: float) -> str:
    step = _step(until / _TICKS)
    ticks = []
    for number in range(int(until / step) + 1):
        odd = ' class="odd"' if number % 2 else ""
        ticks.append(f'<span{odd} style="left:{_place(number * step, until)}">{number * step:g} s</span>')
    return f'<div class="axis" aria-hidden="true"><div></div><div>{"".join(ticks)}</div></div>'


def _step(least: float) -> float:
    """Return the distance between ticks, in seconds: the next 1, 2 or 5 times a power of ten from `least` on."""
    power = 10.0 ** math.floor(math.log10(least))
    return float(next((power * factor for factor in _STEPS if power * factor >= least), power * 10))


def _lane(name: str, lane: Lane | None, passing: Lane | None, until: float, *, two: bool) -> str:
    tracks = _track(lane, until, "")
    if two:
        tracks += _track(passing, until, " beside")
    label = f'<div class="who">{escaped(shortened(name, 40))}</div>'
    return f'<div class="lane">{label}<div class="tracks">{tracks}</div></div>'


def _track(lane: Lane | None, until: float, look: str) -> str:
    if lane is None:
        return f'<div class="track{look}"></div>'
    marks = "".join(_mark(lane, mark, until, look) for mark in lane.marks[:_MOST_MARKS] if mark.at <= until)
    return f'<div class="track{look}">{_lines(lane, until)}{marks}</div>'


def _mark(lane: Lane, mark: Mark, until: float, look: str) -> str:
    shape, width = "dot", ""
    if mark.until is not None:
        shape, width = "bar", f";width:{_place(min(mark.until, until) - mark.at, until)}"
    prefix = "the run that passes, " if look else ""
    lasts = "" if mark.until is None else f" to {mark.until:.3f} s"
    about = f"{prefix}{lane.name}, {mark.at:.3f} s{lasts}: {mark.about}"
    position = f"left:{_place(mark.at, until)}{width}"
    attributes = f'class="m {shape} {mark.kind}" style="{position}"'
    return f'<button type="button" tabindex="-1" {attributes} aria-label="{escaped(about)}"></button>'


def _lines(lane: Lane, until: float) -> str:
    top = max((offset for _, offset in lane.end), default=0)
    if not lane.end or top <= 0:
        return ""
    paths = (("end", lane.end), ("high", lane.high_watermark))
    elements = "".join(f'<path class="{name}" d="{_steps(levels, top, until)}"/>' for name, levels in paths)
    return f'<svg viewBox="0 0 1000 100" preserveAspectRatio="none" aria-hidden="true">{elements}</svg>'


def _steps(levels: Sequence[tuple[float, int]], top: int, until: float) -> str:
    """Return the SVG path of an offset that changes in steps, with gaps where the offset is negative (no leader)."""
    path, is_drawn = [], False
    for number, (at, offset) in enumerate(levels):
        if at > until:
            break
        left = 1000 * at / until
        right = 1000 * min(levels[number + 1][0] if number + 1 < len(levels) else until, until) / until
        height = 96 - 92 * max(offset, 0) / top
        if offset >= 0:
            path.append(f"{'L' if is_drawn else 'M'}{left:.1f} {height:.1f}H{right:.1f}")
        is_drawn = offset >= 0
    return "".join(path)


def _shade(event: Mark, until: float) -> str:
    if event.until is None:
        return f'<i class="end" style="left:{_place(event.at, until)}"></i>'
    width = _place(min(event.until, until) - event.at, until)
    return f'<i style="left:{_place(event.at, until)};width:{width}"></i>'


def _place(at: float, until: float) -> str:
    return f"{100 * at / until:.3f}%"


def _error(text: str) -> str:
    return f"<h2>The error</h2><pre>{_lines_of(text)}</pre>" if text else ""


def _lines_of(text: str) -> str:
    return "\n".join(escaped(line) for line in text.rstrip().splitlines())


def _list(run: Timeline, outcome: RunResult) -> str:
    entries = [(mark.at, lane.name, mark.about) for lane in run.lanes for mark in lane.marks[:_MOST_MARKS]]
    entries += [(event.at, "", event.about) for event in run.events]
    rows = "".join(
        f'<tr><td class="number">{at:.3f} s</td><td>{escaped(name)}</td><td>{escaped(about)}</td></tr>'
        for at, name, about in sorted(entries)
    )
    head = '<tr><th class="number">at</th><th>where</th><th>what</th></tr>'
    nothing = f"Nothing else changes until the run ends at {outcome.seconds:.1f} s."
    return (
        f"<h2>Everything, as a list</h2><details><summary>{counted(len(entries), 'line')}</summary>"
        f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div></details>'
        f'<p class="small">{nothing}</p>'
    )


def _made(outcome: RunResult, which: RunId, command: str) -> str:
    facts = {
        "repeat it": f"{command} --kafka-repeat {which}",
        "hash of its trace": outcome.hash,
        "abeyant": __version__,
    }
    rows = (f"<dt>{name}</dt><dd><code>{escaped(fact)}</code></dd>" for name, fact in facts.items())
    return f"<dl>{''.join(rows)}</dl>"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
