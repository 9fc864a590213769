"""Each claim is decided by a figure: made-up runs on either side of it, and what a run lacks is not decided."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from lab.claim import Claim
from lab.experiment import QUICK, TAKEN
from lab.experiments import EXPERIMENTS
from lab.report.judging import judge
from lab.run import Run

CLAIMS = {name: experiment.claims for name, experiment in EXPERIMENTS.items()}
Row = dict[str, Any]


def run(experiment: str, *rows: Row) -> Run:
    return Run(experiment, pd.Timestamp("2026-01-02", tz="UTC"), "a machine", "a version", pd.DataFrame(rows))


def claim(experiment: str, words: str) -> Claim:
    (found,) = [claim for claim in CLAIMS[experiment] if words in claim.text]
    return found


def enqueued(design: str, rate: int, achieved: float, cpu: float = 5.0, **more: Any) -> Row:
    return {
        "design": design, "load": "low", "rate": rate, "achieved rate": achieved, "sustained rate": achieved,
        "CPU a request": cpu, "timed out": 0.08, "timed out, expected": 0.08, "early": 0, "submitted": 1000, **more,
    }  # fmt: skip


def costs(design: str, pending: int, **nanoseconds: float) -> Row:
    names = {f"insert {order}": 100.0 for order in ("random", "earliest", "latest")}
    names |= {"delete random": 100.0, "expire": 100.0}
    changed = {name.replace("_", " "): value for name, value in nanoseconds.items()}
    return {"design": design, "pending": pending, "the call alone": 40.0, **names, **changed}


def test_every_experiment_has_claims_and_each_its_source() -> None:
    assert list(CLAIMS) == list(EXPERIMENTS)
    for claims in CLAIMS.values():
        assert claims
        assert all(claim.source and claim.text.endswith(".") for claim in claims)


@pytest.mark.parametrize("experiment", CLAIMS)
def test_a_run_that_lacks_the_cells_decides_nothing(experiment: str) -> None:
    empty = run(experiment, {"design": "nothing"})
    assert {judge(claim, empty).verdict for claim in CLAIMS[experiment]} == {"not decided"}


@pytest.mark.parametrize(("old", "verdict"), [(50_000, "held"), (200_000, "held in part"), (290_000, "not held here")])
def test_saturation_is_decided_by_the_ratio_of_best_rates(old: float, verdict: str) -> None:
    rows = [enqueued("old", 300_000, old), enqueued("kafka", 300_000, 300_000), enqueued("ours", 300_000, 310_000)]
    finding = judge(claim("enqueue", "saturates"), run("enqueue", *rows))
    assert finding.verdict == verdict
    assert "300 k/s" in finding.figure
    assert f"{old / 1000:.0f} k/s" in finding.figure
    assert "genuine" not in finding.figure
    finding = judge(claim("enqueue", "saturates"), run("enqueue", *rows, enqueued("kafka-jvm", 300_000, 299_000)))
    assert "genuine Kafka 299 k/s" in finding.figure


@pytest.mark.parametrize(
    ("best", "verdict"), [(301_000, "held"), (250_000, "held in part"), (100_000, "not held here")]
)
def test_our_rate_is_decided_by_what_was_also_ended(best: float, verdict: str) -> None:
    row = enqueued("ours", 500_000, 480_000, **{"sustained rate": best})
    assert judge(claim("enqueue", "300,000"), run("enqueue", row)).verdict == verdict


def test_cpu_is_compared_where_both_kept_up() -> None:
    rows = [
        enqueued("old", 100_000, 99_000, cpu=9.0), enqueued("kafka", 100_000, 100_000, cpu=5.0),
        enqueued("old", 300_000, 90_000, cpu=2.0), enqueued("kafka", 300_000, 299_000, cpu=4.0),
    ]  # fmt: skip
    finding = judge(claim("enqueue", "less CPU"), run("enqueue", *rows))
    assert finding.verdict == "held"
    assert "at 100,000 requests/s" in finding.figure


@pytest.mark.parametrize(("early", "timed_out"), [(1, 0.08), (0, 0.2)])
def test_one_that_is_early_or_wrong_is_one_too_many(early: int, timed_out: float) -> None:
    bad = enqueued("ours", 100_000, 100_000, early=early) | {"timed out": timed_out}
    good = enqueued("ours", 100_000, 100_000)
    assert judge(claim("enqueue", "never early"), run("enqueue", good)).verdict == "held"
    assert judge(claim("enqueue", "never early"), run("enqueue", bad)).verdict == "not held here"


@pytest.mark.parametrize(
    ("wheel", "earliest", "latest", "verdict"),
    [
        (110, 300, 300, "held"),
        (110, 300, 105, "held in part"),
        (110, 110, 110, "not held here"),
        (900, 300, 300, "not held here"),
    ],
)
def test_inserts_are_decided_by_their_growth(wheel: float, earliest: float, latest: float, verdict: str) -> None:
    rows = [
        costs("wheel", 1_000),
        costs("wheel", 10**6, insert_random=wheel),
        costs("indexed-heap", 1_000),
        costs("indexed-heap", 10**6, insert_earliest=earliest, insert_latest=latest, insert_random=300),
    ]
    assert judge(claim("cost", "Starting"), run("cost", *rows)).verdict == verdict


@pytest.mark.parametrize(
    ("wheel", "heap", "queue", "verdict"),
    [(110, 300, 10**6, "held"), (200, 300, 10**6, "held in part"), (110, 105, 10**6, "held in part"),
     (110, 300, 300, "not held here")],
)  # fmt: skip
def test_deletes_are_decided_by_their_growth(wheel: float, heap: float, queue: float, verdict: str) -> None:
    rows = [costs(name, 1_000) for name in ("wheel", "indexed-heap", "delay-queue")]
    rows += [
        costs(name, 10**6, delete_random=each)
        for name, each in (("wheel", wheel), ("indexed-heap", heap), ("delay-queue", queue))
    ]
    assert judge(claim("cost", "Stopping"), run("cost", *rows)).verdict == verdict


@pytest.mark.parametrize(
    ("wheel", "heap", "verdict"),
    [(110, 300, "held"), (200, 300, "held in part"), (400, 300, "not held here"), (110, 110, "not held here")],
)
def test_expiring_is_decided_by_its_growth(wheel: float, heap: float, verdict: str) -> None:
    rows = [costs(name, 1_000) for name in ("wheel", "indexed-heap")]
    rows += [costs("wheel", 10**6, expire=wheel), costs("indexed-heap", 10**6, expire=heap)]
    assert judge(claim("cost", "what is due"), run("cost", *rows)).verdict == verdict


@pytest.mark.parametrize(("lazy", "verdict"), [(50.0, "held"), (0.02, "not held here")])
def test_a_stall_is_ten_times_the_wheels(lazy: float, verdict: str) -> None:
    rows = [costs("wheel", 10, turn_after_stops=0.01), costs("lazy-heap", 10, turn_after_stops=lazy)]
    assert judge(claim("cost", "stall"), run("cost", *rows)).verdict == verdict


def late(design: str, latest: float, delay: float = 10**9, early: int = 0) -> Row:
    return {"design": design, "latest": latest, "delay_us": delay, "early": early, "of the delay": latest / delay}


def test_precision_is_decided_by_the_latest_of_all() -> None:
    exact = claim("precision", "approximate")
    assert judge(exact, run("precision", late("wheel", 999), late("hashed-wheel", 99_999))).verdict == "held"
    assert judge(exact, run("precision", late("wheel", 1_001), late("hashed-wheel", 99_999))).verdict == "not held here"
    assert (
        judge(exact, run("precision", late("wheel", 9, early=1), late("hashed-wheel", 99_999))).verdict
        == "not held here"
    )


@pytest.mark.parametrize(("share", "verdict"), [(0.125, "held"), (8 / 63, "held in part"), (0.13, "not held here")])
def test_the_eighth_is_taken_at_its_word(share: float, verdict: str) -> None:
    rows = [late("kernel-wheel", share * 10**6, 10**6), late("kernel-wheel", 900, 1_000)]
    assert judge(claim("precision", "12.5 %"), run("precision", *rows)).verdict == verdict


@pytest.mark.parametrize(("most", "verdict"), [(30.0, "held"), (15.0, "held in part"), (10.5, "not held here")])
def test_memory_is_decided_by_its_growth_with_the_interval(most: float, verdict: str) -> None:
    row = {"keys": 100, "looked at by purges": 9, "CPU an operation": 5}
    rows = [
        {"design": "kafka", "purge_interval": 100, "memory, most": 10.0, **row},
        {"design": "kafka", "purge_interval": 10_000, "memory, most": most, **row},
        {"design": "ours", "purge_interval": 0, "memory, most": 1.0, **row},
    ]
    assert judge(claim("purge", "fill the memory"), run("purge", *rows)).verdict == verdict


@pytest.mark.parametrize(
    ("cpu", "visits", "verdict"), [(8.0, 20, "held"), (5.1, 20, "held in part"), (5.1, 1, "not held here")]
)
def test_frequent_purges_are_decided_by_cpu_then_by_visits(cpu: float, visits: float, verdict: str) -> None:
    rows = [
        {"design": "kafka", "purge_interval": 100, "looked at by purges": visits, "CPU an operation": cpu, "keys": 9},
        {"design": "kafka", "purge_interval": 999, "looked at by purges": 1, "CPU an operation": 5.0, "keys": 9},
        {"design": "ours", "purge_interval": 0, "looked at by purges": 0, "CPU an operation": 4.0, "keys": 9},
    ]
    assert judge(claim("purge", "small purge"), run("purge", *rows)).verdict == verdict


def test_geometry_is_decided_by_its_bounds() -> None:
    row = {"design": "wheel", "tick_us": 1_000, "wheel_size": 20, "levels": 3, "trace": "low"}
    busy = row | {"cascades": 0.1, "bucket-queue operations": 0.2}
    quiet = row | {"cascades": 2.0, "bucket-queue operations": 1.5}
    broken = row | {"cascades": 2.1, "bucket-queue operations": 1.2}
    cascades, queue = claim("geometry", "cascades"), claim("geometry", "delay queue")
    assert judge(cascades, run("geometry", busy, quiet)).verdict == "held"
    assert judge(cascades, run("geometry", busy, broken)).verdict == "not held here"
    assert [judge(queue, run("geometry", *rows)).verdict for rows in ([busy], [busy, quiet], [quiet])] == [
        "held", "held in part", "not held here",
    ]  # fmt: skip


def test_idle_is_decided_by_a_packets_cost_and_by_lateness() -> None:
    def rows(refresh: float, latest: float) -> list[Row]:
        other = {"packets_s": 10, "longest turn": 1.0, "latest": 900.0}
        return [
            {"design": "refresh", **other, "a packet": refresh, "latest": latest},
            {"design": "add-again", **other, "a packet": 200.0, "latest": 10.0},
            {"design": "ring-of-sets", **other, "a packet": 150.0},
            {"design": "scan-all", **other, "a packet": 50.0},
        ]

    cheapest, precise = CLAIMS["idle"]
    assert judge(cheapest, run("idle", *rows(100, 10))).verdict == "held"
    assert judge(cheapest, run("idle", *rows(160, 10))).verdict == "not held here"
    assert judge(precise, run("idle", *rows(100, 10))).verdict == "held"
    assert judge(precise, run("idle", *rows(100, 20))).verdict == "not held here"


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({}, "not held here"),
        ({TAKEN: 0.05}, "not held here"),
        ({TAKEN: 0.4}, "inconclusive"),
        ({QUICK: 1.0}, "inconclusive"),
    ],
)
def test_neither_a_busy_machine_nor_too_few_rounds_speak_against_a_claim(more: Row, verdict: str) -> None:
    rows = [enqueued(design, 100_000, 100_000, **more) for design in ("old", "kafka", "ours")]
    finding = judge(claim("enqueue", "saturates"), run("enqueue", *rows))
    assert finding.verdict == verdict
    assert ("other processes used 40% of the CPU, more than 10%" in finding.figure) == (more.get(TAKEN) == 0.4)
    assert ("--quick has too few rounds" in finding.figure) == (QUICK in more)


def test_a_claim_that_holds_on_a_busy_machine_holds() -> None:
    rates = {"old": 30_000, "kafka": 100_000, "ours": 100_000}
    rows = [enqueued(design, 100_000, rate, **{TAKEN: 0.4, QUICK: 1.0}) for design, rate in rates.items()]
    assert judge(claim("enqueue", "saturates"), run("enqueue", *rows)).verdict == "held"


def test_on_a_virtual_clock_no_load_matters() -> None:
    rows = [
        {"design": "wheel", "trace": "low", "tick_us": 1_000, "wheel_size": 20, "levels": 2, "cascades": 5.0,
         TAKEN: 0.9, QUICK: 1.0}
    ]  # fmt: skip
    assert judge(claim("geometry", "cascades once"), run("geometry", *rows)).verdict == "not held here"


def test_each_claim_states_its_rule() -> None:
    rules = [claim.rule for claims in CLAIMS.values() for claim in claims]
    assert len(set(rules)) == len(rules)
    assert all(rule.startswith("Held ") and rule.endswith(".") for rule in rules)
