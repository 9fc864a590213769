"""What `Cluster` and its clock can do, control over HTTP can do as well, or the exception is named here."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from abeyant.broker import Cluster, control
from abeyant.broker.api.target import Where
from abeyant.broker.control.openapi import parameters_of
from abeyant.broker.control.operation import Operation
from abeyant.broker.control.serving import OPERATIONS
from broker.conformance.scenarios.telemetry import pushing
from broker.shares.member import ShareMember, join
from broker.test_telemetry import GET, PUSH, connect
from waiting import wait_until

from .test_control import Client

OPERATION: Mapping[str, Operation] = {one.id: one for one in OPERATIONS}

COUNTERPARTS = {
    "bootstrap": "readCluster", "brokers": "readCluster", "ca_file": "readCluster", "clock": "readClock",
    "commit": "commitOffsets", "compact": "compactTopic", "create_topic": "createTopic", "delay": "orderFault",
    "delete_topic": "deleteTopic", "drop": "orderFault", "drop_connections": "dropConnections",
    "expire_lock": "expireLocks", "expire_member": "expireMember", "fail": "orderFault", "faults": "listFaults",
    "fence": "fenceProducer", "group": "readGroup", "groups": "listGroups", "in_sync": "readTopic",
    "is_stopped": "readBroker", "leader": "readTopic", "observe": "orderFault", "pause": "pauseBroker",
    "pushed_metrics": "listPushedMetrics", "records": "readRecords", "resume": "resumeBroker", "seed": "seedRecords",
    "set_quotas": "setQuotas", "start": "startBroker", "stop": "stopBroker", "throttle": "orderFault",
    "topics": "listTopics", "transactions": "listTransactions", "until_waiting": "listWaiting",
    "waiting": "listWaiting",
}  # fmt: skip
EXCEPTIONS = {
    "open": "the server serves a cluster that is open",
    "close": "the server is closed before the cluster, so it cannot close it",
    "paused": "a with statement: pauseBroker and resumeBroker",
    "stopped": "a with statement: stopBroker and startBroker",
    "readings": "GET /metrics",
    "controller": "the inside",
    "directory": "the inside",
    "host": "part of bootstrap",
    "network": "the inside",
    "security": "the inside; what clients need is ca_file",
    "settings": "DescribeConfigs: each language has an admin client for it",
}
CLOCK = {
    "advance": "advanceClock", "advance_to_next": "advanceClockToNext", "held": "readClock", "hold": "holdClock",
    "now": "readClock", "now_ms": "readClock", "run": "runClock", "runs": "readClock",
}  # fmt: skip
CLOCK_EXCEPTIONS = {"close": "with the cluster", "interrupt": "for closing", "timer": "the inside"}
OTHERS = {"readFault", "endFault", "endFaults", "awaitFault"}  # methods of Fault
ARGUMENTS = {  # named otherwise in the path
    ("fence", "transactional_id"): "transaction", ("delete_topic", "name"): "topic",
    ("leader", "partition"): None, ("in_sync", "partition"): None,  # the response has all partitions
}  # fmt: skip


def public(thing: object) -> set[str]:
    return {name for name in dir(thing) if not name.startswith("_")}


def test_every_public_name_of_a_cluster_has_an_operation_or_a_reason_why_not() -> None:
    with Cluster(clock="held") as kafka:
        assert public(kafka) == COUNTERPARTS.keys() | EXCEPTIONS.keys()
        assert public(kafka.clock) == CLOCK.keys() | CLOCK_EXCEPTIONS.keys()
    assert COUNTERPARTS.keys().isdisjoint(EXCEPTIONS)
    assert set(OPERATION) == {*COUNTERPARTS.values(), *CLOCK.values(), *OTHERS}


def test_every_argument_of_a_method_can_be_sent() -> None:
    compared = 0
    for name, operation in COUNTERPARTS.items():
        method = getattr(Cluster, name, None)
        if not inspect.isfunction(method):
            continue
        taken = sent(OPERATION[operation], name)
        for argument, parameter in list(inspect.signature(method).parameters.items())[1:]:
            wanted = Where.__annotations__ if parameter.kind is parameter.VAR_KEYWORD else [argument]
            for one in wanted:
                place = ARGUMENTS.get((name, one), one)
                assert place is None or place in taken, f"{operation} lacks {one} of Cluster.{name}"
                compared += 1
    assert compared > 60


def sent(operation: Operation, action: str) -> set[str]:
    """Return what a request of an operation may hold, in its path, its query or its body."""
    body: Any = operation.body or {}
    if "oneOf" in body:
        [body] = [one for one in body["oneOf"] if one["properties"]["action"]["const"] == action]
    return {*parameters_of(operation.path), *operation.query, *body.get("properties", ())}


def test_a_lock_is_expired_and_pushed_metrics_are_listed() -> None:
    with Cluster() as kafka, control.serve(kafka) as server:
        http = Client(server.url)
        kafka.create_topic("orders")
        join(kafka, "shared", "orders")
        member = ShareMember(kafka, "shared", "orders")
        member.get()  # a share group begins at the end
        kafka.seed("orders", [b"one", b"two"])
        wait_until(lambda: member.get() and kafka.waiting("ShareLock"))
        assert http.done("GET", "/groups/shared")["protocol"] == "share"
        assert http.done("POST", "/groups/shared/locks/expire", {"topic": "orders", "partition": 0}) == {"expired": 1}
        assert http("POST", "/groups/shared/locks/expire", {"topic": "orders"})[0] == 409
        member.close()
        with connect(kafka, "raw") as client:
            said = client.ask(GET, 0, {"client_instance_id": "00000000-0000-0000-0000-000000000000"})
            assert client.ask(PUSH, 0, pushing(said))["error_code"] == "NONE"
        [row] = http.done("GET", "/pushed-metrics")["clients"]
        assert row == {
            "broker": 1, "client_instance_id": row["client_instance_id"], "client_id": "raw", "pushes": 1,
            "software": {"name": "unknown", "version": "unknown"}, "size": row["size"], "terminated": False,
            "metrics": ["org.apache.kafka.producer.node.request.latency.max"],
        }  # fmt: skip


def test_quotas_are_set_and_removed_and_bad_input_is_refused() -> None:
    with Cluster(clock="held") as kafka, control.serve(kafka) as server:
        http = Client(server.url)
        http.done("POST", "/quotas", {"quotas": {"producer_byte_rate": 1000}, "client_id": "till"})
        http.done("POST", "/quotas", {"quotas": {"request_percentage": 0.5}, "user": "ada", "client_id": "till"})
        limit = kafka.controller.quotas.limit
        assert (limit("producer_byte_rate", "", "till") or (0,))[0] == 1000
        assert (limit("request_percentage", "ada", "till") or (0,))[0] == 0.5
        http.done("POST", "/quotas", {"quotas": {"producer_byte_rate": None}, "client_id": "till"})
        assert limit("producer_byte_rate", "", "till") is None
        for body, status, message in (
            ({"quotas": {"producer_rate": 1}}, 400, "did you mean producer_byte_rate?"),
            ({"quotas": {"producer_byte_rate": "1"}}, 400, "must be number or null, not '1'"),
            ({"quotas": {"producer_byte_rate": -1}}, 409, "Quota producer_byte_rate must be greater than 0"),
            ({"quotas": {"producer_byte_rate": 10**400}}, 409, "must be a number, or None to remove it"),
            ({"quotas": {"producer_byte_rate": 1}, "user": "\ud800"}, 409, "has half a surrogate pair"),
            ({"client_id": "till"}, 400, "body lacks quotas"),
        ):
            found, answer = http("POST", "/quotas", body)
            assert (found, message in answer["error"]) == (status, True), answer
        kafka.create_topic("orders")
        kafka.commit("billing", {("orders", 0): 0})
        found, answer = http("POST", "/groups/billing/locks/expire", {"topic": "orders", "member": "m"})
        assert (found, answer["error"]) == (
            409, "group 'billing', member 'm' has no lock on 'orders': cluster.waiting('ShareLock') lists all locks",
        )  # fmt: skip
        assert http("POST", "/groups/nope/locks/expire", {"topic": "orders"})[0] == 404
        assert http.done("GET", "/pushed-metrics") == {"clients": []}
        assert http.done("GET", "/cluster")["ca_file"] is None
        assert http("GET", "/waiting?client=x")[1]["error"].endswith("did you mean client_id?")
