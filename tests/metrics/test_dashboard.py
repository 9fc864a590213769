"""The Grafana dashboard asks for series that there are; a real Prometheus, where there is one, runs its queries."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry, start_http_server

from abeyant import SystemTimer
from abeyant.broker import Cluster
from abeyant.metrics import Collector
from broker.clients import producing, send, settle
from metrics.test_collector import scraped

DASHBOARD = Path(__file__).parents[2] / "examples" / "grafana" / "abeyant.json"
SERIES = re.compile(r"\babeyant_\w+")


def queries() -> list[str]:
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return [target["expr"] for panel in panels for target in panel.get("targets", ())]


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
    with Cluster(brokers=3) as kafka, socket.create_server(("127.0.0.1", 0)) as taken:
        timer = SystemTimer()
        timer.measure(every=1)
        timer.call_every(0.05, lambda: None)
        Collector(kafka, timer, registry=registry)
        kafka.create_topic("orders", partitions=2)
        server, thread = start_http_server(0, "127.0.0.1", registry)
        port = taken.getsockname()[1]
        taken.close()
        job = {"job_name": "abeyant", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}
        config = tmp_path / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s"}, "scrape_configs": [job]}))  # JSON is YAML
        options = [f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
        prometheus = subprocess.Popen(["prometheus", *options, f"--web.listen-address=127.0.0.1:{port}"])
        try:
            with producing(kafka, acks="all") as producer:
                for _ in range(8):
                    settle(producer, send(producer, "orders", b"x"))
                    time.sleep(1)  # one scrape of the real Prometheus
            for query in queries():
                found = ask(port, query.replace("$__rate_interval", "5s").replace("[5m]", "[5s]"))
                assert found or "/" in query, query  # 0/0 is no number, so no series
            [sample] = ask(port, 'sum(abeyant_broker_requests_total{api="Produce"})')
            assert float(sample["value"][1]) >= 6
            assert ask(port, 'up{job="abeyant"}')[0]["value"][1] == "1"
        finally:
            prometheus.terminate()
            prometheus.wait()
            server.shutdown()
            server.server_close()
            thread.join()
            timer.close()


def ask(port: int, query: str) -> list[dict[str, Any]]:
    address = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(address, timeout=10) as answer:
        found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
    return found
