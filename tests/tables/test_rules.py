"""Every rule of `tables.resolve` beside brute force, over worlds so small that all instants meet."""

from __future__ import annotations

import random
from dataclasses import asdict
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from abeyant import tables
from abeyant.errors import SchemaError
from abeyant.tables import parts, sharded_timelines
from abeyant.tables.calendar import Calendar
from abeyant.tables.durations import parse_duration
from seeds import seeds
from waits import End, Event, Rules, Wait, Watch, by_brute_force, some_rules, some_waits

TIME = pa.timestamp("us", "UTC")
WATCHES = pa.list_(pa.struct([("key", pa.string()), ("required", pa.int64()), ("role", pa.string())]))
HORIZON = 400


class Hours(Calendar):
    """A calendar of any spans, in microseconds."""

    def __init__(self, spans: tuple[tuple[int, int], ...]) -> None:
        self.begins, self.ends = (np.array(column, np.int64) for column in zip(*spans, strict=True))
        self.before = np.concatenate(([0], np.cumsum(self.ends - self.begins)))

    def elapsed(self, times: Any) -> Any:
        inside = np.clip(np.asarray(times)[:, None], self.begins, self.ends) - self.begins
        return inside.sum(axis=1)

    def due(self, starts: Any, readings: Any) -> Any:
        never = (1 << 63) - 1
        found = []
        for start, reading in zip(starts.tolist(), readings.tolist(), strict=True):
            at = start
            while reading != never and self.elapsed(np.array([at]))[0] < reading:
                at += 1
            found.append(never if reading == never else at)
        return np.array(found, np.int64)


def operations_of(waits: list[Wait], instance: str) -> list[dict[str, Any]]:
    return [
        {
            "instance": instance,
            "op_id": wait.op_id,
            "start": wait.start,
            "timeout": wait.timeout,
            "extend": wait.extend,
            "watches": [watch._asdict() for watch in wait.watches],
            "condition": wait.condition,
        }
        for wait in waits
    ]


OPERATIONS = pa.schema(
    [
        ("instance", pa.string()),
        ("op_id", pa.string()),
        ("start", TIME),
        ("timeout", pa.duration("us")),
        ("extend", pa.duration("us")),
        ("watches", WATCHES),
        ("condition", pa.string()),
    ]
)
EVENTS = pa.schema([("instance", pa.string()), ("key", pa.string()), ("at", TIME), ("progress", pa.int64())])


def by_tables(worlds: list[tuple[list[Wait], list[Event]]], rules: Rules, **settings: Any) -> list[dict[str, End]]:
    """Resolve all worlds at once, each an instance of its own, in the order of chance."""
    dice = random.Random(7)
    operations = [row for n, (waits, _) in enumerate(worlds) for row in operations_of(waits, str(n))]
    events = [{"instance": str(n), **event._asdict()} for n, (_, events) in enumerate(worlds) for event in events]
    dice.shuffle(operations)
    dice.shuffle(events)
    given = asdict(rules)
    hours = given.pop("hours")
    found = tables.resolve(
        pa.Table.from_pylist(operations, OPERATIONS),
        pa.Table.from_pylist(events, EVENTS),
        **given,
        calendar=None if hours is None else Hours(hours),
        details=True,
        **settings,
    )
    ends: list[dict[str, End]] = [{} for _ in worlds]
    micros = {
        name: found[name].combine_chunks().field("at").cast(pa.int64()).to_pylist()
        for name in ("completed_by", "cancelled_by")
    }
    at = found["at"].cast(pa.int64()).to_pylist()
    for place, row in enumerate(found.to_pylist()):
        by = {
            name: None if row[name] is None else (row[name]["key"], micros[name][place])
            for name in ("completed_by", "cancelled_by")
        }
        ends[int(row["instance"])][row["op_id"]] = End(
            row["outcome"], at[place], by["completed_by"], by["cancelled_by"], row["counted"]
        )
    return ends


@pytest.mark.parametrize("seed", seeds(60, quick=12))
def test_all_rules_equal_brute_force(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    if seed % 3 == 1:  # as large tables: keys in shards, operations in parts
        monkeypatch.setattr(sharded_timelines, "_FEW", -1)
        monkeypatch.setattr(parts, "_ROWS", 1 + seed % 5)
    dice = random.Random(seed)
    rules = some_rules(dice)
    worlds = [some_waits(dice, rules) for _ in range(40)]
    found = by_tables(worlds, rules, threads=1 + seed % 2)
    for (waits, events), ends in zip(worlds, found, strict=True):
        assert ends == by_brute_force(waits, events, rules, HORIZON), (rules, waits, events)


def test_worlds_hold_every_outcome_and_detail() -> None:
    """That the comparison above has seen what it is about."""
    dice = random.Random(1)
    seen: set[str] = set()
    for _ in range(100):
        rules = some_rules(dice)
        waits, events = some_waits(dice, rules)
        for op_id, end in by_brute_force(waits, events, rules, HORIZON).items():
            start = next(wait.start for wait in waits if wait.op_id == op_id)
            seen.add(end.outcome)
            seen |= {f"{name} before the start" for name, by in end._asdict().items() if _earlier(by, start)}
            seen |= {"several counted"} if end.counted > 1 else set()
    assert seen >= {"completed", "cancelled", "expired", "pending", "several counted"}
    assert seen >= {"completed_by before the start", "cancelled_by before the start"}


def _earlier(by: Any, start: int) -> bool:
    return isinstance(by, tuple) and by[1] < start


def test_many_keys_are_looked_up_in_shards_as_few_are() -> None:
    dice = random.Random(11)
    rules = Rules(count="after_start", combine="sum")
    worlds = [some_waits(dice, rules) for _ in range(8000)]
    assert sum(len(events) for _, events in worlds) > 1 << 15
    far = [{"instance": "far", "key": f"{n}", "at": n, "progress": 1} for n in range(1 << 16)]  # above one shard
    few = by_tables(worlds[:50], rules)
    operations = [row for n, (waits, _) in enumerate(worlds[:50]) for row in operations_of(waits, str(n))]
    events = [{"instance": str(n), **event._asdict()} for n, (_, some) in enumerate(worlds[:50]) for event in some]
    found = tables.resolve(
        pa.Table.from_pylist(operations, OPERATIONS),
        pa.Table.from_pylist(events + far, EVENTS),
        count="after_start",
        combine="sum",
    ).to_pylist()
    assert {(row["instance"], row["op_id"]): row["outcome"] for row in found} == {
        (str(n), op_id): end.outcome for n, ends in enumerate(few) for op_id, end in ends.items()
    }


# -- columns and their defaults ---------------------------------------------------------------------------------------

MINUTE = 60_000_000


def operations(*rows: dict[str, Any], **kinds: pa.DataType) -> pa.Table:
    names = {name for row in rows for name in row}
    every = {"op_id": pa.string(), "key": pa.string(), "start": TIME, "required": pa.int64(), **kinds}
    return pa.Table.from_pylist(list(rows), pa.schema([(name, every.get(name, pa.string())) for name in sorted(names)]))


def events(*rows: tuple[str, int] | tuple[str, int, int]) -> pa.Table:
    return pa.Table.from_pylist(
        [{"key": row[0], "at": row[1], "progress": row[2] if len(row) > 2 else 1} for row in rows],
        pa.schema([("key", pa.string()), ("at", TIME), ("progress", pa.int64())]),
    )


def outcomes(table: pa.Table) -> list[tuple[str, int | None]]:
    return list(zip(table["outcome"].to_pylist(), table["at"].cast(pa.int64()).to_pylist(), strict=True))


def test_cancel_extend_and_pause_have_columns_of_their_own() -> None:
    ops = operations(
        {"op_id": "died", "key": "organ/1", "cancel_key": "died/1", "start": 0, "timeout": "1 h"},
        {"op_id": "browses", "key": "buys/2", "extend_key": "click/2", "start": 0, "timeout": "30 min"},
        {"op_id": "on hold", "key": "answer/3", "pause_key": "hold/3", "start": 0, "timeout": "1 hour 30 minutes"},
    )
    found = tables.resolve(
        ops,
        events(
            ("died/1", 5 * MINUTE),
            ("organ/1", 6 * MINUTE),
            ("click/2", 20 * MINUTE),
            ("click/2", 45 * MINUTE),
            ("hold/3", 10 * MINUTE),
            ("hold/3", 70 * MINUTE, 0),
        ),
        details=True,
    )
    assert outcomes(found) == [("cancelled", 5 * MINUTE), ("expired", 75 * MINUTE), ("expired", 150 * MINUTE)]
    assert found["counted"].to_pylist() == [0, 2, 0]
    assert found["cancelled_by"][0].as_py()["key"] == "died/1"


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ({"timeout": "1.5 min"}, {}),
        ({"timeout": "PT1M30S"}, {}),
        ({"timeout": "0 days 00:01:30.000000"}, {}),  # as pandas prints a Timedelta, into a CSV file too
        ({"timeout": pa.MonthDayNano([0, 0, 90_000_000_999])}, {"timeout": pa.month_day_nano_interval()}),
        ({"timeout": 90_000}, {"timeout": pa.duration("ms")}),
        ({"timeout": 90_000_000_000}, {"timeout": pa.duration("ns")}),
        ({"timeout_ms": 90_000}, {"timeout_ms": pa.int32()}),
        ({"deadline": 100_000_000}, {"deadline": TIME}),
        ({"timeout_ms": 90_000, "timeout": "no duration", "deadline": 0}, {"timeout_ms": pa.int64(), "deadline": TIME}),
    ],
)
def test_three_columns_say_how_long(column: dict[str, Any], kind: dict[str, pa.DataType]) -> None:
    """`timeout_ms` goes first: the others were further columns of people's tables before they had a meaning."""
    ops = operations({"op_id": "a", "key": "k", "start": 10_000_000, **column}, **kind)
    assert outcomes(tables.resolve(ops, events(("k", 100_000_001)))) == [("expired", 100_000_000)]
    assert outcomes(tables.resolve(ops, events(("k", 100_000_000)))) == [("completed", 100_000_000)]


def test_rows_without_a_duration_are_rejected_with_their_reason() -> None:
    ops = operations(
        {"op_id": "a", "key": "k", "start": 0, "timeout": "soon"},
        {"op_id": "b", "key": "k", "start": 0, "timeout": None},
        {"op_id": "c", "key": "k", "start": 0, "timeout": "3 fortnights"},
        {"op_id": "d", "key": "k", "start": 0, "timeout": "2 days"},
    )
    rejected = tables.rejected_operations(ops)
    assert rejected["reason"].to_pylist() == [
        "timeout is not a duration such as '15 min': soon",
        "no timeout",
        "timeout is not a duration such as '15 min': 3 fortnights",
    ]
    assert outcomes(tables.resolve(ops, events())) == [("expired", 2 * 24 * 60 * MINUTE)]
    late = operations({"op_id": "a", "key": "k", "start": 5, "deadline": 4}, deadline=TIME)
    assert tables.rejected_operations(late)["reason"].to_pylist() == ["deadline is before start"]


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("P1DT2H", 26 * 60), ("P2W", 14 * 24 * 60), ("PT1.5H", 90), ("pt0,5m", 0.5), ("0:15:00", 15),
        ("100:00:30", 6000.5),
        ("1 day, 2:00:00", 26 * 60), ("2 days 00:00:30", 2880.5), ("P", None), ("PT", None), ("P1M", None),
        ("P1Y", None),
        ("P1DT", None), ("0:15", None), ("0:61:00", None), ("-PT5M", None), ("P1D2H", None), ("1 month", None),
    ],
)  # fmt: skip
def test_durations_may_be_written_as_iso_8601_and_as_python_and_sql_print_them(
    text: str, minutes: float | None
) -> None:
    assert parse_duration(text) == (None if minutes is None else minutes * MINUTE)


def test_intervals_of_a_database_have_days_and_no_months() -> None:
    intervals = [pa.MonthDayNano(parts) for parts in ([0, 1, 60_000_000_000], [1, 0, 0], [0, 0, -1])]
    rows = [{"op_id": f"{n}", "key": "k", "start": 0, "timeout": value} for n, value in enumerate([*intervals, None])]
    ops = operations(*rows, timeout=pa.month_day_nano_interval())
    assert outcomes(tables.resolve(ops, events())) == [("expired", 24 * 60 * MINUTE + MINUTE)]
    assert outcomes(tables.resolve(ops.slice(1), events())) == []
    assert tables.rejected_operations(ops)["reason"].to_pylist() == [
        "timeout has months, whose length varies: give days, or a column deadline",
        "timeout is negative",
        "no timeout",
    ]


def test_a_session_needs_no_key_that_completes_it() -> None:
    """`extend_key` alone, as a list of watches without one that completes: each ends by its deadline."""
    ops = operations(
        {"op_id": "long", "extend_key": "click/1", "start": 0, "timeout": "30 min"},
        {"op_id": "short", "extend_key": "click/2", "start": 0, "timeout": "30 min"},
        {"op_id": "none", "extend_key": None, "start": 0, "timeout": "30 min"},
    )
    clicks = events(("click/1", 20 * MINUTE), ("click/1", 50 * MINUTE), ("click/2", 31 * MINUTE))
    found = tables.resolve(ops, clicks, details=True)
    assert outcomes(found) == [("expired", 80 * MINUTE), ("expired", 30 * MINUTE)]
    assert found["counted"].to_pylist() == [2, 0]
    assert tables.rejected_operations(ops)["reason"].to_pylist() == ["a watch has no key"]
    both = operations({"op_id": "a", "extend_key": "k", "cancel_key": "c", "start": 0, "timeout": "30 min"})
    assert outcomes(tables.resolve(both, events(("k", MINUTE), ("c", 2 * MINUTE)))) == [("cancelled", 2 * MINUTE)]
    paused = operations({"op_id": "a", "pause_key": "k", "start": 0, "timeout": "30 min"})
    assert outcomes(tables.resolve(paused, events(("k", 9 * MINUTE), ("k", 10 * MINUTE, 0)))) == [
        ("expired", 31 * MINUTE)
    ]


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ("start", pa.date32(), "expected a timestamp: a date has no time of day; cast it to a timestamp, such as its"),
        ("deadline", pa.date32(), "such as the end of that day, which is the next day's midnight"),
        (
            "key",
            pa.binary(16),
            r"expected text: write bytes as text, such as lower\(hex\(key\)\) in SQL, .map\(bytes.hex,",
        ),
        (
            "key",
            pa.decimal128(5, 2),
            r"expected text: cast it to text: CAST\(key AS VARCHAR\) in SQL, .astype\('string'\)",
        ),
        ("key", pa.bool_(), "expected text: cast it to text"),
        ("key", pa.float64(), "expected text: pandas turns integers with missing values into floats"),
        ("required", pa.string(), "expected an integer: convert it, for instance with pandas.to_numeric"),
        ("required", pa.bool_(), "expected an integer: cast it to integers"),
        ("start", pa.string(), "expected a timestamp: parse the texts first"),
        ("start", pa.int64(), "expected a timestamp: a number has no unit; cast it"),
        ("timeout", pa.int64(), "text: a number has no unit; name the column timeout_ms if it is milliseconds"),
        ("timeout_ms", pa.duration("s"), "an integer: name the column timeout if it has durations"),
        ("extend_ms", pa.string(), "an integer: name the column extend if it has durations, or texts"),
    ],
)
def test_columns_of_another_type_are_refused_with_what_to_do(column: str, kind: pa.DataType, message: str) -> None:
    rows = {"op_id": pa.string(), "key": pa.string(), "start": TIME, "timeout": pa.string(), column: kind}
    if column in ("timeout_ms", "deadline"):
        del rows["timeout"]
    with pytest.raises(SchemaError, match=message):
        tables.resolve(pa.schema(list(rows.items())).empty_table(), events())


@pytest.mark.parametrize("rows", [0, 1])
def test_a_deadline_beside_a_calendar_or_pauses_is_refused_with_and_without_rows(rows: int) -> None:
    some = operations({"op_id": "a", "key": "k", "start": 0, "deadline": 4}, deadline=TIME).slice(0, rows)
    with pytest.raises(SchemaError, match="operations: a deadline cannot be combined with a calendar"):
        tables.resolve(some, events(), calendar=tables.Calendar("Mon 09:00-10:00"))
    with pytest.raises(SchemaError, match="operations: a deadline cannot be combined with a calendar"):
        tables.resolve(some.append_column("pause_key", pa.nulls(rows, pa.string())), events())
    limited = some.append_column("timeout_ms", pa.array([1] * rows, pa.int64()))  # the deadline is not read
    assert tables.resolve(limited, events(), calendar=tables.Calendar("Mon 09:00-10:00")).num_rows == rows


def test_an_extension_that_is_no_duration_is_rejected() -> None:
    ops = operations({"op_id": "a", "key": "k", "extend_key": "k", "start": 0, "timeout": "1 s", "extend": "a while"})
    assert tables.rejected_operations(ops)["reason"].to_pylist() == [
        "extend is not a duration such as '15 min': a while"
    ]
    assert not tables.resolve(ops, events()).num_rows


def test_watches_with_a_role_that_cannot_be_are_rejected() -> None:
    rows = [
        Wait("unknown", 0, 5, (Watch("k", 1, "finish"),)),  # type: ignore[arg-type]
        Wait("two", 0, 5, (Watch("k", 1), Watch("p", 1, "pause"), Watch("q", 1, "pause"))),
    ]
    table = pa.Table.from_pylist(operations_of(rows, ""), OPERATIONS).drop_columns("instance")
    reasons = ["a watch has an unknown role", "several watches pause it"]
    assert tables.rejected_operations(table)["reason"].to_pylist() == reasons
    assert not tables.resolve(table, events()).num_rows


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"count": "later"}, "count must be 'always', 'from_start' or 'after_start', not 'later'"),
        ({"serves": "oldest", "combine": "last"}, "serves='oldest' and combine='last' exclude each other"),
        ({"serves": "newest", "holds": "at_deadline"}, "serves='newest' and holds='at_deadline' exclude each other"),
    ],
)
def test_rules_that_contradict_each_other_are_refused(rules: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tables.resolve(operations({"op_id": "a", "key": "k", "start": 0, "timeout": "1 s"}), events(), **rules)


def test_details_is_true_or_false() -> None:
    with pytest.raises(TypeError, match="details must be True or False, not 'yes'"):
        tables.resolve(operations(), events(), details="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wait", "rules", "message"),
    [
        (Wait("x", 0, 5, (Watch("a", 1), Watch("b", 1))), {"serves": "oldest"}, "'x' has several watches"),
        (Wait("x", 0, 5, (Watch("a", 1),), "then"), {"holds": "at_deadline"}, "'x' has condition 'then'"),
        (
            Wait("x", 0, 5, (Watch("a", 1), Watch("b", 1, "extend")), "then"),
            {"within": "step"},
            "'x' has condition 'then' and a watch with role 'extend'",
        ),
    ],
)
def test_watches_that_contradict_the_rules_are_refused(wait: Wait, rules: Any, message: str) -> None:
    table = pa.Table.from_pylist(operations_of([wait], ""), OPERATIONS).drop_columns("instance")
    with pytest.raises(SchemaError, match=message):
        tables.resolve(table, events(), **rules)


def test_sums_beyond_64_bits_stay_at_the_greatest() -> None:
    ops = operations({"op_id": "a", "key": "k", "start": 0, "timeout": "1 s", "required": 2**63 - 1})
    many = events(("k", 1, 2**62), ("k", 2, 2**62), ("k", 3, 2**62))
    assert outcomes(tables.resolve(ops, many, combine="sum")) == [("completed", 2)]


def test_business_hours_in_a_zone_with_its_clock_changes_and_holidays() -> None:
    def micros(month: int, day: int, hour: int, minute: int = 0) -> int:
        return int(datetime(2026, month, day, hour, minute, tzinfo=UTC).timestamp()) * 1_000_000

    office = tables.Calendar("Mon-Fri 09:00-17:00", zone="Europe/Berlin", holidays={date(2026, 4, 3)})
    ops = operations(  # Thursday 16:30 in Berlin; Good Friday is none, Monday begins at 09:00
        {"op_id": "ticket", "key": "k", "start": micros(4, 2, 14, 30), "timeout": "8 h"},
        {"op_id": "at once", "key": "k", "start": micros(4, 4, 12), "timeout": "0 s"},
    )
    found = tables.resolve(ops, events(), calendar=office)
    assert [at for _, at in outcomes(found)] == [micros(4, 6, 14, 30), micros(4, 4, 12)]
    night = tables.Calendar("Sat 22:00-06:00", zone="Europe/Berlin")  # in which an hour is skipped: 7 h
    ops = operations({"op_id": "shift", "key": "k", "start": micros(3, 28, 12), "timeout": "7 h"})
    assert outcomes(tables.resolve(ops, events(), calendar=night)) == [("expired", micros(3, 29, 4))]


def test_equal_calendars_have_one_text_for_a_checkpoint_to_compare() -> None:
    class EveryDay:
        def __contains__(self, day: object) -> bool:
            return True

    one, other = ([date(2026, 4, 3), date(2026, 1, 1)], {date(2026, 1, 1), date(2026, 4, 3)})
    texts = {repr(tables.Calendar("Mon 09:00-17:00", holidays=days)) for days in (one, other)}
    assert texts == {"Calendar('Mon 09:00-17:00', zone='UTC', holidays=['2026-01-01', '2026-04-03'])"}
    assert repr(tables.Calendar("Mon 09:00-17:00", holidays=EveryDay())).endswith("EveryDay)")


@pytest.mark.parametrize(
    ("hours", "message"),
    [
        ("Mon-Fri", "hours must look like"),
        ("Mon-Fri 09:00-12:00, 13:00-17:00", "not '13:00-17:00': write the days in front of all hours"),
        ("Someday 09:00-17:00", "hours must look like"),
        ("Mon 09:00-25:00", "25:00 is not a time of day"),
        ("Mon 09:00-17:00, Mon 16:00-18:00", "hours overlap"),
        ("Sun 22:00-09:01, Mon 09:00-10:00", "hours overlap"),
    ],
)
def test_hours_that_cannot_be_are_refused(hours: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tables.Calendar(hours)
    with pytest.raises(ValueError, match="zone must be a name"):
        tables.Calendar("Mon 09:00-17:00", zone="Nowhere/There")


def test_a_calendar_that_is_never_open_is_refused() -> None:
    class EveryDay:
        def __contains__(self, day: object) -> bool:
            return True

    never = tables.Calendar("Mon 09:00-17:00", holidays=EveryDay())
    with pytest.raises(ValueError, match=r"calendar: nothing is open in the .* days before"):
        tables.resolve(operations({"op_id": "a", "key": "k", "start": 0, "timeout": "1 s"}), events(), calendar=never)
