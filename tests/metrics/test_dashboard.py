"""The Grafana dashboard asks for series that there are; a real Prometheus, where there is one, runs its queries."""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry

from abeyant import SystemTimer
from abeyant.broker import Cluster
from abeyant.metrics import Collector
from broker.clients import producing, send, settle
from metrics.test_collector import scraped
from scripts.prometheus import queries, scraping

SERIES = re.compile(r"\babeyant_\w+")


def test_the_series_of_its_queries_exist() -> None:
    registry = CollectorRegistry()
    with Cluster() as kafka:
        with SystemTimer() as timer:
            timer.measure()
            Collector(kafka, timer, registry=registry)
            there = {name for name, _ in scraped(registry)}
        kafka.create_topic("orders")
        with producing(kafka) as producer:
            settle(producer, send(producer, "orders", b"x"))
        there |= {name for name, _ in scraped(registry)}
    asked = {name for query in queries() for name in SERIES.findall(query)}
    assert len(asked) > 15
    assert asked - there == set()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus on the PATH")
def test_a_real_prometheus_runs_its_queries(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    with Cluster(brokers=3) as kafka, SystemTimer() as timer:
        timer.measure(every=1)
        timer.call_every(0.02, lambda: None)
        Collector(kafka, timer, registry=registry)
        kafka.create_topic("orders", partitions=2)
        with scraping(registry, tmp_path, "200ms") as prometheus, producing(kafka, acks="all") as producer:
            sent, ends = 0, time.monotonic() + 60
            lacking = queries()
            while lacking and time.monotonic() < ends:
                settle(producer, send(producer, "orders", b"x"))
                sent += 1
                time.sleep(0.2)  # some scrapes of the real Prometheus
                for query in lacking[:]:
                    found = prometheus.ask(query.replace("$__rate_interval", "30s"))
                    if any(sample["value"][1] != "NaN" for sample in found):  # 0/0 of a purgatory that is idle
                        lacking.remove(query)
            assert lacking == []
            counted, ends = 0.0, time.monotonic() + 60
            while counted < sent and time.monotonic() < ends:
                [sample] = prometheus.ask('sum(abeyant_broker_requests_total{api="Produce"})')
                counted = float(sample["value"][1])
            assert counted == sent
