"""The sections of an analysis page, in order: each with its figure, how to read it, and its table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from abeyant.pages.figure import Figure
from abeyant.pages.style import EXPIRED, LONG_WAIT
from abeyant.pipeline.report import figures, tables
from abeyant.pipeline.report.analysis import Analysis
from abeyant.pipeline.report.headline import findings


@dataclass(frozen=True)
class Section:
    """A section of the page on one question about the log: its figure, how to read it, and its table."""

    title: str
    read: str = ""
    plot: str = ""
    draw: Callable[[Analysis, str], Figure | None] | None = None
    nothing: str = ""
    logarithmic: str = ""
    """Label of the check box that makes the figure's y axis logarithmic; "" for no check box."""
    table: Callable[[Analysis, str], str] | None = None
    words: Callable[[Analysis], list[str]] | None = None
    """Returns sentences on the whole log, in HTML, to show above the table."""


SECTIONS: Final = (
    Section(
        title="Incidents",
        table=tables.incidents,
        read="Bursts of trouble, and who each is put down to, by which evidence. The <em>confidence</em>, from 0 to 1, "
        "is that of the rule that names the suspect: a fixed number of each rule. "
        "An operation counts if it expired, or waited at least 0.1 s and 10 times as "
        "long as 95 in 100 of its kind that waited. A fetch that expired does not count: it is a long poll that found "
        "too little, and does no harm. Those count, too, that a quota throttled, that took 0.1 s to handle or to send, "
        "that were refused, and fetches that came 1 s late, again and again. A burst lasts until 10 s pass in which no "
        "such operation of its kind ends (a minute for late fetches). <em>Longest</em> is the longest of these times. "
        "A click on the time shows the incident in the figure below, "
        f'where incidents are marked: <b style="color:{EXPIRED}">red</b> where operations expired, '
        f'<b style="color:{LONG_WAIT}">orange</b> where all of them completed, late.',
    ),
    Section(
        title="What waited, by kind",
        table=tables.by_kind,
        words=findings,
        read="An operation is a request that Kafka may answer later. It <em>completes</em> when its condition "
        "comes true (replicas have caught up, bytes have arrived, members have joined) and <em>expires</em>"
        " when its time-out passes first. A FETCH that expires is a long poll that found too little: no "
        "harm. A PRODUCE that expires is an error to its client. Shares are of those whose end the log shows; "
        "percentiles are over all operations, those that did not have to wait included.",
    ),
    Section(
        title="Pending over time",
        plot="plot-pending",
        draw=figures.pending,
        nothing="Nothing was ever pending.",
        read="How many operations were waiting at each moment, counted exactly rather than sampled. Each kind "
        "has a scale of its own. A level line is steady work, such as long polls; a ramp that does not come"
        " down means that a condition stopped coming true. Kafka logs a request when it answers it: what still waited "
        "when a broker's log ended is not in that log, nor is its deadline. So the last seconds, as many as the "
        "longest time-out, may show too few. Drag across to look closer, double-click to come"
        " back.",
    ),
    Section(
        title="How long they waited",
        plot="plot-waits",
        draw=figures.waits,
        nothing="Nothing waited.",
        read="Each bar counts the operations whose wait fell between its two edges; the axis is logarithmic, so "
        "steps to the right multiply the wait. In the colour of its kind: completed. In <b "
        f'style="color:{EXPIRED}">red</b>: expired, so they would have waited longer still. Pale: the'
        " log does not show how it ended. A lone spike far to the right is usually a time-out. Operations that"
        " did not wait at all are not drawn.",
    ),
    Section(
        title="Had the time-out been different",
        plot="plot-timeout",
        draw=figures.timeout_curve,
        nothing="Too little waited to say what another time-out would have done.",
        logarithmic="share on a logarithmic scale, to tell one in a hundred from one in a thousand",
        read="For a time-out T, the share of operations that would have expired. An operation that expired in the log "
        "waited <em>at least</em> so long, not exactly so long. Such waits count as censored (the Kaplan-Meier "
        "estimate). So the curve holds up to the longest time-out in the log, and stops there. The band, where there "
        "is one, holds 95 % confidence. Choose the smallest T whose share you can live with.",
    ),
    Section(
        title="Keys that wait longest",
        table=tables.keys_longest,
        read="A key is what an operation waits on: a partition, a group. For each kind, these are the keys "
        "with the highest 95th percentile, and those on which most time was spent in all. Many short waits add up.",
    ),
    Section(
        title="Keys that expire most",
        table=tables.keys_expired,
        read="For each kind, the keys on which most operations expired. An operation that watches several keys "
        "counts on each of them.",
    ),
    Section(
        title="Every request, by API",
        table=tables.requests,
        read="All requests of the log, those that are answered at once included.",
    ),
)
