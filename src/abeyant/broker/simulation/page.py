"""The story of a failure as one self-contained page: a timeline of faults, brokers, programs and partitions."""

from __future__ import annotations

from html import escape
from typing import Final

from abeyant.broker.simulation.search import RunId
from abeyant.broker.simulation.world import Outcome

_LEFT, _WIDTH, _ROW, _TOP = 210, 1100, 26, 30  # pixels
_DOTS: Final = {"acknowledged": "#1a7f37", "refused": "#cf222e", "handed": "#0969da", "committed": "#8250df"}
_STYLE: Final = """
body { font: 15px system-ui, sans-serif; margin: 24px; color: #1f2328; background: #ffffff }
svg text { font-size: 12px; fill: currentColor } pre { white-space: pre-wrap } .line { stroke: #d0d7de }
.fault { fill: #bf8700; fill-opacity: .35 }
@media (prefers-color-scheme: dark) { body { color: #e6edf3; background: #0d1117 } .line { stroke: #30363d } }
"""


def page(outcome: Outcome, which: RunId) -> str:
    """Return the page of a run as HTML, which loads nothing."""
    failure = outcome.failure
    history = outcome.history
    dots: list[tuple[str, float, str, str]] = []  # row, seconds, kind, what it says
    for made in history.produced:
        row = f"{made.topic}-{made.partition}"
        kind = "acknowledged" if made.error == "NONE" else "refused"
        dots.append((row, made.at, kind, f"Produce of {made.client}: {made.error}, offset {made.offset}"))
    dots += [
        (f"{one.topic}-{one.partition}", one.at, "handed", f"offset {one.offset} handed to {one.client}")
        for one in history.handed
    ]
    for commit in history.committed:
        kind = "committed" if commit.error == "NONE" else "refused"
        said = f"{commit.group} commits {commit.topic}-{commit.partition} offset {commit.offset}: {commit.error}"
        dots.append((commit.group, commit.at, kind, said))
    subjects = [event.subject or "all" for event in history.events]
    rows = list(dict.fromkeys([*subjects, *sorted({row for row, *_ in dots})]))
    last = max([1.0, *(at for _, at, *_ in dots), *(event.until or event.at for event in history.events)])

    def x(at: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 20) * at / last

    def y(row: str) -> float:
        return _TOP + _ROW * rows.index(row) + _ROW / 2

    lines = [
        f'<line class="line" x1="{_LEFT}" x2="{_WIDTH}" y1="{y(row):g}" y2="{y(row):g}"/>'
        f'<text x="4" y="{y(row) + 4:g}">{escape(row)}</text>'
        for row in rows
    ]
    lines += [f'<text x="{x(last * part / 5):.1f}" y="16">{last * part / 5:.1f} s</text>' for part in range(6)]
    for event in history.events:
        start, end = x(event.at), x(event.until or event.at)
        row = y(event.subject or "all")
        lines.append(
            f'<rect class="fault" x="{start:.1f}" y="{row - 9:g}" width="{max(end - start, 3):.1f}" height="18">'
            f"<title>{event.at:.3f} s: {escape(event.what)}</title></rect>"
        )
    lines += [
        f'<circle cx="{x(at):.1f}" cy="{y(row):g}" r="4" fill="{_DOTS[kind]}">'
        f"<title>{at:.3f} s: {escape(said)}</title></circle>"
        for row, at, kind, said in dots
    ]
    told = "\n".join(f"at {event.at:.3f} s {event.what}" for event in history.events)
    legend = " ".join(f'<span style="color:{colour}">● {kind}</span>' for kind, colour in _DOTS.items())
    message = "passed" if failure is None else failure.message
    text = "" if failure is None or not failure.text else f"<pre>{escape(failure.text)}</pre>"
    height = _TOP + _ROW * len(rows) + 10
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(str(which))}: {escape(message)}</title>'
        f"<style>{_STYLE}</style><h1>Run {escape(str(which))}</h1><p>{escape(message)}</p>"
        f"<p>{legend} <span>▮ fault</span>: point at one to read it.</p>"
        f'<svg width="{_WIDTH}" height="{height}" role="img" aria-label="Timeline of the run">{"".join(lines)}</svg>'
        f"<pre>{escape(told)}</pre>{text}</html>\n"
    )
