"""The page: sections in their order, each with its figure, how to read it, and its tables; all in one file."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from string import Template

from . import tables
from .analysis import Analysis
from .headline import findings, headline
from .sections import SECTIONS, Section
from .style import Figure, plotly
from .words import escaped


def page(analysis: Analysis) -> str:
    """Return the whole report as one HTML page that needs nothing else."""
    scopes = analysis.scopes
    script, library = _asset("page.js"), plotly("offline").get_plotlyjs()
    drawn = {
        section.plot: {str(i): _json(section.draw(analysis, scope)) for i, scope in enumerate(scopes)}
        for section in SECTIONS
        if section.draw
    }
    hidden = len(analysis.instances) - len(scopes) + 1
    return Template(_asset("page.template")).substitute(
        title=escaped(headline(analysis)),
        hashes=f"{_hash(library)} {_hash(script)}",
        style=_asset("page.css"),
        findings="".join(f"<li>{sentence}</li>" for sentence in findings(analysis)),
        choose="" if len(scopes) > 1 else " hidden",
        options=tables.options(scopes),
        choose_note=f"the busiest; {hidden:,} more are only in the sum" if len(scopes) > 1 and hidden > 0 else "",
        sections="\n".join(_section(section, analysis) for section in SECTIONS) + _rejected(analysis),
        made=tables.facts(analysis.made),
        figures=_data(drawn),
        plotly=library,
        script=script,
    )


def _section(section: Section, analysis: Analysis) -> str:
    parts = [f"<h2>{section.title}</h2>"]
    if section.plot:
        named = f'id="{section.plot}" role="img" aria-label="{section.title}"'
        parts.append(f'<div class="plot" {named} hidden></div>')
        if section.logarithmic:
            box = f'<input type="checkbox" data-logarithmic="{section.plot}" autocomplete="off">'
            parts.append(f'<p class="small"><label>{box} {section.logarithmic}</label></p>')
        parts.append(f'<p class="nothing" id="{section.plot}-nothing" hidden>{section.nothing}</p>')
        parts.append(f'<p class="read">{section.read}</p>')
    if section.table:
        for i, scope in enumerate(analysis.scopes):
            parts.append(f'<div data-scope="{i}"{" hidden" if i else ""}>{section.table(analysis, scope)}</div>')
        if not section.plot:
            parts.append(f'<p class="read">{section.read}</p>')
    return f"<section>{''.join(parts)}</section>"


def _rejected(analysis: Analysis) -> str:
    return f'<section><h2 id="rejected">Lines that could not be read</h2>{tables.rejected(analysis)}</section>'


def _json(figure: Figure | None) -> object:
    return None if figure is None else json.loads(figure.to_json())


def _data(value: object) -> str:
    """Return JSON that cannot end the script element it stands in, whatever a log put into it."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(script: str) -> str:
    """Return what the page's security policy names a script by: no other script may run in it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _asset(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")
