"""Draw the Grafana dashboard's panels from a real Prometheus' answers: docs/images/dashboard.svg.

    python -m scripts.draw_dashboard

Three brokers take produces with acks=all and serve a consumer's long polls for a minute. One broker is paused
meanwhile, so produces wait for it, and some expire. Prometheus scrapes every second, and answers each panel's own
queries. It is not Grafana that draws: only the queries, titles, units and places are the dashboard's.
"""

from __future__ import annotations

import math
import re
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import confluent_kafka
from prometheus_client import CollectorRegistry

from abeyant import SystemTimer
from abeyant.broker import Cluster
from abeyant.metrics import Collector
from scripts.prometheus import Prometheus, panels, scraping

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "images" / "dashboard.svg"
COLUMN, ROW, GAP = 50, 24, 6  # pixels of the dashboard's grid, and between panels
HEAD, LEGEND = 26, 18  # pixels of a panel's title, and of its legend
SHOWN = 6
"""Series that a panel draws, those with the largest values first."""


def draw(prometheus: Prometheus, begin: float, end: float) -> str:
    """Return the picture of what was seen from `begin` to `end`, in seconds since 1970, as SVG."""
    shown = panels()
    high = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in shown) * ROW
    lines = [line for panel in shown for line in _panel(panel, prometheus, begin, end)]
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * COLUMN} {high}" role="img" '
            'aria-label="The panels of the Grafana dashboard">',
            _STYLE,
            *lines,
            "</svg>\n",
        ]
    )


def _panel(panel: Mapping[str, Any], prometheus: Prometheus, begin: float, end: float) -> Iterator[str]:
    place = panel["gridPos"]
    left, top = place["x"] * COLUMN + GAP / 2, place["y"] * ROW + GAP / 2
    width, high = place["w"] * COLUMN - GAP, place["h"] * ROW - GAP
    title = escape(panel["title"])
    if panel["type"] == "row":
        yield f'<text class="row" x="{left + 4:g}" y="{top + 15:g}">{title}</text>'
        return
    yield f'<rect class="panel" x="{left:g}" y="{top:g}" width="{width:g}" height="{high:g}" rx="3"/>'
    yield f'<text class="title" x="{left + 10:g}" y="{top + 18:g}">{title}</text>'
    unit = panel["fieldConfig"]["defaults"].get("unit", "short")
    series = dict(_series(panel, prometheus, begin, end))
    if panel["type"] == "stat":
        value = next(iter(series.values()), [(0.0, math.nan)])[-1][1]
        yield f'<text class="stat" x="{left + width / 2:g}" y="{top + high - 22:g}">{_number(value, unit)}</text>'
        return
    area = (left + 52, top + HEAD + 6, left + width - 12, top + high - LEGEND - 8)
    yield from _lines(series, area, unit, begin, end)


def _series(
    panel: Mapping[str, Any], prometheus: Prometheus, begin: float, end: float
) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """Yield the points of each series by its legend, without what is no number."""
    found: list[tuple[str, list[tuple[float, float]]]] = []
    for target in panel["targets"]:
        query = target["expr"].replace("$__rate_interval", "5s").replace("[5m]", f"[{end - begin:.0f}s]")
        for one in prometheus.between(query, begin, end, 0.5):
            points = [(at, float(value)) for at, value in one["values"] if value != "NaN"]
            if points:
                found.append((_legend(target["legendFormat"], one["metric"], query), points))
    found.sort(key=lambda one: -max(value for _, value in one[1]))
    yield from found[:SHOWN]


def _legend(form: str, labels: Mapping[str, str], query: str) -> str:
    if not form:
        return query
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda label: labels.get(label[1], ""), form)


def _lines(
    series: Mapping[str, list[tuple[float, float]]],
    area: tuple[float, float, float, float],
    unit: str,
    begin: float,
    end: float,
) -> Iterator[str]:
    left, top, right, bottom = area
    most = _round_up(max((value for points in series.values() for _, value in points), default=1.0) or 1.0)
    for part in (0, 0.5, 1):
        y = bottom - part * (bottom - top)
        yield f'<path class="grid" d="M{left:g} {y:g} H{right:g}"/>'
        yield f'<text class="scale" x="{left - 6:g}" y="{y + 4:g}">{_number(part * most, unit)}</text>'
    x = left
    for number, (name, points) in enumerate(series.items()):
        path = " L".join(
            f"{left + (at - begin) / (end - begin) * (right - left):.1f} {bottom - value / most * (bottom - top):.1f}"
            for at, value in points
        )
        yield f'<path class="line c{number}" d="M{path}"/>'
        short = escape(name if len(name) < 26 else name[:25] + "…")
        wide = 16 + 5.9 * min(len(name), 26)
        if x + wide > right + 12:
            continue
        yield f'<rect class="key c{number}" x="{x - 40:g}" y="{bottom + 14:g}" width="10" height="3"/>'
        yield f'<text class="name" x="{x - 27:g}" y="{bottom + 19:g}">{short}</text>'
        x += wide + 8


def _round_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return float(next(step * power for step in (1, 2, 4, 5, 10) if step * power >= value * 0.999))


def _number(value: float, unit: str) -> str:
    if math.isnan(value):
        return "-"
    if unit == "percentunit":
        return f"{100 * value:g} %"
    if unit == "s":
        scaled, name = (value, "s") if value >= 1 else (value * 1e3, "ms") if value >= 1e-3 else (value * 1e6, "µs")
        return f"{scaled:.3g} {name}" if value else "0"
    text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return text + {"ops": "/s", "reqps": "/s"}.get(unit, "")


_STYLE = """<style>
text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.row { font-size: 14px; font-weight: 600 } .title { font-size: 11px; font-weight: 600 }
.stat { font-size: 34px; text-anchor: middle }
.scale { text-anchor: end; font-size: 11px; fill: #59636e } .name { font-size: 11px }
.panel { fill: #fff; stroke: #d0d7de } .grid { stroke: #e4e8ec } .line { fill: none; stroke-width: 1.5 }
.line.c0 { stroke: #0969da } .line.c1 { stroke: #bc4c00 } .line.c2 { stroke: #1a7f37 } .line.c3 { stroke: #8250df }
.line.c4 { stroke: #bf3989 } .line.c5 { stroke: #6e7781 }
.key.c0 { fill: #0969da } .key.c1 { fill: #bc4c00 } .key.c2 { fill: #1a7f37 } .key.c3 { fill: #8250df }
.key.c4 { fill: #bf3989 } .key.c5 { fill: #6e7781 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .scale { fill: #9198a1 } .panel { fill: #161b22; stroke: #3d444d } .grid { stroke: #2a3038 }
  .line.c0 { stroke: #58a6ff } .line.c1 { stroke: #f0883e } .line.c2 { stroke: #3fb950 } .line.c3 { stroke: #bc8cff }
  .line.c4 { stroke: #f778ba } .line.c5 { stroke: #9198a1 }
  .key.c0 { fill: #58a6ff } .key.c1 { fill: #f0883e } .key.c2 { fill: #3fb950 } .key.c3 { fill: #bc8cff }
  .key.c4 { fill: #f778ba } .key.c5 { fill: #9198a1 }
}
</style>"""


def _produce(kafka: Cluster, stop: threading.Event) -> None:
    servers = {"bootstrap.servers": kafka.bootstrap}
    producer = confluent_kafka.Producer({**servers, "acks": "all", "request.timeout.ms": 3000, "linger.ms": 20})
    number = 0
    while not stop.wait(0.02):
        number += 1
        producer.produce("orders", b"order", partition=number % 3)
        producer.poll(0)
    producer.flush(20)


def _consume(kafka: Cluster, stop: threading.Event) -> None:
    servers = {"bootstrap.servers": kafka.bootstrap, "group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(servers)
    consumer.subscribe(["orders"])
    while not stop.is_set():
        consumer.consume(100, 0.2)
    consumer.close()


def main(seconds: float = 60.0) -> None:
    """Put the brokers under load, let Prometheus scrape them, and draw."""
    registry = CollectorRegistry()
    stop = threading.Event()
    with tempfile.TemporaryDirectory() as folder, Cluster(brokers=3) as kafka, SystemTimer(name="rpc") as timer:
        timer.measure(every=1)
        for number in range(200):
            timer.call_every(0.2 + number / 200, math.sqrt, number)
        kafka.create_topic("orders", partitions=3, config={"min.insync.replicas": 3})
        Collector(kafka, timer, registry=registry)
        clients = [threading.Thread(target=run, args=(kafka, stop)) for run in (_produce, _consume)]
        with scraping(registry, Path(folder), "1s") as prometheus:
            for client in clients:
                client.start()
            begin = time.time() + 8  # when the first rates are there
            time.sleep(8 + seconds / 3)
            kafka.pause(3)
            time.sleep(seconds / 4)
            kafka.resume(3)
            time.sleep(max(0.0, begin + seconds - time.time()))
            PICTURE.write_text(draw(prometheus, begin, time.time() - 1), encoding="utf-8")
            stop.set()
            for client in clients:
                client.join()


if __name__ == "__main__":
    main()
