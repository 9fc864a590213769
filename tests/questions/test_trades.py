"""Questions from trades that no page of ours has: by the rules, in every way, and by plain loops.

One-time passwords, parking meters, hospitals, purchase orders and returns, holds for several reasons, stock sold newest
first. At whole minutes, so that instants meet; keys as integers, categories and Arrow's text, times of any unit.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from abeyant import pipeline, tables
from questions.test_modes import Rows, live, streamed
from questions.test_strangers import Found, Question

EPOCH = datetime(2026, 3, 28, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def at(minutes: Iterable[int]) -> list[datetime]:
    return [EPOCH + minute * MINUTE for minute in minutes]


def happened(rows: list[tuple[str, int]]) -> pd.DataFrame:
    times = pd.to_datetime(at(minute for _, minute in rows))
    return pd.DataFrame({"key": [key for key, _ in rows], "at": times, "progress": 1})


def two_passwords_one_after_the_other(dice: random.Random) -> Question:
    """The same step twice: a password of each of two instants; voided before, or at the instant of the second."""
    asked = [(f"{n}", dice.randrange(60)) for n in range(40)]
    some = [(f"{dice.choice(['sent', 'void'])}/{dice.randrange(40)}", dice.randrange(90)) for _ in range(250)]
    known: Found = {}
    for name, start in asked:
        sent = sorted({minute for key, minute in some if key == f"sent/{name}" and start < minute <= start + 20})
        void = min(
            (minute for key, minute in some if key == f"void/{name}" and start < minute <= start + 20), default=99
        )
        second = sent[1] if len(sent) > 1 else None
        known[name] = ("expired", start + 20) if void == 99 else ("cancelled", void)
        if second is not None and second <= void:
            known[name] = ("completed", second)
    frame = pl.DataFrame(
        {
            "op_id": [name for name, _ in asked],
            "start": at(start for _, start in asked),
            "watches": [[{"key": f"sent/{name}", "required": 1}] * 2 for name, _ in asked],
            "cancel_key": [f"void/{name}" for name, _ in asked],
        }
    ).with_columns(condition=pl.lit("then"), timeout=pl.lit("PT20M"))
    events = pl.DataFrame({"key": [key for key, _ in some], "at": at(minute for _, minute in some)}).with_columns(
        pl.col("at").dt.cast_time_unit("ns"), pl.col("key").cast(pl.Categorical)
    )
    return Question(frame, events, {"count": "after_start"}, known)


def the_first_touch(dice: random.Random) -> Question:
    """Each purchase goes to the user's oldest click; ids are integers, of which 10 is before 9 as text."""
    clicks = [(f"{number}", dice.choice("ab"), dice.randrange(100)) for number in dice.sample(range(1, 2000), 50)]
    some = [(dice.choice("abc"), dice.randrange(120)) for _ in range(120)]
    known: Found = {number: ("expired", start + 15) for number, _, start in clicks}
    for user, minute in sorted(some, key=lambda one: one[1]):
        waiting = [
            (start, number)
            for number, who, start in clicks
            if who == user and start < minute <= start + 15 and known[number][0] == "expired"
        ]
        if waiting:
            known[min(waiting)[1]] = ("completed", minute)
    frame = pd.DataFrame({"op_id": [int(number) for number, *_ in clicks]})
    frame["key"], frame["start"] = pd.Categorical([who for _, who, _ in clicks]), at(start for *_, start in clicks)
    events = happened(some).convert_dtypes(dtype_backend="pyarrow")
    rules = {"count": "after_start", "serves": "oldest"}
    return Question(frame.assign(timeout=pd.Timedelta("15min")), events, rules, known)


def received_and_invoiced(dice: random.Random, holds: str = "ever") -> Question:
    """Quantity and amount, both at one instant: what is sent back, or credited, is deducted from each."""
    orders = [(f"{n}", dice.randrange(50), dice.randint(1, 8), dice.randint(10, 60)) for n in range(40)]
    keys = [(f"{dice.choice(['received', 'invoiced'])}/{dice.randrange(40)}", dice.randrange(100)) for _ in range(400)]
    some = [(key, minute, dice.randint(-4, 6) * (10 if key[0] == "i" else 1)) for key, minute in keys]
    known: Found = {}
    for name, start, quantity, amount in orders:
        known[name] = ("expired", start + 40)
        for minute in [start + 40] if holds == "at_deadline" else range(start, start + 41):
            came = [(key, much) for key, when, much in some if start < when <= minute]
            sums = [sum(much for key, much in came if key == f"{what}/{name}") for what in ("received", "invoiced")]
            if sums[0] >= quantity and sums[1] >= amount:
                known[name] = ("completed", minute)
                break
    frame = pd.DataFrame({"op_id": [name for name, *_ in orders], "start": at(start for _, start, *_ in orders)})
    frame["watches"] = pd.Series(
        [
            [{"key": f"received/{name}", "required": quantity}, {"required": float(amount), "key": f"invoiced/{name}"}]
            for name, _, quantity, amount in orders
        ],
        dtype=object,
    )
    events = happened(keys).assign(progress=pd.array([much for *_, much in some], "Int32"))
    events["at"] = events["at"].astype("datetime64[ms, UTC]")
    rules = {"count": "after_start", "combine": "sum", "holds": holds}
    return Question(frame.assign(timeout=40 * MINUTE), events, rules, known)


def still_complete_at_the_end(dice: random.Random) -> Question:
    return received_and_invoiced(dice, "at_deadline")


def a_coin_for_each_quarter_of_an_hour(dice: random.Random) -> Question:
    """A parking meter: a coin gives 15 minutes from then on, if that is longer; after the end it comes too late."""
    cars = [(f"{n}", dice.randrange(50)) for n in range(40)]
    kinds = ["coin", "coin", "leaves", "fined"]
    some = [(f"{dice.choice(kinds)}/{dice.randrange(40)}", dice.randrange(150)) for _ in range(400)]
    known: Found = {}
    for name, start in cars:
        until = minute = start
        until += 30
        while name not in known:
            now = {key.split("/")[0] for key, when in some if when == minute > start and key.endswith(f"/{name}")}
            until = max(until, minute + 15) if "coin" in now else until
            if "leaves" in now:
                known[name] = ("completed", minute)
            elif "fined" in now:
                known[name] = ("cancelled", minute)
            elif minute == until:
                known[name] = ("expired", minute)
            minute += 1
    frame = pd.DataFrame({"op_id": [name for name, _ in cars], "start": at(start for _, start in cars)})
    for column, what in ("key", "leaves"), ("cancel_key", "fined"), ("extend_key", "coin"):
        frame[column] = what + "/" + frame.op_id
    frame = frame.assign(extend_ms=900_000, timeout_ms=1_800_000)
    return Question(frame, happened(some), {"count": "after_start"}, known)


def a_bundle_of_care(dice: random.Random) -> Question:
    """Lactate, cultures and two doses from an hour before to an hour after the alarm, unless comfort care is chosen."""
    alarms = [(f"{n}", dice.randrange(60, 160)) for n in range(40)]
    kinds = ["lactate", "cultures", "dose", "dose", "comfort"]
    some = [(f"{dice.choice(kinds)}/{dice.randrange(40)}", dice.randrange(260)) for _ in range(500)]
    known: Found = {}
    for name, alarm in alarms:
        known[name] = ("expired", alarm + 60)
        for minute in range(alarm - 60, alarm + 61):
            came = [
                key.split("/")[0] for key, when in some if key.endswith(f"/{name}") and alarm - 60 <= when <= minute
            ]
            if "lactate" in came and "cultures" in came and came.count("dose") >= 2:
                known[name] = ("completed", minute)
            elif "comfort" in came:
                known[name] = ("cancelled", minute)
            if known[name][0] != "expired":
                break
    watches = [("lactate", 1, "complete"), ("cultures", 1, None), ("dose", 2, "complete"), ("comfort", 1, "cancel")]
    listed = [
        [{"key": f"{what}/{name}", "required": much, "role": role} for what, much, role in watches]
        for name, _ in alarms
    ]
    starts, ends = at(alarm - 60 for _, alarm in alarms), at(alarm + 60 for _, alarm in alarms)
    frame = pl.DataFrame({"op_id": [n for n, _ in alarms], "start": starts, "deadline": ends, "watches": listed})
    events = pl.DataFrame({"key": [key for key, _ in some], "at": at(minute for _, minute in some)})
    events = events.with_columns(pl.col("at").dt.convert_time_zone("Asia/Kolkata"))
    return Question(frame, events, {"combine": "sum", "count": "from_start"}, known)


def on_hold_for_two_reasons(dice: random.Random) -> Question:
    """Holds that overlap: the key's level is how many are open. Answers and holds are one frame, put together."""
    asked = [(f"{n}", dice.randrange(40)) for n in range(40)]
    changes = [
        (name, minute, 1 - 2 * (place % 2))
        for name, _ in asked
        for _ in "ab"
        for place, minute in enumerate(sorted(dice.sample(range(120), dice.randrange(5))))
    ]
    answers = [(name, dice.randrange(140)) for name, _ in asked if dice.random() < 0.6]
    known: Found = {}
    for name, start in asked:
        left = 30
        for minute in range(start, 400):
            if minute > start and (name, minute) in answers:
                known[name] = ("completed", minute)
            elif left == 0:
                known[name] = ("expired", minute)
            if name in known:
                break
            left -= sum(change for of, when, change in changes if of == name and when <= minute) < 1
        known.setdefault(name, ("pending", None))
    level = pd.DataFrame(changes, columns=["name", "minute", "progress"])
    level = level.groupby(["name", "minute"])[["progress"]].sum().reset_index()
    level["progress"] = level.groupby("name")["progress"].cumsum()
    level = level.assign(key="hold/" + level["name"], at=at(level["minute"]))[["key", "at", "progress"]]
    answered = happened([(f"answer/{name}", minute) for name, minute in answers]).drop(columns="progress")
    events = pd.concat([level, answered]).fillna({"progress": 1})
    frame = pd.DataFrame({"op_id": [name for name, _ in asked], "start": at(start for _, start in asked)})
    frame = frame.assign(key="answer/" + frame.op_id, pause_key="hold/" + frame.op_id, timeout="0:30:00")
    return Question(frame, events, {"count": "after_start"}, known)


def stock_that_came_last_goes_first(dice: random.Random) -> Question:
    """Lots are sold newest first within 20 minutes, a sale at a time; what is sent back goes to the newest."""
    lots = sorted((dice.randrange(80), f"{n:02}", dice.randint(1, 6)) for n in range(40))
    sales = [(dice.randrange(110), dice.randint(-2, 6)) for _ in range(70)]
    known: Found = {name: ("expired", start + 20) for start, name, _ in lots}
    left = {name: much for _, name, much in lots}
    for minute, much in sorted(sales, key=lambda one: (one[0], -one[1])):
        waiting = [(-start, name) for start, name, _ in lots if start < minute <= start + 20 and left[name] > 0]
        if waiting:
            name = min(waiting)[1]
            left[name] -= much
            if left[name] <= 0:
                known[name] = ("completed", minute)
    frame = pa.table(
        {
            "op_id": [name for _, name, _ in lots],
            "key": [7] * 40,
            "start": at(start for start, *_ in lots),
            "required": [much for *_, much in lots],
            "timeout": ["20 min"] * 40,
        }
    )
    events = pa.table({"key": ["7"] * 70, "at": at(minute for minute, _ in sales), "progress": [n for _, n in sales]})
    return Question(frame, events, {"count": "after_start", "serves": "newest", "combine": "sum"}, known)


QUESTIONS: list[Callable[[random.Random], Question]] = [
    two_passwords_one_after_the_other,
    the_first_touch,
    received_and_invoiced,
    still_complete_at_the_end,
    a_coin_for_each_quarter_of_an_hour,
    a_bundle_of_care,
    on_hold_for_two_reasons,
    stock_that_came_last_goes_first,
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_in_tables_live_and_in_batches_of_a_stream(question: Callable[[random.Random], Question]) -> None:
    outcomes = set()
    for seed in range(4):
        asked = question(random.Random(seed))
        rows = tables.resolve(asked.operations, asked.events, **asked.rules).to_pylist()
        ends: dict[str, tuple[str, Any]] = {row["op_id"]: (row["outcome"], row["at"]) for row in rows}
        assert minutes_of(ends) == asked.known, seed
        if seed == 0:
            assert minutes_of(live(Rows(asked))) == asked.known
        if seed == 1:
            assert minutes_of(streamed(Rows(asked), random.Random(seed))) == asked.known
        outcomes |= {outcome for outcome, _ in asked.known.values()}
    assert len(outcomes) > 1


@pytest.mark.slow
def test_on_spark(spark: SparkSession) -> None:
    for question in QUESTIONS:
        asked = question(random.Random(2))
        found = pipeline.resolve(asked.operations, asked.events, **asked.rules).toArrow().to_pylist()
        assert minutes_of({row["op_id"]: (row["outcome"], row["at"]) for row in found}) == asked.known, question


def minutes_of(ends: dict[str, tuple[str, datetime | None]]) -> Found:
    return {name: (outcome, None if end is None else (end - EPOCH) // MINUTE) for name, (outcome, end) in ends.items()}
