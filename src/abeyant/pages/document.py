"""Build a self-contained HTML page: text, style, figures, and the script that draws them.

Figures are drawn by plotly.js' basic bundle beside this module: lines, points and bars (1.2 MB; the complete one
has 4.8 MB). Heat maps are tables (`heat`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any, Final

from abeyant.pages.figure import Figure
from abeyant.pages.formatting import escaped


def document(
    *,
    kicker: str,
    title: str,
    findings: Iterable[str],
    note: str = "",
    tiles: str = "",
    lead: str = "",
    sections: str,
    made: str,
    figures: Mapping[str, Mapping[str, Figure | None]],
    options: str = '<option value="0">all</option>',
    choose: bool = False,
    choose_note: str = "",
    filters: str = "",
    style: str = "",
    by_time: Mapping[str, Any] | None = None,
    inline: bool = False,
    own_script: str = "",
    own_title: str | None = None,
) -> str:
    """Return the HTML page. `figures` maps element ids and then values of the menu `options` ("0": all) to figures.

    `by_time` are counts from which the script computes tables and figures for a selected time range.
    An `inline` page is for an iframe in a notebook. It omits the table of contents and how the page was made,
    sets the height of its iframe, and follows the light or dark theme of the notebook.
    The page starts with `title`, `note`, `tiles`, `lead` (a figure), and `findings`.
    A user's `own_title` replaces `title`, which then is the first line below it.
    `kicker`, `title` and `own_title` are plain text; everything else is HTML. `own_script` is JavaScript of this page
    alone.
    A page without figures does not contain plotly.
    """
    sections, contents = (sections, "") if inline else _with_anchors(sections)
    library = asset("plotly-basic.min.js") if figures else ""
    script = asset("page.js") + own_script
    drawn = {
        plot: {scope: figure and figure.to_dict() for scope, figure in scopes.items()}
        for plot, scopes in figures.items()
    }
    return Template(asset("page.template")).substitute(
        look=' class="inline"' if inline else "",
        outside=" hidden" if inline else "",
        kicker=escaped(kicker),
        title=escaped(own_title or title),
        headline=f'<p class="headline">{escaped(title)}</p>' if own_title else "",
        hashes=f"{_hash(library)} {_hash(script)}",
        style=asset("page.css") + style,
        note=f'<p class="small">{note}</p>' if note else "",
        tiles=tiles,
        lead=f'<div class="lead">{lead}</div>' if lead else "",
        findings="".join(f"<li>{sentence}</li>" for sentence in findings),
        bar="" if choose or filters else " hidden",
        choose="" if choose else " hidden",
        options=options,
        choose_note=choose_note,
        filters=filters,
        contents=contents,
        sections=sections,
        made=made,
        figures=data(drawn),
        by_time=data(by_time),
        plotly=library,
        script=script,
        credit=_CREDIT if figures else "",
        noscript=_WITHOUT_SCRIPTS if figures else "",
    )


_CREDIT: Final = ' Figures by\n<a href="https://plotly.com/javascript/">plotly.js</a> (MIT licence).'
_WITHOUT_SCRIPTS: Final = '<noscript><p class="nothing">The figures need JavaScript; the tables do not.</p></noscript>'
_HEADING: Final = re.compile(r'<h2(?: id="([^"]*)")?>(.*?)</h2>')


def _with_anchors(sections: str) -> tuple[str, str]:
    """Return the sections with an id and a link on each heading, and the table of contents."""
    entries: dict[str, str] = {}

    def add_anchor(heading: re.Match[str]) -> str:
        title = heading[2]
        name = heading[1] or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        while name in entries:
            name += "-"
        entries[name] = title
        return f'<h2 id="{name}">{title} <a class="anchor" href="#{name}" aria-label="link to this">#</a></h2>'

    anchored_sections = _HEADING.sub(add_anchor, sections)
    return anchored_sections, "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in entries.items())


def write_whole(text: str, destination: Path) -> None:
    """Write a page atomically. Create its folder if needed."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def data(value: object) -> str:
    """Return `value` as JSON that is safe inside a script element, whatever strings from a log it contains."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(script: str) -> str:
    """Return a script's hash for the page's content security policy, which allows no other scripts."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def asset(name: str) -> str:
    """Return the text of a file in this folder, such as a script or a style."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
