"""The page of resolved operations, from tables or a stream: one self-contained HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pandas as pd

from abeyant.pages.document import document, write_whole
from abeyant.pages.formatting import count, counted, duration, escaped, shortened
from abeyant.pages.places import redact_paths
from abeyant.pages.style import EXPIRED
from abeyant.pages.tables import Column, facts, nothing, table
from abeyant.pages.tiles import tiles
from abeyant.pipeline.report import figures, tables
from abeyant.pipeline.report.analysis import ALL
from abeyant.pipeline.report.outcomes import Outcomes, outcome_tiles, read_outcomes
from abeyant.pipeline.report.parts import plot_place, section

__all__ = ["inline_page", "write_outcome_report"]


_READ: Final = {
    "kinds": "An operation <em>completes</em> when its condition holds in time, else it <em>expires</em> at its "
    "deadline, unless a watch <em>cancels</em> it before. Percentiles are over all operations of the kind; they are at "
    "most 0.5 % too long.",
    "waits": "Each bar counts the operations whose wait fell between its two edges; the axis is logarithmic, so steps "
    f'to the right multiply the wait. In <b style="color:{EXPIRED}">red</b>: expired. A lone spike far to the right is '
    "usually a time-out. Operations that did not wait at all are not drawn.",
    "keys": "An operation with several watches counts on each of its keys.",
    "once": "One operation expired on each key. All that expired are in the table <code>outcomes</code>, with "
    "outcome = 'expired'; <code>abeyant expired DIR --csv</code> prints them as CSV.",
    "rejected": "These rows have no part in any outcome. They are kept, with the reason, beside the outcomes.",
}


_FIRST: Final = 5
"""Number of keys to show if each has one expired operation only."""


def write_outcome_report(small_tables: Path, destination: Path, *, kicker: str, no_keys: str = "") -> None:
    """Write the page of the outcomes whose small tables are in a directory; readers never see a partial file.

    `no_keys` is the reason to show if the keys were not looked up.
    """
    outcomes = read_outcomes(small_tables)
    rejected_rows = section("Rejected rows", _READ["rejected"], tables=[_rejected_table(outcomes)])
    text = _page(outcomes, kicker, [_kinds(outcomes), _struck(outcomes, no_keys), rejected_rows])
    write_whole(text, destination)


def inline_page(outcomes: Outcomes, *, kicker: str) -> str:
    """Return the page of outcomes for a frame in a notebook. It shows keys only if the keys were looked up."""
    keys = [] if outcomes.keys is None else [_struck(outcomes, "")]
    return _page(outcomes, kicker, [_kinds(outcomes), *keys], inline=True)


def _page(outcomes: Outcomes, kicker: str, sections: list[str], *, inline: bool = False) -> str:
    return document(
        kicker=f"Abeyant · {kicker}",
        title=outcomes.title,
        own_title=outcomes.made.get("title"),
        tiles=tiles(outcome_tiles(outcomes)),
        lead=_WAITS,
        findings=_findings(outcomes),
        sections="\n".join(sections),
        made=facts(redact_paths(outcomes.made)),
        figures={"plot-waits": {"0": figures.waits(outcomes.analysis, ALL)}},
        filters=tables.kind_filter(outcomes.analysis.drawn) if len(outcomes.analysis.drawn) > 1 else "",
        inline=inline,
    )


_WAITS: Final = (
    plot_place("plot-waits", "How long they waited", "Nothing waited.") + f'<p class="read">{_READ["waits"]}</p>'
)


def _kinds(outcomes: Outcomes) -> str:
    return section("How they ended, by kind", _READ["kinds"], tables=[tables.by_kind(outcomes.analysis, ALL)])


def _struck(outcomes: Outcomes, no_keys: str) -> str:
    if outcomes.each_key_once and outcomes.count("expired"):
        return section("Expired, the first five", _READ["once"], tables=[_keys(outcomes, no_keys)])
    return section("Keys that expire most", _READ["keys"], tables=[_keys(outcomes, no_keys)])


def _findings(outcomes: Outcomes) -> list[str]:
    rows = outcomes.summary
    if rows.empty:
        return []
    slow = outcomes.slowest
    of = "" if len(rows) == 1 else f" of <b>{escaped(shortened(slow['kind']))}</b>, which waits longest,"
    sentences = [
        f"Half{of or ' of them'} waited at most {duration(slow['p50_ms'])}, p95 "
        f"{duration(slow['p95_ms'])}, the longest {duration(slow['max_ms'])}."
    ]
    if outcomes.keys is not None and len(outcomes.keys):
        worst, *others = outcomes.keys.to_dict("records")
        about = "about " if worst["one_in"] > 1 else ""
        key = escaped(shortened(worst["key"]))
        if not others or others[0]["expired"] < worst["expired"]:  # a tie has no worst key
            sentences.append(
                f"Most expired on the key <code><bdi>{key}</bdi></code>: {about}{count(worst['expired'])}."
            )
    if outcomes.warning:
        sentences.append(escaped(outcomes.warning))
    if outcomes.may_be_open:
        sentences.append(escaped(outcomes.may_be_open))
    if outcomes.rejected:
        sentences.append(
            f'{counted(sum(outcomes.rejected.values()), "row")} rejected: <a href="#rejected-rows">why</a>.'
        )
    return sentences


def _keys(outcomes: Outcomes, no_keys: str) -> str:
    if not outcomes.count("expired"):
        return nothing("Nothing expired.")
    if outcomes.keys is None:
        return nothing(escaped(no_keys))
    names: dict[str, Column] = {"key": ("key", tables.key_cell)}
    if outcomes.keys["instance"].nunique() > 1:
        names["instance"] = ("instance", tables.name_cell)
    if outcomes.each_key_once:
        return table(outcomes.keys.head(_FIRST), names, {})
    one_in = int(outcomes.keys["one_in"].max()) if len(outcomes.keys) else 1
    estimated = f'<p class="small">Estimated from one in {one_in:,} of the operations that expired.</p>'
    content = table(outcomes.keys, names, {"expired": ("expired", count)}, bars=["expired"])
    return content + (estimated if one_in > 1 else "")


def _rejected_table(outcomes: Outcomes) -> str:
    if not outcomes.rejected:
        return nothing("None: every row was used.")
    rows = pd.DataFrame(outcomes.rejected.items(), columns=["why", "rows"]).sort_values("rows", ascending=False)
    return table(rows, {"why": ("what, and why", escaped)}, {"rows": ("rows", count)})
