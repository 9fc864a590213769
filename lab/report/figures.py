"""One figure an experiment: a run in, a plotly figure out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from pathlib import Path
from typing import Any, Final, NamedTuple

from abeyant.pages.heat import heat_map
from abeyant.pages.style import Figure, plotly
from abeyant.pages.words import duration
from lab.report.look import ORDER, colour, line, title
from lab.report.run import Run

_LOG: Final = {"type": "log", "tickformat": ",.3~r", "dtick": "D2"}
_TEN_DAYS: Final = 10 * 86_400_000.0
_MARKS: Final = (1, 10, 100, 1_000, 10_000, 60_000, 600_000, 3_600_000, 36_000_000, _TEN_DAYS)
_RATE: Final = {"type": "log", "tickformat": "~s", "dtick": "D2"}
_NANOSECONDS: Final = {"type": "log", "tickformat": "~s", "range": [1.5, 3.5], "dtick": 1}
"""What is O(n) leaves it upwards: else what costs tens of nanoseconds could not be told apart."""


_MOST_TICKS: Final = 6


class Panel(NamedTuple):
    """One of the small plots of a figure."""

    title: str
    x: str
    y: str
    unit: str
    upright: dict[str, Any]


def enqueue(run: Run) -> Figure:
    """The rate sustained, CPU, the longest pause and what is watched, against the target rate."""
    panels = [
        Panel("enqueued and ended, requests/s", "rate", "sustained rate", "requests/s", _RATE),
        Panel("CPU a request, µs", "rate", "CPU a request", "µs", _LOG),
        Panel("longest pause of the collector, ms", "rate", "longest pause", "ms", _LOG),
        Panel("most on the watch lists", "rate", "watched, most", "watches", _RATE),
    ]
    loads = sorted(run.choices("load"), key=list(_LOADS).index)

    def draw(figure: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for load in loads:
            for design in _in_order(run):
                cells = run.of(design, load=load).sort_values("rate")
                if panel.y not in cells or cells[panel.y].isna().all():
                    continue
                figure.add_scatter(
                    x=cells[panel.x],
                    y=cells[panel.y].where(cells[panel.y] > 0),
                    name=title(design),
                    legendgroup=design,
                    showlegend=first and bool(load == loads[0]),
                    mode="lines+markers",
                    line=line(design, dash="solid" if load == "low" else "dot"),
                    marker={"size": 5},
                    hovertemplate=_hover(f"{title(design)}, {_LOADS[load]}", panel.unit, "%{x:,}/s"),
                    **axes,
                )
        if panel.y == "sustained rate":
            rates = run.choices("rate")
            figure.add_scatter(
                x=rates, y=rates, mode="lines", showlegend=False, hoverinfo="skip",
                line={"color": "rgba(128,128,128,0.5)", "width": 1, "dash": "dash"}, **axes,
            )  # fmt: skip

    return _panels(panels, draw, "target rate, requests/s", rows=2, across=_measured(run.choices("rate")))


_LOADS: Final = {"low": "few time-outs", "high": "many time-outs"}


def cost(run: Run) -> Figure:
    """Insert, delete and expire against what is pending, on logarithmic axes."""
    panels = [
        Panel("insert, deadlines at random, ns", "pending", "insert random", "ns", _NANOSECONDS),
        Panel("insert, each the earliest so far, ns", "pending", "insert earliest", "ns", _NANOSECONDS),
        Panel("delete, ns (random order)", "pending", "delete random", "ns", _NANOSECONDS),
        Panel("expire, ns a task, all of them", "pending", "expire", "ns", _NANOSECONDS),
    ]
    return _panels(panels, _lines(run), "timers pending", rows=2, across=_measured(run.choices("pending")))


def precision(run: Run) -> Figure:
    """How late at most, and as a share of the delay, against the delay."""
    shares = [10.0**power for power in range(-8, 3, 2)]
    panels = [
        Panel(
            "how late at most",
            "delay",
            "late",
            "ms late",
            {**_durations(0.5, 2 * _TEN_DAYS), "title": {"text": "late"}},
        ),
        Panel(
            "how late at most, as a share of the delay",
            "delay",
            "share",
            "of the delay",
            {
                "type": "log",
                "tickvals": shares,
                "ticktext": [_percent(share) for share in shares],
            },
        ),
    ]
    cells = run.cells.assign(
        delay=run.cells["delay_us"] / 1e3, late=run.cells["latest"] / 1e3, share=run.cells["of the delay"]
    )
    exact = {"delay-queue", "indexed-heap", "lazy-heap", "sorted-list", "unsorted-list"}
    drawn = Run(run.experiment, run.date, run.machine, run.version, cells[~cells["design"].isin(exact)])
    return _panels(panels, _lines(drawn), "delay", rows=1, across=_durations(0.7, 1.4 * _TEN_DAYS))


def purge(run: Run) -> Figure:
    """Memory and CPU against the purge interval, a line for each number of keys."""
    panels = [
        Panel("most memory, MiB", "purge_interval", "memory, most", "MiB", _LOG),
        Panel("CPU an operation, µs", "purge_interval", "CPU an operation", "µs", _LOG),
    ]
    several = run.choices("keys")
    intervals = [interval for interval in run.choices("purge_interval") if interval]

    def draw(figure: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for number, keys in enumerate(several):
            for design in _in_order(run):
                cells = run.of(design, keys=keys).sort_values("purge_interval")
                if cells.empty:
                    continue
                flat = design == "ours"
                x = [intervals[0], intervals[-1]] if flat else cells["purge_interval"]
                y = [cells[panel.y].iloc[0]] * 2 if flat else cells[panel.y]
                figure.add_scatter(
                    x=x,
                    y=y,
                    name=title(design),
                    legendgroup=design,
                    showlegend=first and bool(keys == several[-1]),
                    mode="lines" if flat else "lines+markers",
                    opacity=0.35 + 0.65 * (number + 1) / len(several),
                    line=line(design),
                    marker={"size": 4},
                    hovertemplate=_hover(f"{title(design)}, {keys} keys", panel.unit, "%{x:,}"),
                    **axes,
                )
            label = run.of("kafka", keys=keys).sort_values("purge_interval").tail(1)
            if len(label):
                x_axis, y_axis = axes["xaxis"], axes["yaxis"]
                figure.add_annotation(
                    x=log10(label["purge_interval"].iloc[0]), y=log10(label[panel.y].iloc[0]), text=f"{keys} keys",
                    xref=x_axis, yref=y_axis, showarrow=False, xanchor="left", xshift=6, font={"size": 11},
                )  # fmt: skip

    return _panels(panels, draw, "purge interval, operations", rows=1, across=_measured(intervals))


def geometry(run: Run) -> str:
    """Cascades a task and bucket-queue operations a task, as heat maps of tick and wheel size, a row a trace; HTML."""
    traces = sorted(run.choices("trace"), key=lambda trace: (Path(trace).suffix != "", trace))
    metrics = [("cascades", "cascades a task"), ("bucket-queue operations", "bucket-queue operations a task")]
    maps = []
    for name in traces:
        for metric, words in metrics:
            grid = run.of(trace=name).pivot_table(index="tick_us", columns="wheel_size", values=metric)
            shown = grid.rename(index=_tick, columns=lambda size: f"{size:,}")
            maps.append(heat_map(f"{Path(name).stem}: {words}", shown, "tick", "buckets a wheel", lambda n: f"{n:.2f}"))
    return f'<div class="heats">{"".join(maps)}</div>'


def idle(run: Run) -> Figure:
    """What each way costs a second, packets and turns, at each rate of packets; and its longest turn."""
    panels = [
        Panel("CPU, ms a second", "packets_s", "CPU", "ms a second", {}),
        Panel("longest turn, ms", "packets_s", "longest turn", "ms", {}),
    ]

    def draw(figure: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for design in _in_order(run):
            cells = run.of(design).sort_values("packets_s")
            figure.add_bar(
                x=[f"{rate:,}" for rate in cells["packets_s"]], y=cells[panel.y], name=title(design),
                legendgroup=design, showlegend=first, marker={"color": colour(design)},
                hovertemplate=_hover(title(design), panel.unit, "%{x} packets/s"), **axes,
            )  # fmt: skip

    figure = _panels(panels, draw, "packets a second", rows=1, across={"type": "category"})
    figure.update_layout(barmode="group", bargap=0.25)
    return figure


FIGURES: Final[dict[str, Callable[[Run], Figure]]] = {
    "enqueue": enqueue, "cost": cost, "precision": precision, "purge": purge, "idle": idle,
}  # fmt: skip


def _lines(run: Run) -> Callable[[Figure, Panel, dict[str, str], bool], None]:
    """A line a design."""

    def draw(figure: Figure, panel: Panel, axes: dict[str, str], first: bool) -> None:
        for design in _in_order(run):
            cells = run.of(design).sort_values(panel.x)
            figure.add_scatter(
                x=cells[panel.x], y=cells[panel.y].where(cells[panel.y] > 0), name=title(design), legendgroup=design,
                showlegend=first, mode="lines+markers", line=line(design), marker={"size": 4},
                hovertemplate=_hover(title(design), panel.unit, "%{x:,.3~g}"), **axes,
            )  # fmt: skip

    return draw


def _panels(
    panels: Sequence[Panel],
    draw: Callable[[Figure, Panel, dict[str, str], bool], None],
    below: str,
    *,
    rows: int,
    across: dict[str, Any],
) -> Figure:
    """Small plots in rows of two, with one legend below them."""
    figure = plotly("graph_objects").Figure()
    gap, row = 66 if rows > 1 else 44, 236
    inner = rows * (row + gap) + 30
    titles = []
    for number, panel in enumerate(panels):
        down, right = divmod(number, 2)
        top = 1 - (down * (row + gap) + gap - 18) / inner
        bottom = top - row / inner
        left = 0.55 if right else 0.0
        index = "" if number == 0 else str(number + 1)
        figure.layout[f"xaxis{index}"] = {
            "domain": [left, left + 0.45], "anchor": f"y{index}", **across,
            "title": {"text": below, "standoff": 4}, "showgrid": False,
        }  # fmt: skip
        figure.layout[f"yaxis{index}"] = {
            "domain": [bottom, top], "anchor": f"x{index}", "tickformat": "~s",
            "title": {"text": panel.unit}, **panel.upright,
        }  # fmt: skip
        draw(figure, panel, {"xaxis": f"x{index}", "yaxis": f"y{index}"}, number == 0)
        _widen(figure, index)
        titles.append(_title(panel.title, left, top))
    figure.update_layout(
        height=inner + 70,
        showlegend=True,
        legend={"orientation": "h", "y": -0.1 if rows > 1 else -0.19, "yanchor": "top", "x": 0},
        hovermode="closest",
        uirevision="lab",
        meta={"panels": len(panels), "rowPixels": row, "gapPixels": gap},
    )
    for words in titles:
        figure.add_annotation(**words)
    return figure


def _widen(figure: Figure, index: str) -> None:
    """Where all values of a logarithmic panel are close together, show enough around them for a tick at 1, 2 or 5."""
    axis = figure.layout[f"yaxis{index}"]
    if axis.type != "log" or axis.range is not None:
        return
    traces = [trace for trace in figure.data if trace.yaxis == f"y{index}"]
    values = [value for trace in traces for value in trace.y if value is not None and value > 0]
    if values and max(values) < 3 * min(values):
        middle = log10(min(values) * max(values)) / 2
        axis.range = [middle - log10(2), middle + log10(2)]


def _durations(low: float, high: float) -> dict[str, Any]:
    """A logarithmic axis of milliseconds, labelled in readable units."""
    values = [value for value in _MARKS if low <= value <= high]
    return {
        "type": "log",
        "tickvals": values,
        "ticktext": [duration(value) for value in values],
        "range": [log10(low), log10(high)],
    }


def _measured(values: Sequence[float]) -> dict[str, Any]:
    """A logarithmic axis with ticks where it was measured, of many at some of them."""
    shown = values[:: -(-len(values) // _MOST_TICKS) or 1]
    return {"type": "log", "tickvals": list(shown), "ticktext": [_short(value) for value in shown]}


def _percent(share: float) -> str:
    """A share without an exponent, however small."""
    return f"{100 * share:.6f}".rstrip("0").rstrip(".") + " %"


def _short(value: float) -> str:
    """A number as an axis has room for it: 500, 2k, 1M."""
    for unit, letter in ((1e6, "M"), (1e3, "k")):
        if value >= unit:
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _hover(words: str, unit: str, where: str) -> str:
    return f"{words}<br>%{{y:,.3~g}} {unit} at {where}<extra></extra>"


def _title(text: str, left: float, top: float) -> dict[str, Any]:
    return {
        "text": text, "x": left, "y": top, "xref": "paper", "yref": "paper", "xanchor": "left", "yanchor": "bottom",
        "showarrow": False, "font": {"size": 12}, "align": "left",
    }  # fmt: skip


def _tick(us: int) -> str:
    return f"{us / 1_000:g} ms"


def _in_order(run: Run) -> list[str]:
    return [design for design in ORDER if run.has(design)]
