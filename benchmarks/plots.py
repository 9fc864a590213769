"""The plots of the page, as SVG. Needs matplotlib (requirements/bench.txt); without it there are none."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks import rivals, wording
from benchmarks.results import Results
from benchmarks.rows import ROWS

COSTS = ("pair", "start", "stop", "refresh", "expiry", "next")
STALLS = ("stall_start", "stall_expiry", "stall_stop")
INK, GREY = "#333333", "#9a9a9a"
# Ours in strong colours, the peers quiet.
COLOURS = {
    "system": "#c0392b", "manual": "#e08a1e", "engine": "#7d3c98", "asyncio": "#1f5f8b", "uvloop": "#3f9fbf",
    "heapq": "#6b8e23", "sched": "#b5b5b5", "threading": "#c9b18c", "kafka": "#222222", "jvm-heap": "#8a8a8a",
}  # fmt: skip
STYLE: Any = {
    "svg.hashsalt": "abeyance", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 8,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": GREY,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "axes.titlesize": 9,
    "axes.titlelocation": "left", "xtick.major.width": 0.6, "ytick.major.width": 0.6, "ytick.minor.width": 0.3,
}  # fmt: skip


def draw(results: Results, folder: Path) -> dict[str, str]:
    """Write the plots into `folder`; return their file names and captions. Empty without matplotlib."""
    try:
        mpl = import_module("matplotlib")
    except ImportError:
        return {}
    mpl.use("svg")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    with mpl.rc_context(STYLE):
        for name, caption, plot in (
            ("costs.svg", "What an operation costs, against the number of pending timers (log scale).", _costs),
            ("stalls.svg", "The longest that the caller's thread stood still (log scale).", _stalls),
            ("memory.svg", "What a pending timer weighs.", _memory),
            ("lateness.svg", "When timers ran, less their deadline: left of zero is early.", _lateness),
        ):
            figure = plot(results)
            if figure is not None:
                figure.savefig(folder / name, metadata={"Date": None}, bbox_inches="tight", facecolor="white")
                drawn[name] = caption
    return drawn


def _costs(results: Results) -> Any:
    rows = [name for name in COSTS if results.of_row(name)]
    if not rows:
        return None
    sizes = sorted({found.size for name in rows for found in results.of_row(name)})
    places = {size: place for place, size in enumerate(sizes)}
    figure, panels = _panels(len(rows), columns=2, width=4.6, height=2.7)
    for panel, name in zip(panels, rows, strict=True):
        row = ROWS[name]
        ends = []
        for rival, label in rivals.LABELS.items():
            found = sorted((one for one in results.of_row(name) if one.rival == rival), key=lambda one: one.size)
            points = [(places[one.size], wording.shown(row, one.median)) for one in found if one.median > 0]
            if not points:
                continue
            strong = rival in ("system", "kafka", "asyncio")
            across, up = zip(*points, strict=True)
            panel.plot(across, up, color=COLOURS[rival], lw=1.6 if strong else 0.9, marker="o", ms=2.5)
            ends.append((across[-1], up[-1], label.removeprefix("abeyance "), COLOURS[rival]))
        panel.set_yscale("log")
        panel.set_title(f"{row.title}, {row.unit}")
        panel.set_xticks(range(len(sizes)), [wording.size(size) for size in sizes])
        panel.set_xlim(-0.15, len(sizes) - 1 + 0.15)
        _sparse_log(panel.yaxis, *panel.get_ylim())
        _label_ends(panel, ends, len(sizes) - 1)
    figure.supxlabel("pending timers", fontsize=8)
    figure.tight_layout()
    return figure


def _label_ends(panel: Any, ends: list[tuple[int, float, str, str]], right: int) -> None:
    """Write each line's name beside its end, moved apart where they would overlap."""
    low, high = (math.log10(limit) for limit in panel.get_ylim())
    apart = (high - low) * 0.075
    ends = sorted(ends, key=lambda end: end[1])
    heights: list[float] = []
    for _, up, _, _ in ends:  # upwards, each at least so far from the one below
        heights.append(max(math.log10(up), heights[-1] + apart if heights else -math.inf))
    for place in reversed(range(len(heights))):  # and downwards, so that the last stays inside
        above = heights[place + 1] if place + 1 < len(heights) else high + apart
        heights[place] = min(heights[place], above - apart)
    for (across, up, label, colour), at in zip(ends, heights, strict=True):
        panel.annotate(
            label, (across, up), (right + 0.25, 10**at), textcoords="data", color=colour, fontsize=7, va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.3, "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip


def _stalls(results: Results) -> Any:
    rows = [name for name in STALLS if results.of_row(name)]
    return _dots(results, rows, "ms") if rows else None


def _memory(results: Results) -> Any:
    rows = [name for name in ("memory", "memory_forgotten") if results.of_row(name)]
    return _dots(results, rows, "bytes") if rows else None


def _dots(results: Results, rows: list[str], unit: str) -> Any:
    """A panel a row: a line a rival, a dot at the median of its largest size, a bar from minimum to maximum."""
    figure, panels = _panels(len(rows), columns=len(rows), width=3.2, height=2.1)
    for panel, name in zip(panels, rows, strict=True):
        row = ROWS[name]
        found = [one for one in results.of_row(name) if one.rival in COLOURS]
        largest = max(one.size for one in found)
        found = sorted((one for one in found if one.size == largest), key=lambda one: -one.median)
        for place, one in enumerate(found):
            least, middle, most = (
                wording.shown(row, value) for value in (min(one.rounds), one.median, max(one.rounds))
            )
            panel.plot([max(least, 1e-3), most], [place, place], color=COLOURS[one.rival], lw=0.8)
            panel.plot([middle], [place], "o", color=COLOURS[one.rival], ms=4)
            panel.annotate(
                wording.number(middle),
                (middle, place),
                (0, 4),
                textcoords="offset points",
                ha="center",
                fontsize=6.5,
            )
        panel.set_xscale("log")
        _sparse_log(panel.xaxis, *panel.get_xlim())
        panel.set_yticks(range(len(found)), [rivals.LABELS[one.rival].removeprefix("abeyance ") for one in found])
        panel.tick_params(axis="y", length=0)
        panel.spines["left"].set_visible(False)
        panel.set_ylim(-0.5, len(found) - 0.2)
        panel.set_title(f"{row.title}, {wording.size(largest)}")
        panel.set_xlabel(unit)
    figure.tight_layout()
    return figure


def _lateness(results: Results) -> Any:
    found = [one for one in results.of_row("lateness") if one.rival in COLOURS]
    if not found:
        return None
    left, right, width = -1.5, 3.0, 0.05  # milliseconds
    edges = [left + step * width for step in range(round((right - left) / width) + 1)]
    figure, panels = _panels(len(found), columns=1, width=6.2, height=0.95)
    for panel, one in zip(panels, found, strict=True):
        late = [value / 1e6 for value in one.extra["late"]]  # quantiles at even distances: as good as a sample
        weight = 100 / len(late)
        weights = [weight] * len(late)
        panel.hist(late, edges, weights=weights, color=COLOURS[one.rival], lw=0, histtype="stepfilled")
        panel.axvline(0, color=GREY, lw=0.6)
        beyond = sum(value > right for value in late) * weight
        early = sum(value < 0 for value in late) * weight
        said = f"{rivals.LABELS[one.rival]}: earliest {late[0]:+.3f} ms, median {late[len(late) // 2]:+.2f}, "
        said += f"99 % {late[int(len(late) * 0.99)]:+.2f}, {early:.0f} % early, {beyond:.1f} % beyond"
        panel.set_title(said, fontsize=7.5)
        panel.set_yticks([])
        panel.spines["left"].set_visible(False)
        panel.set_xlim(left, right)
        if one is not found[-1]:
            panel.set_xticks([])
    panels[-1].set_xlabel("milliseconds after the deadline")
    figure.tight_layout()
    return figure


def _panels(count: int, columns: int, width: float, height: float) -> tuple[Any, list[Any]]:
    lines = math.ceil(count / columns)
    figure = import_module("matplotlib.figure").Figure(figsize=(width * min(columns, count), height * lines))
    return figure, [figure.add_subplot(lines, columns, place + 1) for place in range(count)]


def _sparse_log(axis: Any, low: float, high: float) -> None:
    ticker = import_module("matplotlib.ticker")
    axis.set_major_locator(
        ticker.LogLocator(subs=(1,) if high / low > 300 else (1, 3) if high / low > 30 else (1, 2, 5))
    )
    axis.set_minor_locator(ticker.LogLocator(subs=()))
    axis.set_minor_formatter(ticker.NullFormatter())
    axis.set_major_formatter(_plain)


def _plain(value: float, _: object) -> str:
    return f"{value:g}" if value < 10_000 else f"{value:,.0f}"
