"""A shard by all the rules: any cut of a stream into batches, in any order within the lateness, equals brute force."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from abeyant.pipeline.resolver.streams.clock import Mark
from abeyant.pipeline.resolver.streams.options import Options, checked
from abeyant.pipeline.resolver.streams.rules.layout import EVENTS, WAITS, Columns
from abeyant.pipeline.resolver.streams.rules.state import decode_rules, encode_rules
from abeyant.pipeline.resolver.streams.rules.step import RulesState, process_batch
from abeyant.pipeline.resolver.streams.shard import BatchInput
from abeyant.tables.rules import Rules as AllRules
from seeds import seeds, with_slow
from tables.test_rules import HORIZON, Hours
from waits import End, Event, Rules, Wait, Watch, by_brute_force, some_rules, some_waits

World = tuple[list[Wait], list[Event]]
Row = tuple[int, str, Wait | Event]
"""When it arrives, its instance, what it is."""

ANYTHING = Columns(several_keys=True, deadline=False, roles=True, pauses=True)
PLAIN = Columns(several_keys=True, deadline=False, roles=False, pauses=False)


class DayHours(Hours):
    """Hours that a checkpoint can name."""

    def __repr__(self) -> str:
        return f"{self.begins.tolist()} {self.ends.tolist()}"


def options_of(rules: Rules, columns: Columns = ANYTHING, *, details: bool = True, **other: Any) -> Options:
    given = asdict(rules)
    hours = given.pop("hours")
    all_rules = AllRules(**given, calendar=None if hours is None else DayHours(hours), details=details)
    settings: dict[str, Any] = {"lateness": 0.0, "time": "event", "tick": None, "forget_after": None, "shards": 1}
    return dataclasses.replace(checked(all_rules, **settings | other), columns=columns)


@dataclass
class Shard:
    """One that has all instances."""

    options: Options
    state: RulesState = field(default_factory=RulesState.first)
    ends: dict[str, dict[str, End]] = field(default_factory=dict)
    rejected: list[dict[str, Any]] = field(default_factory=list)

    def take(self, rows: Iterable[tuple[str, Wait | Event]] = (), *, end: bool = False, wall: int = 0) -> None:
        """Run a batch; look whether each outcome is given once, and is final."""
        rows = list(rows)
        operations = [operation_row(instance, row) for instance, row in rows if isinstance(row, Wait)]
        events = [{"instance": instance, **row._asdict()} for instance, row in rows if isinstance(row, Event)]
        marks = [Mark("end", 0, 0)] if end else []
        for source, column, some in (("operations", "start", operations), ("events", "at", events)):
            if some:
                times = [row[column] for row in some]
                marks.append(Mark(source, min(times), max(times)))  # type: ignore[arg-type]
        arrived = BatchInput(
            [pa.RecordBatch.from_pylist(operations, WAITS)], [pa.RecordBatch.from_pylist(events, EVENTS)], marks, wall
        )
        after, out = process_batch(self.state, arrived, self.options)
        self.state = decode_rules(*encode_rules(after, self.options), self.options)
        self.rejected += out.rejected.to_pylist()
        at = out.outcomes.column("at").cast(pa.int64()).to_pylist()
        for row, when in zip(out.outcomes.to_pylist(), at, strict=True):
            ends = self.ends.setdefault(row["instance"], {})
            assert row["op_id"] not in ends, f"O4: {row} is a second outcome"
            assert self.state.clock.ended or when < self.state.clock.watermark, f"{row} could still change"
            ends[row["op_id"]] = End(row["outcome"], when, _by(row, "completed"), _by(row, "cancelled"), _counted(row))


def _by(row: dict[str, Any], how: str) -> tuple[str, int] | None:
    by = row.get(f"{how}_by")
    return None if by is None else (by["key"], round(by["at"].timestamp() * 1e6))


def _counted(row: dict[str, Any]) -> int:
    return int(row.get("counted", 0))


def operation_row(instance: str, wait: Wait) -> dict[str, Any]:
    return {
        "instance": instance,
        "op_id": wait.op_id,
        "condition": wait.condition,
        "start": wait.start,
        "deadline": wait.start + wait.timeout,
        "extend": wait.extend,
        "watches": [watch._asdict() for watch in wait.watches],
        "served": 0,
    }


def arriving(worlds: Sequence[World], dice: random.Random, disorder: int) -> list[tuple[str, Wait | Event]]:
    """Rows of all worlds, each at most so much later than its time; those of one time in any order."""
    rows: list[tuple[int, str, Wait | Event]] = []
    for number, (waits, events) in enumerate(worlds):
        rows += [(wait.start, str(number), wait) for wait in waits]
        rows += [(event.at, str(number), event) for event in events]
    mixed = sorted((at + dice.randint(0, disorder), dice.random(), instance, row) for at, instance, row in rows)
    return [(instance, row) for _, _, instance, row in mixed]


def run(worlds: Sequence[World], options: Options, dice: random.Random, disorder: int) -> Shard:
    rows = arriving(worlds, dice, disorder)
    edges = [0, *sorted(dice.randint(0, len(rows)) for _ in range(dice.choice([1, 4, 12, 30]))), len(rows)]
    shard = Shard(options)
    for begin, end in pairwise(edges):
        shard.take(rows[begin:end])
    shard.take(end=True)
    assert shard.rejected == []
    assert shard.state.operations.num_rows == len(shard.state.events) == 0
    return shard


def columns_of(worlds: Sequence[World]) -> Columns:
    roles = {watch.role for waits, _ in worlds for wait in waits for watch in wait.watches}
    return Columns(several_keys=True, deadline=False, roles=bool(roles & {"cancel", "extend"}), pauses="pause" in roles)


@pytest.mark.parametrize("seed", seeds(80, quick=16))
def test_all_rules_equal_brute_force_however_the_stream_is_cut(seed: int) -> None:
    dice = random.Random(seed)
    rules = some_rules(dice)
    plain = seed % 3 == 0
    worlds = [_without_roles(world) if plain else world for world in (some_waits(dice, rules) for _ in range(30))]
    details, disorder = seed % 2 == 0, dice.choice([0, 0, 2, 7])
    options = options_of(rules, columns_of(worlds), details=details, lateness=disorder / 1e6)
    found = run(worlds, options, dice, disorder).ends
    for number, (waits, events) in enumerate(worlds):
        wanted = by_brute_force(waits, events, rules, HORIZON)
        if not details:
            wanted = {op_id: End(end.outcome, end.at, None, None, 0) for op_id, end in wanted.items()}
        assert found[str(number)] == wanted, (rules, waits, events)


def _without_roles(world: World) -> World:
    waits, events = world
    return [
        wait._replace(watches=tuple(watch for watch in wait.watches if watch.role == "complete")) for wait in waits
    ], events


def test_outcomes_are_given_by_the_batch_that_makes_them_final() -> None:
    dice = random.Random(5)
    rules = Rules(serves="oldest", combine="sum")
    worlds = [some_waits(dice, rules) for _ in range(40)]
    ends = {str(n): by_brute_force(waits, events, rules, HORIZON) for n, (waits, events) in enumerate(worlds)}
    shard = Shard(options_of(rules))
    rows = arriving(worlds, dice, 0)
    for begin in range(0, len(rows), 20):
        shard.take(rows[begin : begin + 20])
        watermark = shard.state.clock.watermark
        final = {
            (instance, op_id): end
            for instance, ends_there in ends.items()
            for op_id, end in ends_there.items()
            if end.at is not None and end.at < watermark
        }
        assert {(i, op_id): end for i, there in shard.ends.items() for op_id, end in there.items()} == final
    assert len(final) > 50


# -- what is remembered


def uneventful(rules: Rules, *, columns: Columns = PLAIN, **other: Any) -> tuple[Shard, list[int]]:
    """Run 60 batches of operations that end soon, on one key; return how many events are remembered after each."""
    shard, kept = Shard(options_of(rules, columns, **other)), []
    for at in range(0, 600, 10):
        waits = [Wait(f"{at}-{n}", at + n, 7, (Watch("k", 2),)) for n in range(2)]
        events = [Event("k", at + n, (at + 3 * n) % 7) for n in range(10)]
        shard.take([*(("i", wait) for wait in waits), *(("i", event) for event in events)])
        kept.append(len(shard.state.events))
    return shard, kept


@pytest.mark.parametrize("count", ["from_start", "after_start"])
@pytest.mark.parametrize("combine", with_slow(["max", "sum", "last"], ["max", "last"]))
def test_events_before_every_start_that_waits_go(count: Any, combine: Any) -> None:
    _, kept = uneventful(Rules(count=count, combine=combine))
    assert max(kept) <= 10


@pytest.mark.parametrize("combine", with_slow(["max", "sum", "last"], ["max", "sum"]))
def test_with_count_always_a_key_without_waits_comes_to_one_event(combine: Any) -> None:
    shard, kept = uneventful(Rules(combine=combine), details=False)
    assert max(kept) <= 12
    shard.take([("i", Wait("far", 10_000, 0, (Watch("z", 1),))), ("i", Event("z", 10_000, 0))])
    assert len(shard.state.events) == 2


@pytest.mark.parametrize("combine", with_slow(["max", "last"], ["max"]))
def test_with_details_what_is_remembered_of_the_past_is_since_when_not_every_event(combine: Any) -> None:
    _, kept = uneventful(Rules(combine=combine), details=True)
    assert max(kept) <= 10 + 7  # levels


@pytest.mark.slow  # again and again
def test_an_operation_that_waits_for_long_keeps_the_events_after_its_start_only() -> None:
    shard = Shard(options_of(Rules(count="after_start", combine="sum"), columns=PLAIN))
    shard.take([("i", Wait("long", 100, 10_000, (Watch("k", 10**6),))), ("i", Event("k", 150, 1))])
    for at in range(200, 300):
        shard.take([("i", Event("k", at, 1)), ("i", Event("other", at, 1)), ("i", Wait(f"{at}", at, 0, ()))])
    events = shard.state.events
    assert (events[:, 3] < 299).sum() == 100, "those of the key that is waited for"


@pytest.mark.parametrize("count", ["always", "after_start"])
def test_an_event_that_has_served_goes_and_one_that_nobody_took_stays_if_it_may_serve(count: Any) -> None:
    shard = Shard(options_of(Rules(serves="oldest", count=count), columns=PLAIN))
    for at in range(0, 500, 10):
        events = Event("k", at + 1, 1), Event("k", at + 2, 1 if at == 100 else 0)
        shard.take([("i", Wait(f"{at}", at, 5, (Watch("k", 1),))), *(("i", event) for event in events)])
    waiting = [row for row in shard.state.events.tolist() if row[3] < shard.state.clock.watermark]
    assert {row["op_id"] for row in shard.state.operations.to_pylist()} == {"490"}
    # 48 were too small for everybody. Since one came too many, each operation finds one of before its start.
    assert len(waiting) == (49 if count == "always" else 0)
    assert all(end.outcome == "completed" for end in shard.ends["i"].values())


def test_keys_on_which_nothing_happens_are_forgotten_if_they_may_be() -> None:
    def events_after(forget_after: float | None) -> int:
        shard = Shard(options_of(Rules(combine="sum"), details=False, forget_after=forget_after, columns=ANYTHING))
        for at in range(90):
            shard.take([("i", Event(f"{at}", at, 1)), ("i", Wait(f"{at}", at, 0, (Watch("z", 1),)))])
        return len({tuple(row[:2]) for row in shard.state.events.tolist()})

    assert events_after(20 / 1e6) < 30
    assert events_after(None) == 90


def test_a_key_is_not_forgotten_while_it_is_waited_for_or_anything_happens_on_it() -> None:
    shard = Shard(
        options_of(Rules(combine="max", holds="at_deadline"), details=True, forget_after=10 / 1e6, columns=PLAIN)
    )
    shard.take(
        [("i", Wait("waits", 2, 500, (Watch("k", 3),))), *(("i", Event(key, 1, 3)) for key in ("k", "h", "gone"))]
    )
    for at in range(3, 400, 4):
        shard.take([("i", Event("h", at, 0)), ("i", Wait(f"{at}", at, 0, (Watch("z", 1),)))])
    shard.take([("i", Wait(key, 400, 1, (Watch(key, 3),))) for key in ("h", "gone")])
    shard.take(end=True)
    ends = shard.ends["i"]
    assert {op_id: ends[op_id].outcome for op_id in ("waits", "h", "gone")} == {
        "waits": "completed", "h": "completed", "gone": "expired",
    }  # fmt: skip


# -- rows that are rejected, and the time of processing


def test_late_rows_and_copies_are_rejected_and_change_nothing() -> None:
    wait = Wait("op", 10, 5_000, (Watch("k", 1), Watch("x", 1, "cancel")), "any", 2)
    shard = Shard(options_of(Rules(count="after_start")))
    shard.take([("i", wait), ("i", wait), ("i", Event("z", 10, 1))])
    shard.take([("i", Event("k", 20, 1)), ("i", wait._replace(op_id="late", start=9)), ("i", Event("x", 9, 1))])
    shard.take(end=True)
    assert shard.ends == {"i": {"op": End("completed", 20, ("k", 20), None, 1)}}
    assert [row["reason"].split(" is ")[0] for row in shard.rejected] == [
        "duplicate op_id",
        "late: start 1970-01-01T00:00:00.000009Z",
        "late: at 1970-01-01T00:00:00.000009Z",
    ]
    assert shard.rejected[1]["row"] == (
        '{"instance":"i","op_id":"late","kind":null,"start":"1970-01-01T00:00:00.000009Z","timeout_ms":5,'
        '"extend_ms":0.002,"condition":"any","watches":[{"key":"k","required":1,"role":"complete"},'
        '{"key":"x","required":1,"role":"cancel"}]}'
    )


def test_in_processing_time_what_arrives_happens_then_and_an_instant_stays_where_it_is() -> None:
    wait = Wait("op", 3, 50, (Watch("k", 1),))
    for columns, end in ((PLAIN, 150), (dataclasses.replace(PLAIN, deadline=True), 100)):
        shard = Shard(options_of(Rules(count="after_start"), time="processing", columns=columns))
        shard.take([("i", wait), ("i", Event("k", 7, 1))], wall=100)  # an instant that is over by then: at once
        shard.take(wall=120)
        shard.take([("i", wait._replace(op_id="second")), ("i", Event("z", 7, 1))], wall=130)
        shard.take([("i", Event("k", 7, 1))], wall=160)
        shard.take(end=True, wall=500)
        assert shard.ends["i"]["op"][:2] == ("expired", end)
        assert shard.ends["i"]["second"][:2] == (("completed", 160) if end == 150 else ("expired", 130))
