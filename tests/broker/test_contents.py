"""What a test writes into a cluster itself: wrong records and names are refused with the value, and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from abeyant.broker import Cluster, NewRecord
from abeyant.broker.coordinator.topics import TRANSACTIONS, ensure_topic
from abeyant.errors import AbeyantError
from broker.conformance.client import Connection

MANY = "x" * 32_768
RECORDS = {
    "text": (["one"], "record 0 must be bytes, None or a NewRecord, not 'one'"),
    "no-list": (5, "records must be a list of bytes, None or NewRecord, not 5"),
    "one-value": (b"one", "records must be a list of bytes, None or NewRecord, not b'one'"),
    "key": ([b"fine", NewRecord(b"v", "k")], "record 1: key must be bytes or None, not 'k'"),  # type: ignore[arg-type]
    "timestamp-text": ([NewRecord(b"v", timestamp="a")], "not 'a'"),  # type: ignore[arg-type]
    "timestamp-float": ([NewRecord(b"v", timestamp=1.5)], "not 1.5"),  # type: ignore[arg-type]
    "timestamp-large": ([NewRecord(b"v", timestamp=1 << 64)], "timestamp must be milliseconds, an int of 64 bits"),
    "headers-dict": ([NewRecord(b"v", headers={"a": b"b"})], "headers must be like"),  # type: ignore[arg-type]
    "headers-none": ([NewRecord(b"v", headers=None)], "not None"),  # type: ignore[arg-type]
    "header-text": ([NewRecord(b"v", headers=(("a", "b"),))], "headers must be like"),  # type: ignore[arg-type]
    "header-bytes": ([NewRecord(b"v", headers=((b"a", b"b"),))], "headers must be like"),  # type: ignore[arg-type]
    "header-half": ([NewRecord(b"v", headers=(("\ud800", b"b"),))], "record 0: header '\\ud800' has half a surrogate"),
}
NAMES = {
    "commit-half": (lambda kafka: kafka.commit("\ud800", {("orders", 0): 0}), "group '\\ud800' has half a surrogate"),
    "commit-long": (lambda kafka: kafka.commit(MANY, {("orders", 0): 0}), "group has 32768 bytes"),
    "commit-number": (lambda kafka: kafka.commit(5, {("orders", 0): 0}), "group must be str, not 5"),
    "expire-group": (lambda kafka: kafka.expire_member(5, "m"), "group must be str, not 5"),
    "expire-member": (lambda kafka: kafka.expire_member("g", 5), "member must be str, not 5"),
    "fence": (lambda kafka: kafka.fence(5), "transactional_id must be str, not 5"),
    "topic-number": (lambda kafka: kafka.create_topic(5), "the topic's name must be str, not 5"),
    "topic-half": (lambda kafka: kafka.create_topic("\ud800"), "has half a surrogate pair"),
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster() as cluster:
        cluster.create_topic("orders")
        yield cluster


@pytest.mark.parametrize(("records", "message"), RECORDS.values(), ids=RECORDS)
def test_what_is_no_record_is_refused(kafka: Cluster, records: Any, message: str) -> None:
    with pytest.raises(AbeyantError) as raised:
        kafka.seed("orders", records)
    assert message in str(raised.value)
    assert kafka.records("orders") == []


@pytest.mark.parametrize(("call", "message"), NAMES.values(), ids=NAMES)
def test_a_name_that_no_response_can_carry_is_refused(kafka: Cluster, call: Any, message: str) -> None:
    """Else no client could list groups any more."""
    with pytest.raises(AbeyantError) as raised:
        call(kafka)
    assert message in str(raised.value)
    assert kafka.groups() == []
    host, _, port = kafka.bootstrap.rpartition(":")
    with Connection(host, int(port), "lister") as client:
        assert client.ask("ListGroups", 4, {"states_filter": []})["error_code"] == "NONE"


def test_what_has_no_leader_that_runs_is_not_told_to_be_empty() -> None:
    """A test that nothing was written would pass."""
    kafka: Cluster
    readings: dict[str, Callable[[], object]] = {
        "records": lambda: kafka.records("orders"),
        "partition": lambda: kafka.records("orders", 0, isolation="read_committed"),
        "compact": lambda: kafka.compact("orders"),
        "groups": lambda: kafka.groups(),
        "group": lambda: kafka.group("billing"),
        "unknown": lambda: kafka.group("nobody"),
        "commit": lambda: kafka.commit("billing", {("orders", 0): 1}),
        "expire": lambda: kafka.expire_member("billing", "m"),
        "transactions": lambda: kafka.transactions(),
        "fence": lambda: kafka.fence("till"),
    }
    with Cluster(clock="held") as kafka:
        kafka.create_topic("orders", config={"cleanup.policy": "compact"})
        kafka.seed("orders", [NewRecord(b"one", b"k")])
        kafka.commit("billing", {("orders", 0): 1})
        ensure_topic(kafka.controller, kafka.settings, TRANSACTIONS)
        kafka.stop(1)
        for name, read in readings.items():
            with pytest.raises(AbeyantError) as raised:
                read()
            assert str(raised.value).endswith("that runs; start broker 1"), (name, raised.value)
        with pytest.raises(AbeyantError, match=r"cannot read 'orders', partition 0: it has no leader that runs; start"):
            kafka.records("orders")
        kafka.start(1)
        assert (kafka.records("orders"), kafka.groups(), kafka.transactions()) == ([], [], [])


def test_a_leader_that_is_paused_before_it_knows_is_to_be_resumed() -> None:
    with Cluster(2, clock="held") as kafka:
        kafka.create_topic("orders")
        kafka.seed("orders", [b"one"])
        with kafka.paused(1):
            assert len(kafka.records("orders")) == 1, "it is paused, and has it"
        kafka.pause(2)
        kafka.stop(1)
        with pytest.raises(AbeyantError, match="its leader, broker 2, is paused: resume it"):
            kafka.records("orders")
        kafka.resume(2)
        assert len(kafka.records("orders")) == 1
