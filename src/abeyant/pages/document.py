"""One HTML file that needs nothing else: its text, its look, its figures and the script that draws them.

The figures' library is plotly.js' basic bundle, which lies beside this module (1.2 MB; what plotly for Python brings is
4.8 MB): lines, points and bars. A heat map is a table (`heat`).
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

from abeyant.pages.style import Figure
from abeyant.pages.words import escaped


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
) -> str:
    """Return the page. `figures` are by the id of their place and then by the scope chosen, "0" where there is none.

    `by_time` are counts from which the script makes tables and figures for a part of the time.
    An `inline` page is for a frame in a notebook. It lacks the contents and how it was made, makes its frame as high as
    it is itself, and is light or dark as what is around it.
    The page opens with `title`, `note`, `tiles`, `lead` (a figure), and `findings`.
    `kicker` and `title` are plain text, all else is HTML.
    """
    sections, contents = (sections, "") if inline else _with_anchors(sections)
    script, library = _asset("page.js"), _asset("plotly-basic.min.js")
    drawn = {plot: {scope: _json(figure) for scope, figure in scopes.items()} for plot, scopes in figures.items()}
    return Template(_asset("page.template")).substitute(
        look=' class="inline"' if inline else "",
        outside=" hidden" if inline else "",
        kicker=escaped(kicker),
        title=escaped(title),
        hashes=f"{_hash(library)} {_hash(script)}",
        style=_asset("page.css") + style,
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
        figures=_data(drawn),
        by_time=_data(by_time),
        plotly=library,
        script=script,
    )


_HEADING: Final = re.compile(r'<h2(?: id="([^"]*)")?>(.*?)</h2>')


def _with_anchors(sections: str) -> tuple[str, str]:
    """Give each heading an id, unless it has one, and a link to itself; return them, and the list of contents."""
    entries: dict[str, str] = {}

    def anchored(heading: re.Match[str]) -> str:
        title = heading[2]
        name = heading[1] or re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "section"
        while name in entries:
            name += "-"
        entries[name] = title
        return f'<h2 id="{name}">{title} <a class="anchor" href="#{name}" aria-label="link to this">#</a></h2>'

    anchored_sections = _HEADING.sub(anchored, sections)
    return anchored_sections, "".join(f'<li><a href="#{name}">{title}</a></li>' for name, title in entries.items())


def write_whole(text: str, destination: Path) -> None:
    """Write a page, making its folder; a reader never sees half of it."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = destination.with_name(f".{destination.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(destination)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _json(figure: Figure | None) -> object:
    if figure is None:
        return None
    made: dict[str, Any] = json.loads(figure.to_json())
    made["layout"].pop("template", None)  # plotly's own look, in each figure anew: the page has one for all of them
    return made


def _data(value: object) -> str:
    """Return JSON that cannot end the script element it stands in, whatever a log put into it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(script: str) -> str:
    """Return what the page's security policy names a script by: no other script may run in it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
