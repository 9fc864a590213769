"""What was renamed goes on working by its former name, and the present one is shown."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import pytest

from abeyant import IdleDetector, ManualTimer, Purgatory, Resolver, Watch
from abeyant.renamed import former_keywords

RENAMED = {
    "abeyant.aio": {"Outcome": "WaitOutcome", "Waiting": "WaitingTask"},
    "abeyant.broker": {"Seed": "NewRecord", "Written": "Record"},
    "abeyant.broker.simulation": {
        "Fault": "PlannedFault", "Outcome": "RunResult", "run_id": "rerun", "search": "find_failure",
    },
    "abeyant.pipeline": {
        "TableSink": "SQLiteSink", "aside_of": "rejected_rows_of", "invalid_events": "rejected_events",
        "invalid_operations": "rejected_operations",
    },
    "abeyant.tables": {"invalid_events": "rejected_events", "invalid_operations": "rejected_operations"},
}  # fmt: skip


@pytest.mark.parametrize(
    ("module", "former", "present"), [(module, *pair) for module, pairs in RENAMED.items() for pair in pairs.items()]
)
def test_a_former_name_is_the_present_one(module: str, former: str, present: str) -> None:
    found: Any = import_module(module)
    assert {former, present} <= set(found.__all__)
    assert getattr(found, former) is getattr(found, present)


def test_a_former_keyword_is_the_present_one() -> None:
    @former_keywords(count="times")
    def repeat(text: str, *, times: int = 1) -> str:
        """Return the text so many times."""
        return text * times

    former: Any = repeat
    assert [repeat("a", times=2), former("a", count=3), repeat("a")] == ["aa", "aaa", "a"]
    assert str(inspect.signature(repeat)) == "(text: 'str', *, times: 'int' = 1) -> 'str'"
    with pytest.raises(TypeError, match=r"repeat\(\) got both times= and its former name count=: pass only one"):
        former("a", count=3, times=2)
    with pytest.raises(TypeError, match="number"):
        former("a", number=3)


def test_keywords_of_resolver_and_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver: Any = Resolver
    timer = ManualTimer()
    with resolver(timer, remember=5.0) as former, Resolver(timer, forget_after=5.0) as present:
        for one in (former, present):
            one.event("key")
            assert one.stats().keys == 1
        timer.advance(6.0)
        assert [former.stats().keys, present.stats().keys] == [0, 0]
    from abeyant.pipeline import DeltaSink, timeout_curve

    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)  # it need not know of Delta
    sink: Any = DeltaSink
    assert sink("outcomes", aside="others").rejected == sink("outcomes", rejected="others").aside == "others"
    assert "points" in inspect.signature(timeout_curve).parameters


def test_counts_have_their_former_names() -> None:
    timer = ManualTimer()
    idle = IdleDetector(5.0, lambda peer: None, timer)
    idle.seen("peer")
    timer.advance(6.0)
    stats = idle.stats()
    assert (stats.begun, stats.idle) == (stats.started, stats.expired) == (1, 1)
    of_purgatory = Purgatory("waits", timer).stats()
    assert of_purgatory.pending == of_purgatory.delayed == 0


def test_keywords_of_the_cluster() -> None:
    from abeyant.broker import Cluster

    with Cluster() as kafka:
        kafka.create_topic("orders")
        kafka.seed("orders", [b"one"])
        former: Any = kafka
        assert former.records("orders", uncommitted=True) == kafka.records("orders", beyond_high_watermark=True)
        assert former.waiting(client="shop") == kafka.waiting(client_id="shop") == []
        with former.drop("Produce", answer=True) as one, kafka.drop("Produce", response=True) as other:
            assert repr(one) == repr(other)
        with pytest.raises(TypeError, match="got both client_id= and its former name client="):
            former.waiting(client="shop", client_id="shop")


def test_a_resolver_without_a_timer_has_one_of_its_own() -> None:
    with Resolver() as resolver:
        assert not resolver.start("order-1", [Watch("paid/1"), Watch("withdrawn/1", role="cancel")], timeout=900)
        assert not resolver.start("order-2", [Watch("paid/2")], timeout=0.001)
        assert resolver.pending()[0] == "order-1"
        assert resolver.event("paid/1") == 1
        timer = resolver._timer
    assert timer.closed
    stats = resolver.stats()
    assert (stats.pending, stats.started, stats.completed, stats.cancelled) == (0, 2, 1, 0)
