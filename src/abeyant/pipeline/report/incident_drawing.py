"""Draw the worst incidents as an animation with a time slider: a timing wheel and a purgatory, as in the live page."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from abeyant.pages.document import asset, data
from abeyant.pages.formatting import counted, escaped, shortened
from abeyant.pages.style import NEUTRAL
from abeyant.pipeline.report.analysis import ALL, Analysis
from abeyant.pipeline.report.kinds import colours

__all__ = ["drawing_script", "drawing_style", "incident_drawing"]

_STYLE: Final = """
#incident {
  --faint: var(--quiet); --empty: var(--grid); --busy: #3f80d6; --hand: var(--alarm); --card: var(--ground);
  margin: 1rem 0;
}
#incident .controls { display: flex; flex-wrap: wrap; gap: 0.5rem 1rem; align-items: center; }
#incident label { min-width: 0; max-width: 100%; }
#incident select { max-width: 100%; }
#incident-time { flex: 1 1 12rem; min-width: 0; }
#incident-now { display: block; margin: 0.5rem 0; font-variant-numeric: tabular-nums; }
#incident .drawings { display: grid; gap: 1.5rem; align-items: center; }
#incident .drawings { grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
#incident .wheel-drawing { max-width: 20rem; }
"""

_HTML: Final = """<h3>The worst as they happened</h3>
<div id="incident" hidden>
<div class="controls"><label>Incident <select id="incident-choice" autocomplete="off">{options}</select></label>
<button type="button" id="incident-play">Play</button>
<input type="range" id="incident-time" min="0" aria-label="time" autocomplete="off"></div>
<output id="incident-now"></output>
<div class="drawings"><svg id="incident-wheel"></svg><svg id="incident-lanes"></svg></div>
<p class="small">{legend}</p>
</div>
<script type="application/json" id="incident-data">{data}</script>
<p class="read">The wheel holds the time-outs, as Kafka's does: 20 buckets of 1 ms in the outermost ring, and in each
next ring 20 times as long ones. The frames show where the clock stands. Beside it is what waits, by key and the time
that it has left. An operation that expires reaches <em>now</em>; one that completes goes before. Drawn are at most 250
operations that waited during an incident, those of its kind first.</p>"""


def incident_drawing(analysis: Analysis) -> str:
    """Return the drawing, in HTML, of the incidents whose operations the analysis kept, worst first; "" for none."""
    waits, incidents = analysis.tables["incident_waits"], analysis.incidents(ALL)
    if waits.empty:
        return ""
    kinds = _kinds(analysis)
    parts = dict(iter(waits.groupby("incident")))
    pairs = [(row, parts[number]) for number, row in enumerate(incidents.to_dict("records"), 1) if number in parts]
    pairs.sort(key=lambda part: (-part[0]["expired"], -part[0]["operations"]))
    options = "".join(f'<option value="{i}">{_title(incident)}</option>' for i, (incident, _) in enumerate(pairs))
    legend = " ".join(
        f'<span class="kind" style="--kind:{colour}">{escaped(shortened(kind))}</span>'
        for kind, colour in _legend(kinds).items()
    )
    content = {"kinds": list(kinds), "incidents": [_incident(incident, rows, list(kinds)) for incident, rows in pairs]}
    return _HTML.format(options=options, legend=legend, data=data(content))


def drawing_script() -> str:
    """Return the JavaScript that draws and plays the incidents."""
    return asset("wheel.js") + asset("incident.js")


def drawing_style(analysis: Analysis) -> str:
    """Return the drawing's CSS, with the page's colours of the kinds."""
    numbered = enumerate(_kinds(analysis).values(), 1)
    of_kinds = "".join(f"#incident .kind-{number} {{ --kind: {colour}; }}\n" for number, colour in numbered)
    return asset("wheel.css") + _STYLE + of_kinds


def _kinds(analysis: Analysis) -> dict[str, str]:
    """Return the kinds that are drawn, in the page's order, with their colours."""
    present = set(analysis.tables["incident_waits"]["kind"])
    colour = colours(analysis.drawn)
    return {kind: colour.get(kind, NEUTRAL) for kind in analysis.kinds if kind in present}


def _legend(kinds: dict[str, str]) -> dict[str, str]:
    """Return the kinds that have a colour of their own, and one entry for all other kinds."""
    coloured = {kind: colour for kind, colour in kinds.items() if colour != NEUTRAL}
    return coloured | ({"other kinds": NEUTRAL} if len(coloured) < len(kinds) else {})


def _title(incident: dict[Any, Any]) -> str:
    number = counted(incident["operations"], "operation")
    if incident["expired"]:  # short enough for 400 px
        number = f"{incident['expired']:,} of {incident['operations']:,} expired"
    return escaped(f"{incident['first']:%H:%M:%S} {shortened(incident['kind'], 24)}: {number}")


def _incident(incident: dict[Any, Any], waits: pd.DataFrame, kinds: list[str]) -> dict[str, Any]:
    """Return the data that incident.js plays. Times are in milliseconds; operations start relative to `first`."""
    first = incident["first"]
    millisecond = pd.Timedelta(milliseconds=1)
    start = ((waits["start"] - first) / millisecond).round(3)
    end = float((start + waits["waited_ms"]).max())
    names = ("waited_ms", "timeout_ms", "kind", "key", "outcome")
    rows = zip(start, *(waits[name] for name in names), strict=True)
    return {
        "first": first.timestamp() * 1000,
        "lasted": round(min((incident["last"] - first) / millisecond, end) + 1, 3),
        "kind": kinds.index(incident["kind"]) if incident["kind"] in kinds else -1,
        "waits": [
            {
                "start": begin,
                "waited": round(waited, 3),
                "timeout": None if pd.isna(timeout) else int(timeout),
                "kind": kinds.index(kind),
                "key": "" if pd.isna(key) else shortened(key),
                "expired": outcome == "expired",
            }
            for begin, waited, timeout, kind, key, outcome in rows
        ],
    }
