"""Each experiment, at its smallest: every design gives every measure, and what must hold at any size holds."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from lab import purgatories, rivals
from lab.experiment import Measure, Parameters
from lab.experiments import EXPERIMENTS, cost, enqueue, geometry, idle, precision, purge
from lab.experiments.workload import LOADS, arrivals, latencies, timed_out_share
from lab.jvm import why_no_jvm
from lab.run import Run


def named(measures: list[Measure]) -> Mapping[str, float]:
    assert len({measure.metric for measure in measures}) == len(measures), "a metric has one value"
    return {measure.metric: measure.value for measure in measures}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_is_less_and_no_cell_stands_twice(name: str) -> None:
    full, quick = (EXPERIMENTS[name].cells(quick) for quick in (False, True))
    assert 0 < len(quick) < len(full)
    assert len(set(full)) == len(full)
    assert all(cell.choices() for cell in full)


def test_the_workload_is_the_published_one() -> None:
    numpy = pytest.importorskip("numpy")
    random = numpy.random.default_rng(1)
    for load in LOADS.values():
        drawn = latencies(200_000, load, random) / 1e6
        assert numpy.percentile(drawn, 50) == pytest.approx(load.p50, rel=0.02)
        assert numpy.percentile(drawn, 75) == pytest.approx(load.p75, rel=0.02)
        assert (drawn >= 200).mean() == pytest.approx(timed_out_share(load), abs=0.005)
    at = arrivals(200_000, 10_000, random)
    assert at[-1] / 1e9 == pytest.approx(20, rel=0.02)
    gaps = numpy.diff(at)
    assert gaps.min() >= 0
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.02), "exponential: as wide as it is long"


@pytest.mark.parametrize("design", purgatories.DESIGNS)
def test_enqueue_ends_every_request_once(design: str) -> None:
    told = named(
        enqueue.measure(
            design,
            {"load": "high", "rate": 4_000, "requests": 1_200, "seconds": 20, "size": 100, "purge_interval": 100},
        )
    )
    assert told["submitted"] == 1_200
    assert told["not ended"] == 0
    assert told["early"] == 0, "T1"
    assert 0.3 < told["timed out, expected"] < 0.7
    assert told["achieved rate"] <= 4_500
    assert told["watched, most"] > 0


@pytest.mark.slow
@pytest.mark.skipif(why_no_jvm() is not None, reason=f"no genuine Kafka here: {why_no_jvm()}")
def test_the_genuine_kafka_tells_the_same_measures() -> None:
    parameters: Parameters = {
        "load": "high", "rate": 4_000, "requests": 1_200, "seconds": 20, "size": 100, "memory_mb": 512,
        "purge_interval": 100,
    }  # fmt: skip
    theirs = named(enqueue.measure("kafka-jvm", parameters))
    ours = named(enqueue.measure("ours", parameters))
    assert set(theirs) == set(ours) - {"timed out, of the distribution"}
    assert theirs["submitted"] == 1_200
    assert theirs["not ended"] == 0
    assert theirs["timed out"] == pytest.approx(theirs["timed out, expected"], abs=0.1)


@pytest.mark.parametrize("design", rivals.DESIGNS)
def test_cost_leaves_the_queue_as_it_was(design: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_BATCH", 100)
    monkeypatch.setattr(cost, "_ROUNDS", 2)
    told = named(cost.measure(design, {"pending": 300}))
    assert {"insert random", "delete random", "expire", "the call alone", "turn after stops"} <= set(told)
    assert min(told.values()) >= 0


@pytest.mark.parametrize("design", rivals.DESIGNS)
@pytest.mark.parametrize("delay", [1_000, 63_000, 777_000])
def test_precision_is_as_promised(design: str, delay: int) -> None:
    told = named(precision.measure(design, {"delay_us": delay}))
    assert told["early"] == 0, "T1"
    assert told["mean lateness"] <= told["latest"] <= told["promised"]
    assert told["of the delay"] == told["latest"] / delay


def test_the_kernels_wheel_is_later_than_an_eighth_where_a_level_begins() -> None:
    told = named(precision.measure("kernel-wheel", {"delay_us": 63_000}))
    assert 0.125 < told["of the delay"] <= 8 / 63


@pytest.mark.parametrize(("ends", "labels"), [([8, 8.1], {"1, 10 keys"}), ([2, 8], {"1 keys", "10 keys"})])
def test_labels_of_lines_that_end_near_each_other_are_one(ends: list[float], labels: set[str]) -> None:
    pandas = pytest.importorskip("pandas")
    cells = pandas.DataFrame(
        [
            {
                "design": "kafka",
                "keys": keys,
                "purge_interval": at,
                "memory, most": end / at,
                "CPU an operation": end * at,
            }
            for keys, end in zip((1, 10), ends, strict=True)
            for at in (10, 1)
        ]
    )
    drawn = purge.figure(Run("purge", pandas.Timestamp("2026-01-02"), "", "", cells))
    assert {label["text"] for label in drawn.layout["annotations"] if label["text"].endswith("keys")} == labels


def test_purge_ours_keeps_only_what_waits() -> None:
    parameters = {"keys": 5, "purge_interval": 200, "operations": 1_000}
    told = {design: named(purge.measure(design, parameters)) for design in purgatories.DESIGNS}
    assert told["ours"]["watched, most"] == 30 * 5, "those of the 30 ms until their key fires"
    assert told["ours"]["purges"] == 0
    assert told["kafka"]["watched, most"] > 200 * 4
    assert told["kafka"]["in the timer, most"] == 30
    assert told["old"]["in the timer, most"] >= 200
    assert told["kafka"]["purges"] > 0
    assert told["kafka"]["memory, most"] > told["ours"]["memory, most"]


@pytest.mark.parametrize("trace", ["low", "high", "long polls", "all sorts"])
def test_geometry_cascades_no_more_often_than_there_are_wheels_above(
    trace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lab.experiments import traces

    monkeypatch.setattr(traces, "_COUNT", 2_000)
    for size in (2, 20, 256):
        told = named(geometry.measure("wheel", {"trace": trace, "tick_us": 1_000, "wheel_size": size}))
        assert 0 <= told["cascades"] <= told["levels"] - 1
        assert told["latest"] < 1_000
        assert told["tasks"] > 1_900


@pytest.mark.parametrize("way", idle.DETECTORS)
def test_every_way_finds_the_silent_and_only_those(way: str) -> None:
    watch = idle.DETECTORS[way]()
    for connection in range(100):
        watch.seen(connection, 0)
    found: dict[int, int] = {}
    for now in range(10, 82_000, 10):
        if now <= 50_000:
            watch.seen(7, now)
        if now == 12_340:
            watch.seen(8, now)
        for connection in watch.turn(now):
            assert connection not in found
            found[connection] = now
    assert len(found) == 100
    last = {7: 50_000, 8: 12_340}
    assert all(0 <= when - last.get(connection, 0) - 30_000 <= 1_000 for connection, when in found.items())


@pytest.mark.parametrize("way", idle.DETECTORS)
def test_idle_is_never_early(way: str) -> None:
    told = named(idle.measure(way, {"connections": 1_000, "packets_s": 500, "seconds": 40}))
    assert told["early"] == 0, "T1"
    assert told["found silent"] > 0
    assert told["latest"] <= (10 if way in ("refresh", "add-again") else 1_000)
