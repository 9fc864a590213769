"""Questions from the manuals of other engines, which no page of ours has: by the rules, and by a plain loop.

Flink CEP (strict contiguity; `times` and then), ksqlDB (a join WITHIN before and after), Kapacitor (stateDuration),
auctions that a late bid prolongs, and riders who give up. At whole minutes, so that instants meet; the loops know O3.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from abeyant import tables

MINUTE = 60_000_000
Found = dict[str, tuple[str, int]]
Happened = list[tuple[str, int, int]]
"""Key, minute, progress."""


def by_rules(operations: dict[str, list[Any]], events: Happened, **rules: Any) -> Found:
    """Resolve; `start` and `timeout` in minutes, and so are the ends."""
    rows: dict[str, Any] = dict(operations)
    rows["start"] = pa.array([MINUTE * at for at in rows["start"]], pa.timestamp("us", "UTC"))
    for name in ("timeout", "extend"):
        if name in rows:
            rows[name] = [f"{minutes} min" for minutes in rows[name]]
    keys, times, progress = zip(*events, strict=True)
    at = pa.array([MINUTE * time for time in times], pa.timestamp("us", "UTC"))
    happened = pa.table({"key": list(keys), "at": at, "progress": list(progress)})
    outcomes = tables.resolve(pa.table(rows), happened, **rules)
    ends = outcomes["at"].cast(pa.int64()).to_pylist()
    names = zip(outcomes["op_id"].to_pylist(), outcomes["outcome"].to_pylist(), ends, strict=True)
    return {op_id: (outcome, end // MINUTE) for op_id, outcome, end in names}


def a_large_payment_right_after_a_small_one(dice: random.Random) -> tuple[Found, Found]:
    """Flink CEP's fraud example, `next`: no other payment of the account between them, within 9 minutes."""
    payments = [
        (dice.choice("ab"), at, dice.choice(["small", "middle", "large"])) for at in dice.sample(range(200), 90)
    ]
    small = [(account, at) for account, at, size in payments if size == "small"]
    known: Found = {}
    for account, start in small:
        following = sorted((at, size) for who, at, size in payments if who == account and start < at <= start + 9)
        end = ("expired", start + 9)
        if following:
            at, size = following[0]
            end = ("completed" if size == "large" else "cancelled", at)
        known[f"{account}{start}"] = end
    found = by_rules(
        {
            "op_id": [f"{account}{start}" for account, start in small],
            "key": [f"{account}/large" for account, _ in small],
            "cancel_key": [f"{account}/other" for account, _ in small],
            "start": [start for _, start in small],
            "timeout": [9] * len(small),
        },
        [(f"{account}/{'large' if size == 'large' else 'other'}", at, 1) for account, at, size in payments],
        count="after_start",
    )
    return found, known


def a_shipment_an_hour_before_or_two_after(dice: random.Random) -> tuple[Found, Found]:
    """ksqlDB: a join `WITHIN (60 MINUTES, 120 MINUTES)`: the start lies where the window does."""
    orders = [(f"{n}", dice.randrange(300)) for n in range(60)]
    shipped = [(f"{dice.randrange(60)}", dice.randrange(500), 1) for _ in range(60)]
    known: Found = {}
    for order, at in orders:
        times = [when for which, when, _ in shipped if which == order and at - 60 <= when <= at + 120]
        known[order] = ("completed", min(times)) if times else ("expired", at + 120)
    found = by_rules(
        {
            "op_id": [order for order, _ in orders],
            "key": [order for order, _ in orders],
            "start": [at - 60 for _, at in orders],
            "timeout": [180] * len(orders),
        },
        shipped,
        count="from_start",
    )
    return found, known


def above_eighty_for_five_minutes(dice: random.Random) -> tuple[Found, Found]:
    """Kapacitor's stateDuration: a rise to 80 starts a wait, a reading below ends it; who expires is the alert."""
    readings = [(at, dice.choice([70, 79, 80, 90, 95, 99])) for at in sorted(dice.sample(range(200), 120))]
    before = [0, *(value for _, value in readings)]
    rises = [at for (at, value), last in zip(readings, before, strict=False) if value >= 80 > last]
    known: Found = {}
    for start in rises:
        below = [at for at, value in readings if start < at <= start + 5 and value < 80]
        known[f"{start}"] = ("completed", below[0]) if below else ("expired", start + 5)
    found = by_rules(
        {
            "op_id": [f"{start}" for start in rises],
            "key": ["cpu"] * len(rises),
            "required": [-79] * len(rises),
            "start": rises,
            "timeout": [5] * len(rises),
        },
        [("cpu", at, -value) for at, value in readings],
        combine="last",
    )
    return found, known


def three_failures_then_a_success(dice: random.Random) -> tuple[Found, Found]:
    """A guessed password (Flink CEP: `times(3)`, then another): three within ten minutes, a success within ten more."""
    tries = [(at, dice.choice(["fail", "fail", "pass"])) for at in range(120) for _ in range(dice.choice([0, 0, 1, 2]))]
    starts = sorted({at for at, what in tries if what == "fail"})
    known: Found = {}
    for start in starts:
        failed = sorted(at for at, what in tries if what == "fail" and start <= at <= start + 10)
        known[f"{start}"] = ("expired", start + 10)
        if len(failed) >= 3:
            passed = [at for at, what in tries if what == "pass" and failed[2] <= at <= failed[2] + 10]
            known[f"{start}"] = ("completed", min(passed)) if passed else ("expired", failed[2] + 10)
    steps = [{"key": "fail", "required": 3}, {"key": "pass", "required": 1}]
    waits: dict[str, list[Any]] = {
        "watches": [steps] * len(starts),
        "condition": ["then"] * len(starts),
        "timeout": [10] * len(starts),
    }
    found = by_rules(
        {"op_id": [f"{start}" for start in starts], "start": starts, **waits},
        [(what, at, 1) for at, what in tries],
        count="from_start",
        combine="sum",
        within="step",
    )
    return found, known


def the_reserve_is_met_when_the_hammer_falls(dice: random.Random) -> tuple[Found, Found]:
    """An auction of an hour; a bid puts its end off to five minutes later, and the highest is judged then."""
    lots = [(f"{n}", dice.randrange(100), dice.randint(50, 90)) for n in range(40)]
    bids = [(f"{dice.randrange(40)}", dice.randrange(220), dice.randrange(100)) for _ in range(400)]
    known: Found = {}
    for lot, opened, reserve in lots:
        closes, highest = opened + 60, 0
        for which, at, bid in sorted(bids, key=lambda bid: bid[1]):
            if which == lot and opened < at <= closes:
                closes, highest = max(closes, at + 5), max(highest, bid)
        known[lot] = ("completed" if highest >= reserve else "expired", closes)
    names = [lot for lot, *_ in lots]
    found = by_rules(
        {
            "op_id": names,
            "key": names,
            "required": [reserve for *_, reserve in lots],
            "extend_key": names,
            "start": [opened for _, opened, _ in lots],
            "timeout": [60] * len(lots),
            "extend": [5] * len(lots),
        },
        bids,
        count="after_start",
        holds="at_deadline",
    )
    return found, known


def riders_who_give_up(dice: random.Random) -> tuple[Found, Found]:
    """First come, first served; who gives up waits no more, though a car of that minute still takes them."""
    riders = [(f"{n:02}", dice.randrange(200), dice.choice([None, dice.randint(1, 9)])) for n in range(60)]
    cars = sorted(dice.randrange(220) for _ in range(45))
    known: Found = {}
    for name, asked, patience in riders:
        gives_up = None if patience is None else asked + patience
        leaves = asked + 12 if gives_up is None or gives_up > asked + 12 else gives_up
        known[name] = ("expired" if leaves != gives_up else "cancelled", leaves)
    for car in cars:
        waiting = [
            (asked, name)
            for name, asked, _ in riders
            if asked < car <= known[name][1] and known[name][0] != "completed"
        ]
        if waiting:
            known[min(waiting)[1]] = ("completed", car)
    found = by_rules(
        {
            "op_id": [name for name, *_ in riders],
            "key": ["cars"] * len(riders),
            "cancel_key": [f"gone/{name}" for name, *_ in riders],
            "start": [asked for _, asked, _ in riders],
            "timeout": [12] * len(riders),
        },
        [
            *(("cars", car, 1) for car in cars),
            *((f"gone/{name}", asked + patience, 1) for name, asked, patience in riders if patience is not None),
        ],
        count="after_start",
        serves="oldest",
    )
    return found, known


QUESTIONS: list[Callable[[random.Random], tuple[Found, Found]]] = [
    a_large_payment_right_after_a_small_one,
    a_shipment_an_hour_before_or_two_after,
    above_eighty_for_five_minutes,
    three_failures_then_a_success,
    the_reserve_is_met_when_the_hammer_falls,
    riders_who_give_up,
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_stranger_s_question_is_answered_as_by_a_loop(question: Callable[..., tuple[Found, Found]]) -> None:
    outcomes = set()
    for seed in range(20):
        found, known = question(random.Random(seed))
        assert found == known
        outcomes |= {outcome for outcome, _ in known.values()}
    assert len(outcomes) > 1
