"""A real Prometheus that scrapes a registry of this process, and the queries of our Grafana dashboard."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server

DASHBOARD = Path(__file__).resolve().parents[1] / "examples" / "grafana" / "abeyant.json"


def panels() -> list[dict[str, Any]]:
    """Return the dashboard's panels in their order."""
    found: list[dict[str, Any]] = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    return found


def queries() -> list[str]:
    """Return the dashboard's queries as they stand in it."""
    return [target["expr"] for panel in panels() for target in panel.get("targets", ())]


class Prometheus:
    """A running Prometheus, by the port of its API."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(self, query: str) -> list[dict[str, Any]]:
        """Return the samples of a query now. Raises HTTPError 400 for a query that Prometheus cannot parse."""
        return self._get("query", query=query)

    def between(self, query: str, begin: float, end: float, step: float) -> list[dict[str, Any]]:
        """Return the series of a query from `begin` to `end`, in seconds since 1970."""
        return self._get("query_range", query=query, start=begin, end=end, step=step)

    def _get(self, what: str, **given: object) -> list[dict[str, Any]]:
        address = f"http://127.0.0.1:{self.port}/api/v1/{what}?" + urllib.parse.urlencode(given)
        with urllib.request.urlopen(address, timeout=60) as response:
            found: list[dict[str, Any]] = json.load(response)["data"]["result"]
        return found


@contextmanager
def scraping(registry: CollectorRegistry, folder: Path, interval: str) -> Iterator[Prometheus]:
    """Serve the registry and have a Prometheus scrape it at each interval ("1s"); its data go to `folder`."""
    server, thread = start_http_server(0, "127.0.0.1", registry)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    job = {"job_name": "abeyant", "static_configs": [{"targets": [f"127.0.0.1:{server.server_port}"]}]}
    config = folder / "prometheus.yml"  # JSON is YAML
    config.write_text(
        json.dumps({"global": {"scrape_interval": interval, "scrape_timeout": interval}, "scrape_configs": [job]})
    )
    options = [f"--config.file={config}", f"--storage.tsdb.path={folder / 'data'}", "--log.level=warn"]
    process = subprocess.Popen(["prometheus", *options, f"--web.listen-address=127.0.0.1:{port}"])
    try:
        prometheus = Prometheus(port)
        _wait_until_up(prometheus, process)
        yield prometheus
    finally:
        process.terminate()
        process.wait()
        server.shutdown()
        server.server_close()
        thread.join()


def _wait_until_up(prometheus: Prometheus, process: subprocess.Popen[bytes]) -> None:
    ends = time.monotonic() + 60
    while time.monotonic() < ends and process.poll() is None:
        try:
            if [sample["value"][1] for sample in prometheus.ask('up{job="abeyant"}')] == ["1"]:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"prometheus does not scrape after 60 s (exit status {process.poll()})")
