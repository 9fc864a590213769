"""The page of an analysis: its sections in order, each with figure, caption and tables, in one HTML file."""

from __future__ import annotations

from pathlib import Path

from abeyant.pages.document import document, write_whole
from abeyant.pages.places import redact_paths
from abeyant.pages.tables import facts
from abeyant.pages.tiles import tiles
from abeyant.pipeline.report import tables
from abeyant.pipeline.report.analysis import Analysis, read_analysis
from abeyant.pipeline.report.by_time import by_time
from abeyant.pipeline.report.headline import happened, headline, note
from abeyant.pipeline.report.incident_drawing import drawing_script, drawing_style, incident_drawing
from abeyant.pipeline.report.opening import opening_tiles, over_time, read_over_time
from abeyant.pipeline.report.parts import plot_place
from abeyant.pipeline.report.sections import SECTIONS, Section

_LOG_SETTINGS = (
    "Lines without a completed request are of other loggers, and do no harm. If others were rejected, let the "
    "broker write what is read here: the logger <code>kafka.request.logger</code> at DEBUG, to a file of its own, "
    "with the pattern <code>[%d] %p %m (%c)%n</code>. In <code>config/log4j2.yaml</code> (Kafka 4) that is the "
    "level of the logger; in <code>config/log4j.properties</code> (Kafka 3 and older) "
    "<code>log4j.logger.kafka.request.logger=DEBUG, requestAppender</code>. Without a restart: "
    "<code>kafka-configs.sh --bootstrap-server HOST:9092 --alter --entity-type broker-loggers --entity-name ID "
    "--add-config kafka.request.logger=DEBUG</code>, and with <code>=WARN</code> off again. A shipper must not "
    "cut lines: some have more than 16 KiB."
)


def write_report(tables: Path, destination: Path) -> None:
    """Write the report of the analysis whose small tables are in `tables`; readers never see a partial file."""
    write_whole(page(read_analysis(tables)), destination)


def page(analysis: Analysis) -> str:
    """Return the whole report as one self-contained HTML page."""
    scopes = analysis.scopes
    hidden = len(analysis.instances) - len(scopes) + 1
    drawing = incident_drawing(analysis)
    return document(
        kicker="Abeyant · what waited in a request log",
        title=headline(analysis),
        own_title=analysis.made.get("title"),
        note=note(analysis),
        tiles=tiles(opening_tiles(analysis)),
        lead=plot_place("plot-opening", "Brokers over time", "Nothing waited.")
        + f'<p class="read">{read_over_time(analysis)}</p>',
        findings=happened(analysis),
        sections="\n".join(_section(section, analysis, drawing) for section in SECTIONS) + _rejected(analysis),
        made=facts(redact_paths(analysis.made)),
        figures={"plot-opening": {str(i): over_time(analysis, scope) for i, scope in enumerate(scopes)}}
        | {
            section.plot: {str(i): section.draw(analysis, scope) for i, scope in enumerate(scopes)}
            for section in SECTIONS
            if section.draw
        },
        options=tables.options(scopes),
        choose=len(scopes) > 1,
        filters=tables.kind_filter(analysis.drawn) if len(analysis.drawn) > 1 else "",
        by_time=by_time(analysis),
        style=drawing_style(analysis) if drawing else "",
        own_script=drawing_script() if drawing else "",
        choose_note=f"the busiest; {hidden:,} more are only in the sum" if len(scopes) > 1 and hidden > 0 else "",
    )


def _section(section: Section, analysis: Analysis, drawing: str) -> str:
    parts = [f"<h2>{section.title}</h2>"]
    if section.words:
        sentences = "".join(f"<li>{sentence}</li>" for sentence in section.words(analysis))
        parts.append(f'<ul class="findings">{sentences}</ul>')
    if section.plot:
        parts.append(plot_place(section.plot, section.title, section.nothing))
        if section.logarithmic:
            box = f'<input type="checkbox" data-logarithmic="{section.plot}" autocomplete="off">'
            parts.append(f'<p class="small"><label>{box} {section.logarithmic}</label></p>')
        parts.append(f'<p class="read">{section.read}</p>')
    if section.table:
        for i, scope in enumerate(analysis.scopes):
            parts.append(f'<div data-scope="{i}"{" hidden" if i else ""}>{section.table(analysis, scope)}</div>')
        if not section.plot:
            parts.append(f'<p class="read">{section.read}</p>')
    if section.title == "Incidents":
        parts.append(drawing)
    return f"<section>{''.join(parts)}</section>"


def _rejected(analysis: Analysis) -> str:
    head = '<h2 id="rejected">Lines that could not be read</h2>'
    advice = "" if analysis.tables["rejected"].empty else f'<p class="read">{_LOG_SETTINGS}</p>'
    return f"<section>{head}{tables.rejected(analysis)}{advice}</section>"
