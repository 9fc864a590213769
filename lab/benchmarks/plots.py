"""Draw the plots of the page, as SVG. Needs matplotlib (requirements/bench.txt); without it, draws none."""

from __future__ import annotations

import math
from importlib import import_module
from pathlib import Path
from typing import Any

from lab import peers
from lab.benchmarks import wording
from lab.benchmarks.catalogue import ROWS
from lab.benchmarks.measurement import Measurement
from lab.benchmarks.results import Results
from lab.benchmarks.targets import LINES

COSTS = ("pair", "start", "stop", "refresh", "expiry", "next")
STALLS = ("stall_start", "stall_expiry", "stall_stop")
ROOM = ("memory", "memory_forgotten")
INK, GREY, TARGET = "#2b2b2b", "#a3a3a3", "#2e7d32"
# Ours in strong, warm colours; the peers cool and quiet. Those with small sizes only (sched, threading.Timer) are left
# to the tables: their figures would squeeze all others.
OURS = {"system": "#c62828", "manual": "#ef8a17", "engine": "#8e4585", "columns": "#c62828",
        "aio": "#d81b60", "aio-uvloop": "#f48fb1", "idle": "#c62828"}  # fmt: skip
COLOURS = OURS | {
    "asyncio": "#2166ac", "uvloop": "#67a9cf", "heapq": "#5f9e6e", "heap-loop": "#5f9e6e", "kafka": "#222222",
    "jvm-heap": "#8c8c8c",
}  # fmt: skip
STRONG, QUIET = 2.2, 1.0  # widths of lines
STYLE: Any = {
    "svg.hashsalt": "abeyant", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 8,
    "text.color": INK, "axes.labelcolor": INK, "xtick.color": INK, "ytick.color": INK, "axes.edgecolor": GREY,
    "axes.spines.top": False, "axes.spines.right": False, "axes.linewidth": 0.6, "axes.titlesize": 9.5,
    "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.titlepad": 8, "axes.axisbelow": True,
    "grid.color": "#e6e6e6", "grid.linewidth": 0.6, "xtick.major.width": 0.6, "ytick.major.width": 0.6,
    "ytick.minor.width": 0.3,
}  # fmt: skip


def draw(results: Results, folder: Path, kind: str = "svg") -> dict[str, str]:
    """Write the plots into `folder`; return their file names and captions. Empty without matplotlib."""
    try:
        mpl = import_module("matplotlib")
    except ImportError:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    drawn = {}
    with mpl.rc_context(STYLE):
        for name, caption, plot in (
            (
                "costs",
                "The cost of an operation, against the number of pending timers (log scale; dashed: the target).",
                _costs,
            ),
            (
                "stalls",
                "The longest stall of the caller's thread: the median, and the range from least to most (log scale).",
                _stalls,
            ),
            ("memory", "Memory per pending timer, with its handle and without.", _room),
            ("lateness", "Lateness of timers on the real clock. Left of zero is early.", _lateness),
            ("replay", "Columnar replay of a trace on one core, against the number pending (log scale).", _replay),
        ):
            figure = plot(results)
            if figure is not None:
                path = folder / f"{name}.{kind}"
                metadata = {"Date": None} if kind == "svg" else None
                figure.savefig(path, metadata=metadata, bbox_inches="tight", facecolor="white", dpi=130)
                drawn[path.name] = caption
    return drawn


def _label(rival: str) -> str:
    return peers.LABELS[rival].removeprefix("abeyant ").removeprefix("abeyant, ")


# -- lines against what is pending -----------------------------------------------------------------------------


def _costs(results: Results) -> Any:
    rows = [name for name in COSTS if results.of_row(name)]
    if not rows:
        return None
    figure, panels = _panels(len(rows), columns=2, width=4.8, height=2.9)
    for panel, name in zip(panels, rows, strict=True):
        _against_pending(panel, results, name)
    figure.tight_layout(h_pad=2, w_pad=2)
    return figure


def _replay(results: Results) -> Any:
    if not results.of_row("replay"):
        return None
    figure, [panel] = _panels(1, columns=1, width=5.2, height=2.6)
    _against_pending(panel, results, "replay")
    figure.tight_layout()
    return figure


def _against_pending(panel: Any, results: Results, name: str) -> None:
    """Plot a line per rival, with its name at its right end; the target is a dashed line."""
    row = ROWS[name]
    found = [one for one in results.of_row(name) if one.median > 0 and one.rival in COLOURS]
    sizes = sorted({one.size for one in found})
    places = {size: place for place, size in enumerate(sizes)}
    ends = []
    for rival in reversed(COLOURS):  # ours last, on top
        line = sorted((one for one in found if one.rival == rival), key=lambda one: one.size)
        if not line:
            continue
        across = [places[one.size] for one in line]
        up = [wording.shown(row, one.median) for one in line]
        wide = STRONG if rival in ("system", "columns") else 1.4 if rival == "kafka" else QUIET
        panel.plot(across, up, color=COLOURS[rival], lw=wide, marker="o", ms=2 + wide, clip_on=False)
        ends.append((across[-1], up[-1], _label(rival), COLOURS[rival], rival in OURS))
    panel.set_yscale("log")
    if name in LINES:
        panel.axhline(LINES[name], color=TARGET, lw=1, ls=(0, (4, 3)), zorder=1)
        panel.annotate(
            f"{'at least' if row.higher_is_better else 'at most'} {LINES[name]:g}", (0.01, LINES[name]),
            xycoords=("axes fraction", "data"), xytext=(0, 2.5), textcoords="offset points", color=TARGET, fontsize=7,
        )  # fmt: skip
    panel.grid(axis="y")
    panel.set_title(f"{row.title}, {row.unit}")
    panel.set_xticks(range(len(sizes)), [wording.size(size) for size in sizes])
    panel.set_xlim(-0.15, len(sizes) - 1 + 0.1)
    panel.set_xlabel("pending")
    _sparse_log(panel.yaxis, *panel.get_ylim())
    _label_ends(panel, ends, len(sizes) - 1)


def _label_ends(panel: Any, ends: list[tuple[int, float, str, str, bool]], right: int) -> None:
    """Write each line's name beside the line's end; move names apart where they would overlap."""
    low, high = (math.log10(limit) for limit in panel.get_ylim())
    apart = (high - low) * 0.078
    ends = sorted(ends, key=lambda end: end[1])
    heights: list[float] = []
    for _, up, *_ in ends:  # upwards, each at least so far from the one below
        heights.append(max(math.log10(up), heights[-1] + apart if heights else -math.inf))
    for place in reversed(range(len(heights))):  # and downwards, so that the last stays inside
        above = heights[place + 1] if place + 1 < len(heights) else high + apart
        heights[place] = min(heights[place], above - apart)
    for (across, up, label, colour, ours), at in zip(ends, heights, strict=True):
        panel.annotate(
            label, (across, up), (right * 1.09 + 0.12, 10**at), textcoords="data", color=colour, fontsize=7.5,
            va="center", annotation_clip=False, fontweight="bold" if ours else "normal",
            arrowprops={"arrowstyle": "-", "color": colour, "lw": 0.4, "shrinkA": 1, "shrinkB": 3, "relpos": (0, 0.5)},
        )  # fmt: skip


# -- a line a rival, ours first --------------------------------------------------------------------------------


def _largest(results: Results, name: str) -> list[Measurement]:
    """Return the row's measurements at its largest size: ours first, then by figure."""
    found = [one for one in results.of_row(name) if one.rival in COLOURS]
    most = max(one.size for one in found)
    return sorted((one for one in found if one.size == most), key=lambda one: (one.rival not in OURS, one.median))


def _stalls(results: Results) -> Any:
    """Plot the longest stalls per rival: a dot at the median, a bar from the least to the greatest."""
    rows = [name for name in STALLS if results.of_row(name)]
    if not rows:
        return None
    figure, panels = _panels(len(rows), columns=len(rows), width=3.3, height=2.3)
    for panel, name in zip(panels, rows, strict=True):
        row = ROWS[name]
        found = _largest(results, name)
        for place, one in enumerate(found):
            least, middle, most = (
                max(wording.shown(row, value), 1e-3) for value in (min(one.rounds), one.median, max(one.rounds))
            )
            panel.plot([least, most], [place, place], color=COLOURS[one.rival], lw=1, alpha=0.6)
            panel.plot([middle], [place], "o", color=COLOURS[one.rival], ms=6 if one.rival in OURS else 4.5)
            _number(panel, middle, place, wording.number(middle))
        panel.set_xscale("log")
        if name in LINES:
            panel.axvline(LINES[name], color=TARGET, lw=1, ls=(0, (4, 3)), zorder=1)
        low, high = panel.get_xlim()
        panel.set_xlim(low / 1.3, high * 3)
        _sparse_log(panel.xaxis, *panel.get_xlim())
        _rivals_down(panel, found)
        panel.grid(axis="x")
        panel.set_title(f"{wording.size(found[0].size)} {row.title.removeprefix('longest stall: ')}")
        panel.set_xlabel("longest stall, ms")
    figure.tight_layout(w_pad=2)
    return figure


def _room(results: Results) -> Any:
    """Plot the memory per pending timer: a bar per rival, and another of ours with the handle dropped."""
    bars = [(name, one) for name in ROOM if results.of_row(name) for one in _largest(results, name)]
    if not bars:
        return None
    bars.sort(key=lambda bar: bar[1].rival not in OURS)
    figure, [panel] = _panels(1, columns=1, width=6.4, height=2.8)
    for place, (name, one) in enumerate(bars):
        weight = wording.shown(ROWS[name], one.median)
        panel.barh(place, weight, height=0.62, color=COLOURS[one.rival], lw=0)
        _number(panel, weight, place, wording.number(weight))
    panel.axvline(LINES["memory"], color=TARGET, lw=1, ls=(0, (4, 3)))
    labels = [_label(one.rival) + (", handle dropped" if name == "memory_forgotten" else "") for name, one in bars]
    _rivals_down(panel, [one for _, one in bars], labels)
    panel.grid(axis="x")
    panel.set_title(f"memory, {wording.size(bars[0][1].size)} pending: bytes per timer")
    figure.tight_layout()
    return figure


def _number(panel: Any, across: float, place: int, said: str) -> None:
    panel.annotate(said, (across, place), (6, 0), textcoords="offset points", va="center", fontsize=7)


def _rivals_down(panel: Any, found: list[Measurement], labels: list[str] | None = None) -> None:
    panel.set_yticks(range(len(found)), labels or [_label(one.rival) for one in found])
    for label, one in zip(panel.get_yticklabels(), found, strict=True):
        label.set(color=COLOURS[one.rival], fontweight="bold" if one.rival in OURS else "normal")
    panel.tick_params(axis="y", length=0)
    panel.spines["left"].set_visible(False)
    panel.set_ylim(len(found) - 0.4, -0.6)


# -- histograms ------------------------------------------------------------------------------------------------


def _lateness(results: Results) -> Any:
    found = [one for one in results.of_row("lateness") if one.rival in COLOURS]
    if not found:
        return None
    left, right, width = -1.5, 3.0, 0.05  # milliseconds
    edges = [left + step * width for step in range(round((right - left) / width) + 1)]
    figure, panels = _panels(len(found), columns=1, width=7.2, height=1.25)
    for panel, one in zip(panels, found, strict=True):
        late = [value / 1e6 for value in one.extra["late"]]  # quantiles at even distances: as good as a sample
        weight = 100 / len(late)
        panel.axvspan(left, 0, color="#f4f4f4", lw=0, zorder=0)
        panel.hist(late, edges, weights=[weight] * len(late), color=COLOURS[one.rival], lw=0, histtype="stepfilled")
        panel.axvline(0, color=INK, lw=0.8)
        early = sum(value < 0 for value in late) * weight
        beyond = sum(value > right for value in late) * weight
        panel.set_title(f"{_label(one.rival)}: {early:.0f} % early", color=COLOURS[one.rival])
        said = f"earliest {late[0]:+.3f} · median {late[len(late) // 2]:+.2f} · 99 % {late[int(len(late) * 0.99)]:+.2f}"
        said += f" · latest {late[-1]:+.1f} ms" + (f" · {beyond:.1f} % right of this plot" if beyond else "")
        panel.annotate(said, (1, 1.06), xycoords="axes fraction", ha="right", fontsize=7.5)
        panel.set_ylabel("%")
        panel.set_xlim(left, right)
        if one is not found[-1]:
            panel.set_xticklabels([])
    panels[-1].set_xlabel(f"milliseconds after the deadline ({found[0].operations:,} timers each)")
    figure.tight_layout()
    return figure


# -- common ----------------------------------------------------------------------------------------------------


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
