"""Questions of other people, as they would hand them over: frames of pandas and Polars, relations of DuckDB.

From Siddhi's absent patterns, interview questions in SQL, service levels and clocks that change. Each by the rules, in
tables, live and on Spark, and by a plain loop that knows O3 and looks at whole minutes, where instants meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from abeyant import Calendar, pipeline, tables
from questions.test_modes import Rows, live, streamed
from seeds import share

EPOCH = datetime(2026, 3, 28, 12, tzinfo=UTC)  # half a day before the clocks of Berlin change
MINUTE = timedelta(minutes=1)
Found = dict[str, tuple[str, int | None]]


class Question(NamedTuple):
    """What somebody hands over, and what is right: each outcome, and its minute."""

    operations: Any
    events: Any
    rules: dict[str, Any]
    known: Found


def at(*minutes: int) -> list[datetime]:
    return [EPOCH + minute * MINUTE for minute in minutes]


def happened(rows: list[tuple[Any, ...]]) -> pa.Table:
    """Return events of (key, minute) or (key, minute, progress)."""
    names = ("key", "at", "progress")[: len(rows[0])] if rows else ("key", "at")
    columns = [[row[n] for row in rows] for n in range(len(names))]
    kinds = {"key": pa.string(), "at": pa.timestamp("us", "UTC"), "progress": pa.int64()}
    columns[1] = at(*columns[1])
    return pa.table({name: pa.array(column, kinds[name]) for name, column in zip(names, columns, strict=True)})


def answered_and_not_refused(dice: random.Random) -> Question:
    """Siddhi: `A -> not B and C`. C completes; B before it cancels; both in one minute: it was answered (O3)."""
    asked = [(f"{n}", dice.randrange(120)) for n in range(60)]
    some = [(f"{dice.choice(['yes', 'no'])}/{dice.randrange(60)}", dice.randrange(150), 1) for _ in range(150)]
    known: Found = {}
    for name, start in asked:
        known[name] = ("expired", start + 20)
        for minute in range(start + 1, start + 21):
            if (f"yes/{name}", minute, 1) in some:
                known[name] = ("completed", minute)
                break
            if (f"no/{name}", minute, 1) in some:
                known[name] = ("cancelled", minute)
                break
    frame = pd.DataFrame({"op_id": [name for name, _ in asked], "start": at(*(start for _, start in asked))})
    frame["key"], frame["cancel_key"] = "yes/" + frame.op_id, "no/" + frame.op_id
    return Question(frame.assign(timeout=pd.Timedelta("20min")), happened(some), {"count": "after_start"}, known)


def charged_twice(dice: random.Random) -> Question:
    """An interview question: two charges of one card, merchant and amount within ten minutes, in one instant too."""
    charges = [(f"{n}", f"card {dice.randrange(4)}/{dice.choice([5, 9])}", dice.randrange(150)) for n in range(60)]
    known: Found = {}
    for number, what, start in charges:
        others = [minute for n, of, minute in charges if n != number and of == what and start <= minute <= start + 10]
        known[number] = ("completed", min(others)) if others else ("expired", start + 10)
    frame = pl.DataFrame(
        {
            "op_id": [number for number, _, _ in charges],
            "key": pl.Series([what for _, what, _ in charges], dtype=pl.Categorical),
            "start": at(*(start for *_, start in charges)),
            "timeout": [10 * MINUTE] * len(charges),
            "required": pl.Series([2] * len(charges), dtype=pl.UInt8),
        }
    )
    rows = [(what, minute) for _, what, minute in charges]
    return Question(frame, happened(rows), {"count": "from_start", "combine": "sum"}, known)


def a_payment_goes_its_way(dice: random.Random) -> Question:
    """Created, captured, settled, each at most ten minutes after the one before; refunded meanwhile: broken."""
    made = [(n, dice.randrange(60)) for n in range(60)]
    names = ["captured", "settled", "refunded"]
    some = sorted({(f"{dice.choice(names)}/{dice.randrange(60)}", dice.randrange(100)) for _ in range(260)})
    known: Found = {}
    for number, start in made:
        step, since, end = 0, start, None
        while end is None:
            ahead = [minute for what, minute in some if what == f"{('captured', 'settled')[step]}/{number}"]
            met = min((minute for minute in ahead if since < minute <= since + 10), default=None)
            if met is not None and step == 1:
                end = ("completed", met)
            elif met is None:
                end = ("expired", since + 10)
            else:
                step, since = 1, met
        refunds = [minute for what, minute in some if what == f"refunded/{number}" and start < minute <= end[1]]
        if refunds and not (end[0] == "completed" and min(refunds) >= end[1]):
            end = ("cancelled", min(refunds))
        known[f"{number}"] = end
    frame = pd.DataFrame({"op_id": [n for n, _ in made], "start": at(*(start for _, start in made))})
    watches = [[{"key": f"{name}/{n}", "required": 1} for name in names[:2]] for n, _ in made]
    frame["watches"] = pd.Series(watches, dtype=object)
    frame = frame.assign(cancel_key=[f"refunded/{n}" for n, _ in made], condition="then", timeout="00:10:00")
    return Question(frame, happened(some), {"within": "step", "count": "after_start"}, known)


def the_night_job_is_done_by_eight(dice: random.Random) -> Question:
    """Each night's job by 8:00 of Berlin, over a change of the clocks; a night's run ends once, and none knows when."""
    berlin = ZoneInfo("Europe/Berlin")
    days = [datetime(2026, 3, 27, 22, tzinfo=berlin) + timedelta(days=n) for n in range(4)]
    ends = {n: dice.choice([None, dice.randrange(0, 700)]) for n in range(4)}
    known: Found = {}
    for number, day in enumerate(days):
        eight = (day + timedelta(days=1)).replace(hour=8)
        minutes = (eight.astimezone(UTC) - EPOCH) // MINUTE
        begun, took = (day.astimezone(UTC) - EPOCH) // MINUTE, ends[number]
        known[f"night {number}"] = ("expired", minutes)
        if took is not None and begun + took <= minutes:
            known[f"night {number}"] = ("completed", begun + took)
    frame = pd.DataFrame({"op_id": list(known), "key": list(known)})
    frame["start"] = pd.to_datetime([day.replace(tzinfo=None) for day in days]).tz_localize("Europe/Berlin")
    frame["deadline"] = (frame["start"].dt.tz_localize(None).dt.normalize() + pd.Timedelta("1d 8h")).dt.tz_localize(
        "Europe/Berlin"
    )
    rows = [
        (f"night {n}", (days[n].astimezone(UTC) - EPOCH) // MINUTE + took)
        for n, took in ends.items()
        if took is not None
    ]
    return Question(frame, happened(rows), {}, known)


def sent_back_within_a_warranty(dice: random.Random) -> Question:
    """Within 30 minutes of use: the clock stands while it is in repair, and for ever where it never comes back."""
    sold = [(f"{n}", dice.randrange(40)) for n in range(50)]
    repairs = {name: sorted(dice.sample(range(100), dice.randrange(5))) for name, _ in sold}
    back = {name: dice.choice([None, dice.randrange(120)]) for name, _ in sold}
    known: Found = {}
    for name, start in sold:
        left, minute, end, returned = 30, start, None, back[name]
        while end is None and minute < 400:
            if returned is not None and start < returned == minute:
                end = ("completed", minute)
            elif left == 0:
                end = ("expired", minute)
            away = sum(change <= minute for change in repairs[name]) % 2 == 1
            left, minute = left - (not away), minute + 1
        known[name] = end or ("pending", None)
    frame = pl.DataFrame({"op_id": [n for n, _ in sold], "start": at(*(start for _, start in sold))}).with_columns(
        key=pl.format("back/{}", "op_id"), pause_key=pl.format("repair/{}", "op_id"), timeout=pl.duration(minutes=30)
    )
    some = [(f"back/{name}", minute, 1) for name, minute in back.items() if minute is not None]
    some += [(f"repair/{n}", minute, 1 - of % 2) for n, changes in repairs.items() for of, minute in enumerate(changes)]
    return Question(frame, happened(some), {"count": "after_start"}, known)


def rent_is_paid_in_turn(dice: random.Random) -> Question:
    """Payments name no charge: each goes, whole, to the oldest that is still owed and not yet due."""
    charges = sorted((dice.randrange(100), f"{n:02}", dice.randint(1, 9)) for n in range(40))
    paid = sorted(((dice.randrange(140), dice.randint(1, 6)) for _ in range(50)), key=lambda one: (one[0], -one[1]))
    owed = {name: amount for _, name, amount in charges}
    known: Found = {name: ("expired", start + 25) for start, name, _ in charges}
    for minute, amount in paid:
        waiting = [name for start, name, _ in charges if start < minute <= start + 25 and owed[name] > 0]
        if waiting:
            owed[waiting[0]] -= amount
            if owed[waiting[0]] <= 0:
                known[waiting[0]] = ("completed", minute)
    connection = duckdb.connect()
    connection.register("charges", pd.DataFrame(charges, columns=["minute", "op_id", "required"]))
    relation = connection.sql(
        f"SELECT op_id, 'tenant' AS key, required, INTERVAL 25 MINUTE AS timeout, "
        f"TIMESTAMPTZ '{EPOCH.isoformat()}' + to_minutes(minute) AS start FROM charges"
    ).to_arrow_table()
    rows = [("tenant", minute, amount) for minute, amount in paid]
    return Question(relation, happened(rows), {"count": "after_start", "serves": "oldest", "combine": "sum"}, known)


def on_call_from_ten_to_six(dice: random.Random) -> Question:
    """Answered within three hours of the night shift, 22:00 to 6:00 of Berlin, in the night that lacks an hour too."""
    calendar = Calendar("Mon-Sun 22:00-06:00", zone="Europe/Berlin")
    berlin = ZoneInfo("Europe/Berlin")

    def is_open(minute: int) -> bool:
        hour = (EPOCH + minute * MINUTE).astimezone(berlin).hour
        return hour >= 22 or hour < 6

    calls = [(f"{n}", dice.randrange(3000)) for n in range(30)]
    answers = {name: dice.choice([None, start + dice.randrange(1, 1500)]) for name, start in calls}
    known: Found = {}
    for name, start in calls:
        left, minute = 180, start
        while left:
            left, minute = left - is_open(minute), minute + 1
        answer = answers[name]
        known[name] = ("completed", answer) if answer is not None and answer <= minute else ("expired", minute)
    frame = pa.table(
        {
            "op_id": pa.array([name for name, _ in calls], pa.string_view()),
            "key": pa.array([name for name, _ in calls]).dictionary_encode(),
            "start": pa.array(at(*(start for _, start in calls)), pa.timestamp("ns", "Europe/Berlin")),
            "timeout": ["PT3H"] * len(calls),
        }
    )
    rows = [(name, minute) for name, minute in answers.items() if minute is not None]
    return Question(frame, happened(rows), {"calendar": calendar}, known)


def sessions_end_after_half_an_hour_or_two(dice: random.Random) -> Question:
    """A session ends after 30 idle minutes, and after two hours in any case: that end is an event known ahead."""
    clicks = {f"{n}": sorted(dice.sample(range(300), dice.randint(1, 25))) for n in range(25)}
    known: Found = {}
    for name, minutes in clicks.items():
        start = end = minutes[0]
        for minute in minutes:
            if minute <= end + 30:
                end = max(end, minute)
        known[name] = ("expired", end + 30) if end + 30 < start + 120 else ("cancelled", start + 120)
        if end + 30 >= start + 120:
            last = start
            for minute in minutes:
                last = minute if minute <= last + 30 and minute <= start + 120 else last
            known[name] = ("cancelled", start + 120) if last + 30 >= start + 120 else ("expired", last + 30)
    frame = pd.DataFrame({"op_id": list(clicks), "start": at(*(minutes[0] for minutes in clicks.values()))})
    frame["extend_key"], frame["cancel_key"], frame["timeout"] = frame.op_id, "end/" + frame.op_id, "30 min"
    rows = [(name, minute) for name, minutes in clicks.items() for minute in minutes]
    rows += [(f"end/{name}", minutes[0] + 120) for name, minutes in clicks.items()]
    return Question(frame, happened(rows), {"count": "after_start"}, known)


def two_approve_and_none_objects(dice: random.Random) -> Question:
    """Two approvals of three, each approves once, before anybody objects."""
    asked = [(f"{n}", dice.randrange(60)) for n in range(50)]
    yes = {
        (name, who): start + dice.randrange(-5, 40) for name, start in asked for who in range(3) if dice.random() < 0.7
    }
    no = {name: start + dice.randrange(1, 40) for name, start in asked if dice.random() < 0.4}
    known: Found = {}
    for name, start in asked:
        given = sorted(minute for (of, _), minute in yes.items() if of == name)
        second = max(given[1], start) if len(given) > 1 else 10**9
        ends = [(start + 15, 2, "expired"), (second, 0, "completed"), (no.get(name, 10**9), 1, "cancelled")]
        minute, _, outcome = min(ends)
        known[name] = (outcome, minute)
    frame = pd.DataFrame({"op_id": pd.Categorical([n for n, _ in asked]), "start": at(*(start for _, start in asked))})
    frame = frame.assign(
        key=[f"yes/{name}" for name, _ in asked],
        cancel_key=[f"no/{name}" for name, _ in asked],
        required=2.0,
        timeout=[15 * MINUTE] * len(asked),
    )
    rows = [(f"yes/{name}", minute) for (name, _), minute in yes.items()]
    rows += [(f"no/{name}", minute) for name, minute in no.items()]
    return Question(frame, happened(rows), {"combine": "sum"}, known)


def the_account_is_covered_at_the_cut_off(dice: random.Random) -> Question:
    """A margin call: whatever comes and goes, the balance has to be there at the cut-off."""
    calls = [(f"{n}", dice.randrange(60), dice.randint(-5, 10)) for n in range(40)]
    moves = [(f"{dice.randrange(40)}", dice.randrange(120), dice.randint(-6, 9)) for _ in range(300)]
    known: Found = {}
    for name, start, needed in calls:
        balance = sum(amount for of, minute, amount in moves if of == name and minute <= start + 30)
        known[name] = ("completed" if balance >= needed else "expired", start + 30)
    frame = pl.DataFrame(
        {
            "op_id": [int(name) for name, *_ in calls],
            "key": [int(name) for name, *_ in calls],
            "start": at(*(start for _, start, _ in calls)),
            "required": [needed for *_, needed in calls],
            "timeout_ms": pl.Series([30 * 60_000.0] * len(calls)),
        }
    )
    return Question(frame, happened(moves), {"combine": "sum", "holds": "at_deadline"}, known)


def the_plate_on_top_first(dice: random.Random) -> Question:
    """Plates wait on a stack; who comes takes the newest there is, or waits for the next: the newest guest first."""
    guests = [(f"{n:02}", minute) for n, minute in enumerate(sorted(dice.sample(range(150), 40)))]
    plates = sorted(dice.sample(range(150), 40))
    stack: list[int] = []
    waiting: list[tuple[str, int]] = []
    known: Found = {name: ("expired", minute + 6) for name, minute in guests}
    for minute in range(160):
        if minute in plates:
            stack.append(minute)
        waiting += [(name, start) for name, start in guests if start == minute]
        while stack and (now := [one for one in waiting if one[1] + 6 >= minute]):
            stack.pop()
            known[now[-1][0]] = ("completed", minute)
            waiting.remove(now[-1])
    frame = pa.table({"op_id": [name for name, _ in guests], "start": at(*(minute for _, minute in guests))})
    frame = frame.append_column("key", [["plates"] * len(guests)]).append_column("timeout", [["6m"] * len(guests)])
    return Question(frame, happened([("plates", minute) for minute in plates]), {"serves": "newest"}, known)


def rows_as_they_come(dice: random.Random) -> Question:
    """Nulls, ids that come twice, negative and missing time-outs among orders and payments."""
    orders = [
        (
            dice.choice([None, *(f"{n}" for n in range(30))]),
            dice.choice([None, "a", "b", "c"]),
            dice.choice([None, *range(60)]),
            dice.choice([None, "soon", "-5 min", "10 min", "0 s"]),
        )
        for _ in range(60)
    ]
    paid = [(dice.choice([None, "a", "b", "c"]), dice.randrange(80)) for _ in range(12)]
    known: Found = {}
    lengths, rivals = {"0 s": 0, "10 min": 10}, dict[str, set[Any]]()
    for name, key, start, text in orders:  # of rows alike in start and time-out, the least key counts
        if name is not None and key is not None and start is not None and text in lengths:
            rivals.setdefault(name, set()).add((start, lengths[text], key))
    for name, rows in rivals.items():
        start, length, key = min(rows)
        mine = [minute for of, minute in paid if of == key and start <= minute <= start + length]
        known[name] = ("completed", min(mine)) if mine else ("expired", start + length)
    frame = pd.DataFrame(orders, columns=["op_id", "key", "minute", "timeout"])
    frame["start"] = pd.Timestamp(EPOCH) + pd.to_timedelta(frame.pop("minute"), unit="min")
    return Question(frame, happened(paid), {"count": "from_start"}, known)


def nothing_at_all(dice: random.Random) -> Question:
    """A day without orders, or without events."""
    starts = [dice.randrange(9)] * dice.randrange(2)
    frame = pd.DataFrame({"op_id": ["a"] * len(starts), "key": ["a"] * len(starts), "timeout": ["9 s"] * len(starts)})
    frame["start"] = pd.to_datetime(at(*starts), utc=True)
    known: Found = {"a": ("expired", starts[0])} if starts else {}
    rules = {"serves": dice.choice(["every", "oldest"]), "count": "after_start"}
    return Question(frame, pd.DataFrame({"key": [], "at": []}), rules, known)


QUESTIONS: list[Callable[[random.Random], Question]] = [
    answered_and_not_refused,
    charged_twice,
    a_payment_goes_its_way,
    the_night_job_is_done_by_eight,
    sent_back_within_a_warranty,
    rent_is_paid_in_turn,
    on_call_from_ten_to_six,
    sessions_end_after_half_an_hour_or_two,
    two_approve_and_none_objects,
    the_account_is_covered_at_the_cut_off,
    the_plate_on_top_first,
    rows_as_they_come,
    nothing_at_all,
]

FOR_ONE_AT_A_TIME = [question for question in QUESTIONS if question not in (rows_as_they_come, nothing_at_all)]


def minute_of(time: datetime | None) -> int | None:
    return None if time is None else (time - EPOCH) // MINUTE


@pytest.mark.parametrize("question", QUESTIONS)
def test_in_tables(question: Callable[[random.Random], Question]) -> None:
    outcomes = set()
    for seed in range(share(15)):
        asked = question(random.Random(seed))
        found = tables.resolve(asked.operations, asked.events, **asked.rules).to_pylist()
        assert {row["op_id"]: (row["outcome"], minute_of(row["at"])) for row in found} == asked.known, seed
        assert len(found) == len(asked.known)
        outcomes |= {outcome for outcome, _ in asked.known.values()}
    assert len(outcomes) > 1 or question is nothing_at_all


@pytest.mark.parametrize("question", FOR_ONE_AT_A_TIME)
def test_live_on_a_virtual_clock(question: Callable[[random.Random], Question]) -> None:
    for seed in range(3):
        asked = question(random.Random(seed))
        found = live(Rows(asked))
        ends = {op_id: (outcome, minute_of(end)) for op_id, (outcome, end) in found.items()}
        assert ends == asked.known, seed


@pytest.mark.parametrize("question", FOR_ONE_AT_A_TIME)
def test_in_batches_of_a_stream_killed_and_begun_again(question: Callable[[random.Random], Question]) -> None:
    asked = question(random.Random(3))
    found = streamed(Rows(asked), random.Random(3))
    ends = {op_id: (outcome, minute_of(end)) for op_id, (outcome, end) in found.items()}
    assert ends == asked.known


@pytest.mark.slow
def test_on_spark(spark: SparkSession) -> None:
    for question in QUESTIONS:
        asked = question(random.Random(2))
        found = pipeline.resolve(asked.operations, asked.events, **asked.rules).toArrow().to_pylist()
        assert {row["op_id"]: (row["outcome"], minute_of(row["at"])) for row in found} == asked.known, question
