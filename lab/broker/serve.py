"""Start a cluster of three brokers, print how long it took, and serve until stdin ends.

    python -m lab.broker.serve abeyant
    python -m lab.broker.serve mock        librdkafka's own mock cluster

It prints one line of JSON: `bootstrap`, and times in seconds since the program's first line ran.
"""

from __future__ import annotations

import time

BEGUN = time.perf_counter()  # before the measured imports

import json  # noqa: E402
import sys  # noqa: E402

BROKERS = 3
ANOTHER = 5  # further clusters; the median of their starts is reported


def _report(**figures: object) -> None:
    print(json.dumps(figures), flush=True)
    sys.stdin.read()


def _abeyant() -> None:
    from abeyant.broker import Cluster

    with Cluster(brokers=BROKERS) as kafka:
        listening = time.perf_counter() - BEGUN
        kafka.create_topic("first", partitions=1, replicas=BROKERS)
        first = _first_record(kafka.bootstrap)
        another = []
        for _ in range(ANOTHER):
            begun = time.perf_counter()
            with Cluster(brokers=BROKERS):
                another.append(time.perf_counter() - begun)
        _report(bootstrap=kafka.bootstrap, listening=listening, first=first, another=sorted(another)[ANOTHER // 2])


def _mock() -> None:
    from confluent_kafka import Producer

    cluster = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": BROKERS, "log_level": 0})
    brokers = cluster.list_topics(timeout=10).brokers.values()
    listening = time.perf_counter() - BEGUN
    bootstrap = ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    _report(bootstrap=bootstrap, listening=listening, first=_first_record(bootstrap))


def _first_record(bootstrap: str) -> float:
    from confluent_kafka import Producer

    errors: list[object] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0})
    producer.produce("first", b"first", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(10)
    if errors != [None]:
        raise SystemExit(f"the first record was not delivered: {errors}")
    return time.perf_counter() - BEGUN


if __name__ == "__main__":
    {"abeyant": _abeyant, "mock": _mock}[sys.argv[1]]()
