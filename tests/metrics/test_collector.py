"""What a scrape shows agrees with what the things have counted, in Prometheus' own text format."""

from __future__ import annotations

import asyncio
import gc
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from abeyant import DelayedOperation, IdleDetector, ManualTimer, Purgatory, SystemTimer
from abeyant.aio import EventLoop
from abeyant.aio import Purgatory as AioPurgatory
from abeyant.metrics import Collector
from waiting import wait_until


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry(auto_describe=True)


def scraped(registry: CollectorRegistry) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Each series of a scrape with its value, read back by Prometheus' parser. Fails for one that is there twice."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    families: list[str] = []
    for family in text_string_to_metric_families(generate_latest(registry).decode()):
        families.append(family.name)
        for sample in family.samples:
            series = sample.name, frozenset(sample.labels.items())
            assert series not in found
            found[series] = sample.value
    assert len(families) == len(set(families)), "a family must be listed once"
    list(parse_openmetrics(generate_openmetrics(registry).decode()))  # which is stricter
    return found


def value(registry: CollectorRegistry, name: str, **labels: str) -> float:
    return scraped(registry)[name, frozenset(labels.items())]


class Never(DelayedOperation):
    def try_complete(self) -> bool:
        return False


def test_an_event_loop(registry: CollectorRegistry) -> None:
    loop = EventLoop()
    Collector(main=loop, registry=registry)
    try:
        loop.call_later(1000, print).cancel()
        loop.call_later(1000, print)
        loop.run_until_complete(asyncio.sleep(0.01))
        found = {name: int(count) for (name, labels), count in scraped(registry).items() if ("loop", "main") in labels}
    finally:
        loop.close()
    assert found.pop("abeyant_loop_cascaded_total") >= 0
    assert found == {
        "abeyant_loop_pending": 1, "abeyant_loop_started_total": 3, "abeyant_loop_expired_total": 1,
        "abeyant_loop_cancelled_total": 1, "abeyant_loop_running": 0,
    }  # fmt: skip


def test_a_timer(registry: CollectorRegistry) -> None:
    timer = ManualTimer()
    Collector(rpc=timer, registry=registry)
    tasks = [timer.call_later(delay, lambda: None) for delay in (1, 2, 3, 1000)]
    timer.call_later(2, lambda: 1 / 0)
    tasks[2].cancel()
    timer.advance(5)
    for name, expected in {
        "pending": 1, "started_total": 5, "expired_total": 3, "cancelled_total": 1, "failed_total": 1, "up": 1,
    }.items():  # fmt: skip
        assert value(registry, f"abeyant_timer_{name}", timer="rpc") == expected, name
    assert value(registry, "abeyant_timer_cascaded_total", timer="rpc") == timer.stats().cascaded
    timer.close()
    assert value(registry, "abeyant_timer_up", timer="rpc") == 0
    assert value(registry, "abeyant_timer_pending", timer="rpc") == 0
    assert value(registry, "abeyant_timer_cancelled_total", timer="rpc") == 2


def test_a_purgatory_and_its_ends(registry: CollectorRegistry) -> None:
    timer = ManualTimer()
    purgatory = Purgatory[DelayedOperation]("produce", timer)
    Collector(purgatory, registry=registry)
    operations = [Never(timeout) for timeout in (1, 2, 30, 30)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a", "b"])
    timer.advance(2)
    purgatory.cancel(operations[2])
    for name, expected in {
        "watched": 2, "watched_keys": 2, "pending": 1, "completed_total": 0, "expired_total": 2, "cancelled_total": 1,
        "errors_total": 0,
    }.items():  # fmt: skip
        assert value(registry, f"abeyant_purgatory_{name}", purgatory="produce") == expected, name


def test_kafkas_names(registry: CollectorRegistry) -> None:
    timer = ManualTimer()
    produce = Purgatory[DelayedOperation]("Produce", timer)
    other = Purgatory[DelayedOperation]("orders", timer)
    Collector(produce, other, registry=registry, names="kafka")
    for purgatory in (produce, other):
        purgatory.try_complete_else_watch(Never(1), ["a", "b", "c"])
    name = "kafka_server_delayedoperationpurgatory_"
    assert value(registry, f"{name}purgatorysize", delayedoperation="Produce") == 3
    assert value(registry, f"{name}numdelayedoperations", delayedoperation="orders") == 1
    timer.advance(1)
    assert value(registry, "kafka_server_delayedproducemetrics_expires_total") == 1
    # Kafka has no such operation, so its expiries keep our name.
    assert value(registry, "abeyant_purgatory_expired_total", purgatory="orders") == 1
    text = generate_latest(registry).decode()
    assert "PurgatorySize of kafka.server:type=DelayedOperationPurgatory" in text


def test_an_idle_detector_and_a_purgatory_of_asyncio(registry: CollectorRegistry) -> None:
    timer = ManualTimer()
    idle = IdleDetector[str](10, lambda _: None, timer)
    waits = AioPurgatory("waits", timer)
    Collector(waits, registry=registry, connections=idle)

    async def wait() -> None:
        waiting = asyncio.create_task(waits.wait(["key"], timeout=5))
        await asyncio.sleep(0)
        assert value(registry, "abeyant_purgatory_pending", purgatory="waits") == 1
        waits.check("key")
        await waiting

    asyncio.run(wait())
    for peer in "abc":
        idle.seen(peer)
    idle.forget("a")
    timer.advance(5)
    idle.seen("b")
    timer.advance(5)
    for name, expected in {"watched": 1, "begun_total": 3, "expired_total": 1, "forgotten_total": 1}.items():
        assert value(registry, f"abeyant_idle_{name}", detector="connections") == expected, name
    assert value(registry, "abeyant_purgatory_completed_total", purgatory="waits") == 1


def test_two_collectors_in_one_registry(registry: CollectorRegistry) -> None:
    first, second = SystemTimer("rpc"), SystemTimer("rpc")
    with first, second:
        one = Collector(first, registry=registry)
        Collector(second, first, registry=registry)  # the first is listed once all the same
        second.call_later(100, lambda: None)
        assert value(registry, "abeyant_timer_pending", timer="rpc") == 0
        assert value(registry, "abeyant_timer_pending", timer="rpc-2") == 1
        one.close()
        one.close()
        assert value(registry, "abeyant_timer_pending", timer="rpc") == 0, "the other collector still has it"


def test_what_is_closed_or_dropped_ends(registry: CollectorRegistry) -> None:
    timer, dropped = ManualTimer(), ManualTimer()
    with Collector(timer, registry=registry):
        Collector(gone=dropped, registry=registry)
        assert {dict(labels)["timer"] for _, labels in scraped(registry)} == {"manual", "gone"}
    assert {dict(labels)["timer"] for _, labels in scraped(registry)} == {"gone"}
    del dropped
    gc.collect()
    assert scraped(registry) == {}
    Collector(timer, registry=registry)
    assert value(registry, "abeyant_timer_pending", timer="manual") == 0


def test_histograms_where_they_are_measured(registry: CollectorRegistry) -> None:
    with SystemTimer("rpc") as timer:
        Collector(timer, registry=registry)
        assert not any("seconds" in name for name, _ in scraped(registry))
        timer.measure(every=1)
        for _ in range(5):
            timer.call_later(0, lambda: None)
        wait_until(lambda: value(registry, "abeyant_timer_callback_seconds_count", timer="rpc") == 5)
        assert value(registry, "abeyant_timer_lateness_seconds_bucket", timer="rpc", le="+Inf") == 5
        assert value(registry, "abeyant_timer_lateness_seconds_sum", timer="rpc") > 0
        buckets = [found for (name, _), found in scraped(registry).items() if name.endswith("callback_seconds_bucket")]
        assert sorted(buckets) == buckets, "they are cumulative"


@pytest.mark.parametrize(
    "name", ['a"} 1\nevil{x="', "back\\slash", "<script>alert(1)</script>", "\udcff", "\x00", "😀"]
)
def test_hostile_names_are_values_and_no_more(registry: CollectorRegistry, name: str) -> None:
    purgatory = Purgatory[DelayedOperation](name, ManualTimer())
    Collector(purgatory, registry=registry)
    shown = name.encode("utf-8", "backslashreplace").decode()
    assert value(registry, "abeyant_purgatory_pending", purgatory=shown) == 0
    assert {name for name, _ in scraped(registry)} == {
        f"abeyant_purgatory_{one}"
        for one in (
            "watched", "watched_keys", "pending", "completed_total", "expired_total", "cancelled_total", "errors_total",
        )
    }  # fmt: skip


def test_scraped_over_http_while_the_timer_runs(registry: CollectorRegistry) -> None:
    with SystemTimer("busy") as timer:
        Collector(timer, registry=registry)
        server, thread = start_http_server(0, "127.0.0.1", registry)
        done = threading.Event()
        errors: list[BaseException] = []

        def work() -> None:
            try:
                while not done.is_set():
                    for task in [timer.call_later(0.001, lambda: None) for _ in range(50)][::2]:
                        task.cancel()
            except BaseException as error:  # noqa: BLE001  raised below
                errors.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        try:
            last: dict[str, float] = {}
            for _ in range(20):
                with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
                    text = answer.read().decode()
                now = {s.name: s.value for f in text_string_to_metric_families(text) for s in f.samples}
                ended = now["abeyant_timer_expired_total"] + now["abeyant_timer_cancelled_total"]
                assert now["abeyant_timer_started_total"] == ended + now["abeyant_timer_pending"], "one moment's counts"
                assert all(now[one] >= last.get(one, 0) for one in now if one.endswith("_total"))
                last = now
        finally:
            done.set()
            worker.join()
            server.shutdown()
            server.server_close()
            thread.join()
        assert not errors


@pytest.mark.parametrize(
    ("things", "options", "message"),
    [
        ((), {}, "nothing to collect"),
        ((1,), {}, "no metrics can be collected from 1"),
        ((asyncio.new_event_loop,), {}, "no metrics can be collected from <function"),
        ((SystemTimer,), {}, "no metrics can be collected from <class"),
        ((ManualTimer(),), {"names": "jmx"}, 'names must be "abeyant" or "kafka", not \'jmx\''),
        ((ManualTimer(),), {"registry": "mine"}, "registry must be a prometheus_client.CollectorRegistry, not 'mine'"),
    ],
)
def test_bad_input(things: tuple[Any, ...], options: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message.replace("(", r"\(")):
        Collector(*things, **options)


@pytest.fixture(autouse=True)
def _nothing_stays() -> Iterator[None]:
    yield
    gc.collect()
