"""Control over HTTP does what the Python methods do: real clients see it, and wrong input is told in one line."""

from __future__ import annotations

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker import Cluster, control
from abeyant.broker.control.schema import check
from abeyant.broker.control.serving import OPERATIONS
from abeyant.errors import AbeyantError
from broker.clients import consuming, producing, send, settle, take
from waiting import wait_until


class Client:
    """A client that knows only HTTP and JSON."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        sent = {**({} if data is None else {"Content-Type": "application/json"}), **headers}
        request = urllib.request.Request(self.url + path, data, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                status, text = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                status, text = error.code, error.read()
        return status, json.loads(text) if text else None

    def done(self, method: str, path: str, body: Any = None) -> Any:
        status, found = self(method, path, body)
        assert status in (200, 204), found
        return found


@pytest.fixture
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=3, clock="held") as cluster:
        cluster.create_topic("orders", partitions=2, config={"min.insync.replicas": 2})
        yield cluster


@pytest.fixture
def http(kafka: Cluster) -> Iterator[Client]:
    with control.serve(kafka) as server:
        yield Client(server.url)


def test_a_produce_times_out_in_held_time(kafka: Cluster, http: Client) -> None:
    http.done("POST", "/brokers/3/pause")
    assert http.done("GET", "/brokers/3")["state"] == "paused"
    with producing(kafka, acks="all", request_timeout_ms=5_000) as producer:
        delivery = send(producer, "orders", b"x")
        [waiting] = http.done("GET", "/waiting?kind=Produce&count=1&timeout=20")["waiting"]
        assert (waiting["keys"], waiting["left"]) == ([["orders", 0]], 5.0)
        http.done("POST", "/clock/advance", {"seconds": 5})
        assert settle(producer, delivery) == ["REQUEST_TIMED_OUT"]
    http.done("POST", "/brokers/3/resume")
    assert http.done("GET", "/brokers/3")["state"] == "running"


def test_the_fault_table(kafka: Cluster, http: Client) -> None:
    third = {"action": "fail", "api": "Produce", "error": "KAFKA_STORAGE_ERROR", "topic": "orders", "partition": 1}
    fault = http.done("POST", "/faults", {**third, "nth": 3, "times": 1})
    seen = http.done("POST", "/faults", {"action": "observe", "api": "Produce", "client_id": "till"})
    with producing(kafka, client_id="till") as producer:
        found = [settle(producer, send(producer, "orders", b"x", 1)) for _ in range(4)]
        assert found == [[None], [None], ["KAFKA_STORAGE_ERROR"], [None]]
        settle(producer, send(producer, "orders", b"x", 0))
    after = http.done("GET", f"/faults/{fault['id']}/wait?timeout=5")
    assert (after["matched"], after["hits"], after["active"]) == (3, 1, False)
    # What a fault takes over, no later one sees.
    assert http.done("GET", f"/faults/{seen['id']}")["hits"] == 4
    assert [one["id"] for one in http.done("GET", "/faults")["faults"]] == [fault["id"], seen["id"]]
    assert http.done("DELETE", f"/faults/{seen['id']}")["active"] is False
    assert http.done("DELETE", "/faults") == {"ended": 0}


def test_which_rule_nearly_matched(kafka: Cluster, http: Client) -> None:
    fault = http.done("POST", "/faults", {"action": "drop", "api": "Produce", "topic": "orders", "client_id": "till-1"})
    with producing(kafka, client_id="till-2") as producer:
        settle(producer, send(producer, "orders", b"x"), send(producer, "orders", b"x", 1))
    misses = http.done("GET", f"/faults/{fault['id']}")["near_misses"]
    assert misses[0] == {
        "selector": "client_id", "wanted": "till-1", "found": "till-2", "api": "Produce", "requests": 2,
    }  # fmt: skip
    status, answer = http("GET", f"/faults/{fault['id']}/wait?timeout=0")
    assert status == 409
    assert "2 Produce had client_id 'till-2' instead of 'till-1'" in answer["error"]


def test_groups_and_transactions_are_chosen() -> None:
    with Cluster() as real, control.serve(real) as server:
        http = Client(server.url)
        http.done("POST", "/topics", {"name": "orders"})
        joins = http.done("POST", "/faults", {"action": "observe", "api": "JoinGroup", "group": "billing"})
        begins = http.done("POST", "/faults", {"action": "observe", "api": "InitProducerId", "transactional_id": "t1"})
        ends = http.done("POST", "/faults", {"action": "observe", "transactional_id": "t2"})
        with producing(real, transactional_id="t1", retries=1, client_id="") as producer:
            producer.init_transactions(20)
            producer.begin_transaction()
            send(producer, "orders", b"in a transaction")
            producer.flush(20)
            [one] = http.done("GET", "/transactions")["transactions"]
            assert (one["id"], one["state"], one["partitions"]) == (
                "t1", "Ongoing", [{"topic": "orders", "partition": 0}],
            )  # fmt: skip
            assert 0 < one["left"] <= 60
            producer.abort_transaction(20)
        http.done("POST", "/topics/orders/records", {"records": [{"value": "seeded"}]})
        with consuming(real, group_id="billing", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            take(consumer, 1)
            group = http.done("GET", "/groups/billing")
            assert (group["state"], len(group["members"])) == ("Stable", 1)
        assert http.done("GET", f"/faults/{begins['id']}")["hits"] == 1
        assert http.done("GET", f"/faults/{joins['id']}")["hits"] >= 1
        assert http.done("GET", f"/faults/{ends['id']}")["hits"] == 0


def test_seeded_records_and_offsets_are_what_a_consumer_finds() -> None:
    with Cluster() as real, control.serve(real) as server:
        http = Client(server.url)
        http.done("POST", "/topics", {"name": "orders"})
        records: list[dict[str, Any]]
        records = [{"value": f"value {n}", "key": "k", "headers": [{"name": "h", "value": "1"}]} for n in range(3)]
        records.append({"value": "AP8=", "encoding": "base64", "timestamp": 1_700_000_000_000})
        assert http.done("POST", "/topics/orders/records", {"records": records}) == {"offsets": [0, 1, 2, 3]}
        offsets = [{"topic": "orders", "partition": 0, "offset": 1}]
        group = http.done("POST", "/groups/billing%2F1/offsets", {"offsets": offsets})
        assert (group["id"], group["state"]) == ("billing/1", "Empty")
        assert group["offsets"] == [{"topic": "orders", "partition": 0, "offset": 1, "metadata": "", "lag": 3}]
        with consuming(real, group_id="billing/1", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["orders"])
            found = take(consumer, 3)
        assert [(one.offset(), one.value()) for one in found] == [(1, b"value 1"), (2, b"value 2"), (3, b"\x00\xff")]
        shown = http.done("GET", "/topics/orders/records?offset=2&limit=2")
        assert [one["value"] for one in shown["records"]] == ["value 2", "AP8="]
        assert shown["records"][0]["headers"] == [{"name": "h", "value": "1"}]
        assert shown["total"] == 4
        [partition] = http.done("GET", "/topics/orders")["partitions"]
        assert (partition["leader"], partition["high_watermark"]) == (1, 4)


def test_what_cannot_be_read_is_refused_and_not_empty() -> None:
    with Cluster() as real, control.serve(real) as server:
        http = Client(server.url)
        http.done("POST", "/topics", {"name": "orders"})
        http.done("POST", "/topics/orders/records", {"records": [{"value": "x"}]})
        http.done("POST", "/groups/billing/offsets", {"offsets": [{"topic": "orders", "partition": 0, "offset": 1}]})
        [partition] = http.done("GET", "/topics/orders")["partitions"]
        assert (partition["log_start_offset"], partition["log_end_offset"]) == (0, 1)
        http.done("POST", "/brokers/1/stop")
        for path in ("/topics/orders/records", "/topics/orders/records?partition=0", "/groups", "/groups/billing"):
            status, answer = http("GET", path)
            assert (status, answer["error"].endswith("no leader that runs; start broker 1")) == (409, True), answer
        assert http.done("GET", "/transactions") == {"transactions": []}, "no client has used one: there is no topic"
        [partition] = http.done("GET", "/topics/orders")["partitions"]
        assert (partition["leader"], partition["log_start_offset"], partition["log_end_offset"]) == (None, None, None)


def test_a_wait_ends_when_what_it_waits_for_happens(kafka: Cluster, http: Client) -> None:
    fault = http.done("POST", "/faults", {"action": "drop", "api": "Produce", "times": 1})
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(http.done("GET", f"/faults/{fault['id']}/wait?timeout=20")))
    thread.start()
    with producing(kafka) as producer:
        settle(producer, send(producer, "orders", b"x"))
    thread.join()
    assert found[0]["hits"] == 1


def test_a_wait_for_a_fault_that_has_ended_is_over_at_once(kafka: Cluster, http: Client) -> None:
    fault = http.done("POST", "/faults", {"action": "observe", "api": "Produce"})
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(http("GET", f"/faults/{fault['id']}/wait?timeout=600")))
    thread.start()
    wait_until(lambda: bool(kafka._faults.active[0]._awaited))
    http.done("DELETE", f"/faults/{fault['id']}")
    thread.join(20)
    found.append(http("GET", f"/faults/{fault['id']}/wait?timeout=600"))
    once = http.done("POST", "/faults", {"action": "drop", "api": "Produce", "times": 1})
    for status, answer in found:
        assert (status, "with too few hits: 0 of 1 hits of <Fault: counted: Produce, ended>" in answer["error"]) == (
            409, True,
        )  # fmt: skip
    assert len(found) == 2
    status, answer = http("GET", f"/faults/{once['id']}/wait?hits=2&timeout=600")
    assert (status, answer["error"]) == (409, "hits must be 1 (the fault's times) or less, not 2: raise times")


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "message"),
    [
        (
            "POST",
            "/faults",
            {"action": "fial"},
            400,
            "body.action must be one of fail, delay, throttle, drop, observe, not 'fial'",
        ),
        ("POST", "/faults", {"action": "fail"}, 400, "body lacks error"),
        (
            "POST",
            "/faults",
            {"action": "fail", "error": "ZZZ"},
            400,
            " in all: GET /openapi.json)",
        ),
        ("POST", "/faults", {"action": "drop", "topik": "x"}, 400, "body cannot have 'topik'; did you mean topic?"),
        (
            "POST",
            "/faults",
            {"action": "drop", "topic": "order"},
            409,
            "there is no topic 'order'; did you mean orders?",
        ),
        ("POST", "/faults", {"action": "drop", "api": "Produce", "group": "g"}, 409, "Produce names no groups"),
        ("POST", "/faults", {"action": "drop", "times": 0}, 400, "body.times must be from 1 to 2147483647, not 0"),
        ("POST", "/faults", None, 400, "POST /faults needs a body, a JSON object with action"),
        ("POST", "/topics", None, 400, "POST /topics needs a body, a JSON object with name"),
        ("POST", "/topics", {"nme": "a"}, 400, "body cannot have 'nme'; did you mean name?"),
        ("GET", "/faults/7", None, 404, "there is no fault 7; there are none"),
        ("GET", "/waiting?count=1", None, 409, "query.count needs query.kind"),
        ("GET", "/waiting?kind=Produced", None, 409, "there is no kind 'Produced' of requests; did you mean Produce?"),
        ("POST", "/brokers/9/stop", None, 404, "there is no broker 9: there are [1, 2, 3]"),
        ("POST", "/brokers/x/stop", None, 400, "path.broker must be integer, not 'x'"),
        ("POST", "/brokers/1/start", None, 409, "broker 1 is running: stop it first"),
        ("GET", "/topics/nope", None, 404, "there is no topic 'nope'"),
        ("POST", "/topics", {"name": "orders"}, 409, "cannot create topic 'orders'"),
        ("POST", "/topics", {"name": "<script>alert(1)</script>"}, 409, "Topic name is invalid"),
        ("POST", "/topics", {"name": "a", "config": {"retention": 1}}, 409, "retention"),
        ("POST", "/topics/orders/records", {"records": [{"value": "?", "encoding": "base64"}]}, 400, "not base64"),
        ("POST", "/topics/orders/records", {"partition": 7, "records": [{"value": "a"}]}, 409, "partitions 0 to 1"),
        ("POST", "/groups/nope/expire", {"member": "m"}, 404, "there is no group 'nope'"),
        ("POST", "/transactions/nope/fence", None, 404, "there is no transactional id 'nope'"),
        ("POST", "/clock/advance", {"seconds": -1}, 400, "body.seconds must be from 0 to 86400, not -1"),
        ("POST", "/clock/next", {}, 400, "POST /clock/next takes no body"),
        ("PUT", "/clock", None, 405, "PUT is not possible here"),
    ],
)
def test_bad_input(http: Client, method: str, path: str, body: Any, status: int, message: str) -> None:
    found, answer = http(method, path, body)
    assert (found, message in answer["error"]) == (status, True), answer


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"name": "a", "name": "b"}', "an object in the body has 'name' twice: leave one out"),
        (b"[" * 900 + b"]" * 900, "(the body is nested too deeply|body must be object)"),  # as Python's limit is
    ],
)
def test_a_body_that_is_ambiguous_or_bottomless(http: Client, body: bytes, message: str) -> None:
    request = urllib.request.Request(f"{http.url}/topics", body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as raised:
        urllib.request.urlopen(request, timeout=30)
    with raised.value as error:
        assert error.code == 400
        assert re.match(message, json.loads(error.read())["error"])


def test_a_held_clock_goes_on_and_is_held_again(kafka: Cluster, http: Client) -> None:
    before = http.done("GET", "/clock")
    assert (before["held"], before["runs"], before["now"]) == (True, False, 0.0)
    http.done("POST", "/clock/run")
    assert http.done("POST", "/clock/run")["runs"] is True
    wait_until(lambda: http.done("GET", "/clock")["now"] > 0)
    after = http.done("POST", "/clock/hold")
    assert (after["runs"], http.done("GET", "/clock")["now"]) == (False, after["now"])


def test_a_clock_that_is_not_held() -> None:
    with Cluster() as real, control.serve(real) as server:
        status, answer = Client(server.url)("POST", "/clock/advance", {"seconds": 1})
    wanted = 'only a held clock can be advanced: create the Cluster with clock="held" (abeyant broker --clock held)'
    assert (status, answer["error"]) == (409, wanted)


def test_who_may(kafka: Cluster) -> None:
    with pytest.raises(AbeyantError, match=r"0\.0\.0\.0 is not loopback"):
        control.serve(kafka, host="0.0.0.0")
    with control.serve(kafka, token="a-long-token") as server:
        http = Client(server.url)
        assert http("POST", "/brokers/1/pause")[0] == 401
        assert http("POST", "/brokers/1/pause", Authorization="Bearer a-long-token")[0] == 200
        foreign = http("POST", "/brokers/1/resume", Authorization="Bearer a-long-token", Origin="http://evil.example")
        assert foreign[0] == 403


def test_get_changes_nothing() -> None:
    from abeyant.broker.control.serving import OPERATIONS

    assert not any(word in one.id for one in OPERATIONS if one.method == "GET" for word in ("order", "end", "create"))
    assert {one.method for one in OPERATIONS} == {"GET", "POST", "DELETE"}
    assert len({one.id for one in OPERATIONS}) == len(OPERATIONS)


def test_its_metrics(kafka: Cluster, http: Client) -> None:
    pytest.importorskip("prometheus_client")
    with urllib.request.urlopen(f"{http.url}/metrics") as answer:
        assert 'abeyant_broker_up{broker="3"} 1.0' in answer.read().decode()


def test_the_page_names_every_operation_and_a_valid_body_of_each_that_takes_one() -> None:
    page = (Path(__file__).parents[3] / "docs" / "control.md").read_text().partition("## All operations")[2]
    rows = [line.split("|")[1:3] for line in page.splitlines() if line.startswith("| `")]
    named = {name: cell for cell, names in rows for name in re.findall(r"`(\w+)`", names)}
    assert set(named) == {one.id for one in OPERATIONS}
    for one in OPERATIONS:
        assert one.method in named[one.id]
        assert one.path in named[one.id] or one.path.rpartition("/")[2] in named[one.id], one
    (example,) = re.findall(r"^```json\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    bodies = json.loads(example)
    schemas = {one.id: one.body for one in OPERATIONS if one.body is not None}
    assert set(bodies) == set(schemas)
    for name, body in bodies.items():
        check(schemas[name], body, name)
