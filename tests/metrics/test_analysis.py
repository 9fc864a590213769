"""`curl /metrics` of a loaded broker agrees with `abeyant analyze` of its request log, by count."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from abeyant.cli import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

parser = pytest.importorskip("prometheus_client.parser")

pytestmark = pytest.mark.slow

ABEYANT = [sys.executable, "-m", "abeyant"]
RECORDS = 200


class Control:
    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, path: str, body: object = None, method: str = "POST") -> Any:
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def counts(self) -> Counter[tuple[str, ...]]:
        """The broker's counts of requests and expiries, by broker and name."""
        with urllib.request.urlopen(f"{self.url}metrics") as answer:
            text = answer.read().decode()
        found: Counter[tuple[str, ...]] = Counter()
        for family in parser.text_string_to_metric_families(text):
            for name, labels, value, *_ in family.samples:
                if name == "abeyant_broker_requests_total":
                    api = labels["api"].removeprefix("Replica")  # Kafka's log has one name for both
                    found["requests", f"broker-{labels['broker']}", api] += int(value)
                elif name == "abeyant_purgatory_expired_total" and labels.get("purgatory") in ("Produce", "Fetch"):
                    found["expired", f"broker-{labels['broker']}", labels["purgatory"]] += int(value)
        return found


def test_metrics_agree_with_the_analysis_of_the_request_log(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    line = "broker --brokers 3 --port 0 --control --clock held --topic orders:4:3 --request-log"
    with subprocess.Popen([*ABEYANT, *line.split(), str(logs)], stdout=subprocess.PIPE, text=True) as broker:
        assert broker.stdout is not None
        try:
            told = json.loads(broker.stdout.readline())
            control = Control(told["control"])
            load(told["bootstrap.servers"], control)
            control("cluster", method="GET")  # waits for messages between brokers; the clock is held: none come later
            counts = control.counts()
        finally:
            broker.terminate()
    assert main(["analyze", str(logs), "--out", str(tmp_path / "result"), "--json", "--quiet"]) == 0
    analysis = json.loads(capsys.readouterr().out)["result"]
    expected: Counter[tuple[str, ...]] = Counter()
    for row in analysis["requests_by_kind"]:
        expected["requests", row["instance"], row["api"].title().replace("_", "")] += row["requests"]
    for row in analysis["summary"]:
        if row["instance"] != "*" and row["kind"] in ("PRODUCE", "FETCH_FOLLOWER", "FETCH_CONSUMER"):
            expected["expired", row["instance"], row["kind"].partition("_")[0].title()] += row["expired"]
    for number in (1, 2, 3):  # a cluster that ends answers some of the fetches that wait
        key = "requests", f"broker-{number}", "Fetch"
        assert 0 <= expected[key] - counts[key] <= 2
        expected[key] = counts[key]
    assert +counts == +expected
    assert sum(count for (what, _, api), count in counts.items() if (what, api) == ("requests", "Produce")) > RECORDS
    assert sum(count for (what, _, name), count in counts.items() if (what, name) == ("expired", "Produce")) == 2


def load(servers: str, control: Control) -> None:
    """Produce and consume, and let two produces and many long polls expire."""
    topic = control("topics/orders", method="GET")
    led = {one["leader"]: one["partition"] for one in topic["partitions"] if one["leader"] != 3}
    errors: list[Any] = []
    settings = {"bootstrap.servers": servers, "acks": "all", "request.timeout.ms": 5000, "retries": 0, "linger.ms": 0}
    producer = Producer(settings)

    def produce(partition: int) -> None:
        producer.produce("orders", b"x", partition=partition, on_delivery=lambda error, _: errors.append(error))

    for number in range(RECORDS):
        produce(led[1 + number % 2])
        producer.flush(30)
    assert errors == [None] * RECORDS
    errors.clear()
    control("brokers/3/pause")
    for partition in led.values():
        produce(partition)
    control("waiting?kind=Produce&count=2&timeout=30", method="GET")
    control("clock/advance", {"seconds": 5})
    producer.flush(30)
    assert [error.name() for error in errors] == ["REQUEST_TIMED_OUT"] * 2
    control("brokers/3/resume")
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "billing"})
    consumer.assign([TopicPartition("orders", partition, 0) for partition in led.values()])
    got = 0
    while got < RECORDS + 2:
        found = consumer.consume(100, 30)
        assert found
        got += len(found)
    control("clock/advance", {"seconds": 5})
    consumer.close()
