"""The bridge to OpenTelemetry of docs/metrics.md, with OpenTelemetry's own SDK: its readings are Prometheus' own."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")
pytest.importorskip("opentelemetry.sdk")

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry

import abeyant
from abeyant.metrics import Collector

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


class Acked(abeyant.DelayedOperation):
    def try_complete(self) -> bool:
        return False


def test_the_bridge_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    [code] = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    registry = CollectorRegistry()
    monkeypatch.setattr("prometheus_client.REGISTRY", registry)
    timer = abeyant.ManualTimer()
    purgatory = abeyant.Purgatory[Acked]("requests", timer)
    Collector(purgatory, rpc=timer, registry=registry)
    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    exec(compile(code, str(PAGE), "exec"), {"meter_provider": provider})
    try:
        for number in range(5):
            purgatory.try_complete_else_watch(Acked(0.2 if number < 2 else 30.0), [f"partition-{number}"])
        timer.advance(1)
        seen = readings(reader)
        assert seen["abeyant_purgatory_pending", "requests"] == 3
        assert seen["abeyant_purgatory_expired", "requests"] == 2
        assert seen["abeyant_timer_started", "rpc"] == 5
        scraped = {
            (family.name, *sample.labels.values()): sample.value
            for family in registry.collect()
            for sample in family.samples
            if not sample.name.endswith("_created")
        }
        assert seen == scraped
        assert len(seen) == 15
    finally:
        provider.shutdown()


def readings(reader: InMemoryMetricReader) -> dict[tuple[str, ...], Any]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        (metric.name, *map(str, (point.attributes or {}).values())): point.value  # type: ignore[union-attr]
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }
