"""A broker's metrics agree with its request log, by count, and with what its clients and faults have done."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry

from abeyant.broker import Cluster
from abeyant.metrics import Collector
from broker.clients import producing, send, settle
from metrics.test_collector import scraped
from waiting import wait_until

_LINE = re.compile(r"Completed request:(.*) \(kafka\.request\.logger\)$")


def logged(folder: Path) -> Counter[tuple[str, str]]:
    """How many lines of each API each broker's request log has, by the names of the metrics."""
    found: Counter[tuple[str, str]] = Counter()
    for file in folder.glob("broker-*/kafka-request.log"):
        for line in file.read_text(encoding="utf-8").splitlines():
            match = _LINE.search(line)
            assert match
            header = json.loads(match[1])["requestHeader"]
            api = header["requestApiKeyName"].title().replace("_", "")
            if api == "Fetch" and header["clientId"].endswith("-fetcher-0"):
                api = "ReplicaFetch"
            found[file.parent.name.removeprefix("broker-"), api] += 1
    return found


def timed_out(folder: Path) -> Counter[str]:
    """How many produces each broker's request log has that were answered with REQUEST_TIMED_OUT."""
    return Counter(
        file.parent.name.removeprefix("broker-")
        for file in folder.glob("broker-*/kafka-request.log")
        for line in file.read_text(encoding="utf-8").splitlines()
        if '"requestApiKeyName":"PRODUCE"' in line and '"errorCode":7' in line
    )


def test_requests_and_expiries_agree_with_the_request_log(tmp_path: Path) -> None:
    registry = CollectorRegistry(auto_describe=True)
    with Cluster(brokers=3, request_log=tmp_path) as kafka:
        Collector(kafka, registry=registry)
        kafka.create_topic("orders", partitions=2, config={"min.insync.replicas": 2})
        with producing(kafka, acks="all", request_timeout_ms=300) as producer:
            settle(producer, *[send(producer, "orders", b"x", number % 2) for number in range(100)])
            with kafka.paused(3):
                late = settle(producer, *[send(producer, "orders", b"x", number % 2) for number in range(10)])
        assert late == ["REQUEST_TIMED_OUT"] * 10
        wait_until(lambda: kafka.in_sync("orders") == (1, 2, 3))
    found = scraped(registry)
    counts = {
        (dict(labels)["broker"], dict(labels)["api"]): int(value)
        for (name, labels), value in found.items()
        if name == "abeyant_broker_requests_total"
    }
    assert counts == logged(tmp_path)
    expired = {
        dict(labels)["broker"]: int(value)
        for (name, labels), value in found.items()
        if name == "abeyant_purgatory_expired_total" and dict(labels)["purgatory"] == "Produce" and value
    }
    assert expired == timed_out(tmp_path)
    assert sum(expired.values()) > 0


def test_the_state_of_brokers_and_replicas() -> None:
    registry = CollectorRegistry(auto_describe=True)
    cluster = Cluster(brokers=3, clock="held")
    Collector(cluster, registry=registry, names="kafka")
    assert scraped(registry) == {}, "it is not open yet"
    with cluster as kafka:
        kafka.create_topic("orders", partitions=2, config={"min.insync.replicas": 3})
        kafka.stop(3)
        kafka.pause(2)
        kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER")
        found = scraped(registry)

        def value(name: str, **labels: str) -> float:
            return found[name, frozenset(labels.items())]

        assert [value("abeyant_broker_up", broker=str(number)) for number in (1, 2, 3)] == [1, 1, 0]
        assert [value("abeyant_broker_paused", broker=str(number)) for number in (1, 2, 3)] == [0, 1, 0]
        assert value("abeyant_broker_faults") == 1
        manager = "kafka_server_replicamanager_"
        assert value(f"{manager}partitioncount", broker="1") == 2
        assert value(f"{manager}leadercount", broker="1") == 1
        assert value(f"{manager}underreplicatedpartitions", broker="1") == 1
        assert value(f"{manager}underminisrpartitioncount", broker="1") == 1
        assert value("kafka_log_log_logendoffset", broker="1", topic="orders", partition="0") == 0
        size = "kafka_server_delayedoperationpurgatory_purgatorysize"
        assert value(size, broker="1", delayedoperation="Produce") == 0
        assert value("abeyant_timer_pending", timer="broker") > 0
    assert [scraped(registry)["abeyant_broker_up", frozenset({("broker", one)})] for one in "123"] == [0, 0, 0]
