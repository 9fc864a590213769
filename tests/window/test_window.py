"""The window on real timers, purgatories, loops and brokers: what it shows, by its own routes."""

from __future__ import annotations

import asyncio
import importlib
import json
import pkgutil
import threading
import time
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

import abeyant
from abeyant import aio, broker, window
from abeyant.broker import requests
from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.errors import AbeyantError
from abeyant.timer.survey import WheelShape, shape_of
from abeyant.window.cluster import _UNTIL
from web.http import call, connect, head


def state(view: window.Window, query: str = "") -> Any:
    got = call(view.port, "GET", f"/state{query}")
    assert got.status == 200, got.body
    return got.json


class AckAll(abeyant.DelayedOperation):
    def try_complete(self) -> bool:
        return False


def test_a_timer_by_bucket_and_its_next_tasks() -> None:
    timer = abeyant.ManualTimer(tick=1.0, wheel_size=8)
    for delay in (3, 3, 70, 600):
        timer.call_later(delay, print)
    with window.serve(timer) as view:
        [seen] = state(view)["timers"]
        assert (seen["pending"], seen["tick"], seen["size"]) == (4, 1.0, 8)
        assert seen["buckets"] == [[0, 3, 2], [2, 1, 1], [3, 1, 1]]  # 70 = 1 * 64 + 6, 600 = 1 * 512 + 88
        assert [(task["at"], task["what"]) for task in seen["next"]] == [
            (3, "print"), (3, "print"), (70, "print"), (600, "print"),
        ]  # fmt: skip
        timer.advance(66)
        time.sleep(0.21)  # for so long one look serves several pages
        [seen] = state(view)["timers"]
        assert (seen["pending"], seen["expired"], seen["cascaded"], seen["hands"][0]) == (2, 2, 1, 2)
        assert [0, 6, 1] in seen["buckets"]


def test_more_tasks_than_are_read_are_sampled() -> None:
    timer = abeyant.ManualTimer(tick=1.0, wheel_size=64)
    for number in range(150_000):
        timer.call_later(1 + number % 40, print)
    with window.serve(timer) as view:
        [seen] = state(view)["timers"]
        assert (seen["pending"], seen["sampled"]) == (150_000, True)
        counts = {index: tasks for level, index, tasks in seen["buckets"] if level == 0}
        assert sorted(counts) == list(range(1, 41))
        assert all(abs(tasks - 3750) < 800 for tasks in counts.values()), counts


def test_who_waits_for_what_since_when_and_until_when() -> None:
    timer = abeyant.ManualTimer()
    purgatory = abeyant.Purgatory[AckAll]("produce", timer)
    early, late = AckAll(5), AckAll(30)
    purgatory.try_complete_else_watch(late, ["orders-0", ("audit", 1), 7])
    timer.advance(2)
    purgatory.try_complete_else_watch(early, ["orders-1"])
    with window.serve(purgatory) as view:
        seen = state(view)
        assert [one["name"] for one in seen["timers"]] == ["produce's timer"]
        assert (seen["purgatories"][0]["name"], seen["purgatories"][0]["watched"]) == ("produce", 4)
        first, second = seen["waits"]["rows"]
        assert (first["kind"], first["keys"], first["left"], first["waited"], first["timeout"]) == (
            "AckAll", ["orders-1"], 5, 0, 5,
        )  # fmt: skip
        assert (second["keys"], second["left"], second["waited"]) == (["orders-0", "audit, 1", "7"], 28, 2)
        assert second["until"] == "AckAll.try_complete() at check_and_complete(orders-0)"
        assert [row["keys"] for row in state(view, "?q=AUDIT")["waits"]["rows"]] == [second["keys"]]
        assert state(view, "?q=nowhere")["waits"] == {
            "total": 2, "matched": 0, "partial": False, "clients": [], "rows": []
        }  # fmt: skip
        early.force_complete()
        assert state(view)["waits"]["total"] == 1


def test_search_among_ten_thousand() -> None:
    timer = abeyant.ManualTimer()
    purgatory = abeyant.Purgatory[AckAll]("requests", timer)
    for number in range(10_000):
        purgatory.try_complete_else_watch(AckAll(10_000 - number), [f"client-{number}"])
    with window.serve(purgatory) as view:
        waits = state(view)["waits"]
        assert (waits["total"], len(waits["rows"])) == (10_000, 100)
        assert [row["left"] for row in waits["rows"]] == list(range(1, 101))
        assert [row["keys"] for row in state(view, "?q=client-777&in=requests")["waits"]["rows"]] == [
            [f"client-{number}"] for number in (*range(7779, 7769, -1), 777)
        ]


def test_the_operations_of_a_client() -> None:
    class Asked(AckAll):
        def __init__(self, timeout: float, client_id: str) -> None:
            super().__init__(timeout)
            self.client_id = client_id

    purgatory = abeyant.Purgatory[AckAll]("requests", abeyant.ManualTimer())
    for number, client in enumerate(["checkout", "billing-1", "billing-1", "billing-10", "x" * 30_000]):
        purgatory.try_complete_else_watch(Asked(1 + number, client), ["orders-0"])
    purgatory.try_complete_else_watch(AckAll(9), ["orders-0"])
    with window.serve(purgatory) as view:
        waits = state(view, "?client=billing-1")["waits"]
        assert [(row["client"], row["left"]) for row in waits["rows"]] == [("billing-1", 2), ("billing-1", 3)]
        assert (waits["total"], waits["matched"]) == (6, 2)
        assert waits["clients"][0] == {"name": "billing-1", "waiting": 2}, "those that wait for most come first"
        assert [len(one["name"]) for one in waits["clients"]] == [9, 8, 10, 300]
        assert state(view, "?client=billing-1&q=checkout")["waits"]["matched"] == 0
        assert state(view, f"?client={'x' * 300}")["waits"]["matched"] == 1


def test_names_are_data_and_never_markup() -> None:
    purgatory = abeyant.Purgatory[AckAll]("<script>alert(1)</script>", abeyant.ManualTimer())
    purgatory.try_complete_else_watch(AckAll(5), ["</script><img src=x onerror=alert(1)>"])
    with window.serve(purgatory) as view:
        page = call(view.port, "GET", "/")
        assert b"alert(1)" not in page.body
        policy = page.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'sha256-")
        assert "unsafe-eval" not in policy
        assert "script-src 'unsafe-inline'" not in policy
        assert page.body.count(b"<script") == 1
        assert b"http" not in page.body.split(b"<script>")[0].replace(b"http-equiv", b"")  # nothing from elsewhere


def test_the_loop_is_seen_while_it_is_blocked() -> None:
    """W3: the window lives while the loop is blocked, and says where."""
    seen: list[Any] = []

    async def program() -> None:
        view = window.serve(aio.Timer())
        unblock = threading.Event()

        def look() -> None:
            state(view)
            ends = time.monotonic() + 20
            while time.monotonic() < ends:
                loops = state(view)["loops"]
                if loops[0]["blocked"]:
                    seen.append(loops)
                    break
                time.sleep(0.05)
            unblock.set()

        thread = threading.Thread(target=look)
        thread.start()
        block_here(unblock)
        thread.join()
        await asyncio.sleep(0)
        view.close()

    asyncio.run(program())
    [[loop]] = seen
    assert loop["blocked"] >= 0.1
    assert any("block_here" in line for line in loop["stack"])


def block_here(until: threading.Event) -> None:
    until.wait(30)


@pytest.fixture
def kafka() -> Iterator[broker.Cluster]:
    with broker.Cluster(brokers=3, clock="held") as cluster:
        cluster.create_topic("orders", replicas=3)
        yield cluster


def test_a_cluster_is_shown_and_steered_by_the_operations_of_control(kafka: broker.Cluster) -> None:
    def post(path: str, **body: object) -> Any:
        return call(view.port, "POST", f"/{path}", json.dumps(body).encode() if body else b"").json

    with window.serve(kafka) as view:
        seen = state(view)["cluster"]
        assert [(one["id"], one["state"]) for one in seen["brokers"]] == [(n, "running") for n in (1, 2, 3)]
        [partition] = seen["partitions"]["rows"]
        assert (partition["topic"], partition["leader"], partition["high_watermark"]) == ("orders", 1, 0)
        assert post("brokers/2/pause")["state"] == "paused"
        assert state(view)["cluster"]["brokers"][1]["state"] == "paused"
        post("brokers/2/resume")
        fault = post("faults", action="delay", api="Produce", seconds=2, topic="orders", client_id="till-1", times=3)
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap, "client.id": "till-2"})
        producer.produce("orders", b"x")
        assert producer.flush(30) == 0
        [shown] = state(view)["cluster"]["faults"]
        assert (shown["id"], shown["hits"]) == (fault["id"], 0)
        assert shown["what"] == "delayed by 2 s: Produce topic='orders' client_id='till-1', 0 of 3 times"
        assert shown["misses"] == ["1 Produce had client_id 'till-2' instead of 'till-1'"]
        assert call(view.port, "DELETE", f"/faults/{fault['id']}").json["active"] is False
        assert state(view)["cluster"]["faults"] == []
        assert not state(view)["cluster"]["clock"]["runs"]
        assert post("clock/run")["runs"]
        assert state(view)["cluster"]["clock"]["runs"]


def test_groups_lag_and_transactions(kafka: broker.Cluster) -> None:
    servers = {"bootstrap.servers": kafka.bootstrap}
    producer = confluent_kafka.Producer({**servers, "transactional.id": "payments"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"one")
    producer.flush(30)
    consumer = confluent_kafka.Consumer({**servers, "group.id": "billing", "client.id": "billing-1"})
    consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 0)], asynchronous=False)
    try:
        with window.serve(kafka) as view:
            seen = state(view)["cluster"]
            [transaction] = seen["transactions"]["rows"]
            assert (transaction["id"], transaction["state"], transaction["left"]) == ("payments", "Ongoing", 60)
            assert transaction["partitions"] == ["orders-0"]
            [group] = seen["groups"]["rows"]
            assert (group["id"], group["lag"]) == ("billing", 1)
            assert group["lags"] == [{"topic": "orders", "partition": 0, "committed": 0, "lag": 1}]
            assert state(view, "?find=nothing")["cluster"]["groups"]["rows"] == []
    finally:
        consumer.close()


def test_a_group_whose_coordinator_is_paused_is_shown_once(kafka: broker.Cluster) -> None:
    """The paused broker still has the group and does not know that another coordinates it now."""
    kafka.commit("billing", {("orders", 0): 0})
    first = kafka.group("billing").coordinator
    kafka.pause(first)
    with window.serve(kafka) as view:
        for _ in range(60):
            if kafka.group("billing").coordinator != first:
                break
            kafka.clock.advance(1)
        assert kafka.group("billing").coordinator != first
        assert kafka.groups() == ["billing"]
        groups = state(view)["cluster"]["groups"]
        brokers = state(view)["cluster"]["brokers"]
        assert sum(one["leads"] for one in brokers) == 51, "one leader for each partition, __consumer_offsets included"
        assert brokers[first - 1]["leads"] == 0
        assert (groups["total"], [one["id"] for one in groups["rows"]]) == (1, ["billing"])
        waits = state(view, f"?in=broker {first} Fetch".replace(" ", "%20"))["waits"]["rows"]
        assert waits
        assert all(row["until"].startswith(f"broker {first} to resume; new records on ") for row in waits)


def test_what_completes_an_operation_is_said_of_every_class() -> None:
    """Classes are told apart by name."""

    def leaves(of: type[BrokerOperation]) -> Iterator[str]:
        for each in of.__subclasses__():
            yield from leaves(each) if each.__subclasses__() else (each.__name__,)

    for module in pkgutil.walk_packages(requests.__path__, f"{requests.__name__}."):
        importlib.import_module(module.name)
    importlib.import_module("abeyant.broker.cluster")
    asked = {"DelayedProduce", "DelayedDeleteRecords", "DelayedFetch"}
    assert set(leaves(BrokerOperation)) == _UNTIL.keys() | asked


def test_what_a_window_cannot_show() -> None:
    with pytest.raises(AbeyantError, match="a window shows timers, purgatories, event loops and a broker cluster"):
        window.serve("a timer")
    with pytest.raises(AbeyantError, match="needs something to show"):
        window.serve()
    with pytest.raises(AbeyantError, match="the cluster is not open"):
        window.serve(broker.Cluster())


def test_nothing_is_read_while_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []

    def look(timer: abeyant.ManualTimer) -> WheelShape:
        looks.append(timer)
        return shape_of(timer)

    monkeypatch.setattr("abeyant.window.wheels.shape_of", look)
    timer = abeyant.ManualTimer()
    with window.serve(timer) as view:
        with connect(view.port) as client:
            client.sendall(head("GET", "/events", view.port))
            while len(looks) < 2:
                assert client.recv(65536)
        ends = time.monotonic() + 10
        while view._server._streams.left < 32 and time.monotonic() < ends:
            time.sleep(0.02)
        before = len(looks)
        time.sleep(0.6)
        assert len(looks) == before
