"""Small tables in which each row shows one thing, or breaks one rule; each case has an instance of its own."""

from __future__ import annotations

import random
from typing import Any

from pipeline.resolve_traces import Event, Op, Watch
from pipeline.trace_rows import event_row, operation_row

LAST = 9_223_372_036_854_775_807
BROKEN: dict[str, dict[str, Any]] = {
    "no instance": {"instance": None},
    "no op_id": {"op_id": None},
    "no start": {"start": None},
    "no timeout_ms": {"timeout_ms": None},
    "timeout_ms is negative": {"timeout_ms": -1},
    "the deadline is beyond the last timestamp": {"timeout_ms": LAST // 1000},
    "no watches": {"watches": []},
    "a watch has no key": {"watches": [{"key": "k", "required": 1}, {"key": None, "required": 1}]},
    "a watch has no required": {"watches": [{"key": "k", "required": None}, {"key": "k", "required": 1}]},
    "condition is none of 'all', 'any' and 'then'": {"condition": "some"},
}


def small_operations() -> list[dict[str, Any]]:
    alone = Op("alone", 5, 7, (Watch("nowhere", 0),), "all")
    op = Op("op", 0, 10, (Watch("k", 1),), "all")
    good = operation_row(Op("good", 0, 10, (Watch("k", 1),), None), "broken")
    twice = op._replace(op_id="twice", start=4)
    broken = [good] + [good | {"op_id": reason} | change for reason, change in BROKEN.items()]
    broken += [good | {"op_id": "null watches", "watches": None}, good | {"op_id": "huge", "timeout_ms": LAST}]
    return [
        operation_row(alone, "alone"),
        *(operation_row(op, instance) for instance in ("a", "b", "ab")),
        operation_row(op._replace(op_id="waits", start=250), "waits") | {"kind": None},
        *(row | {"kind": str(row["op_id"])} for row in broken),
        *(operation_row(op, instance) for op, instance in [(twice, "twice"), (twice, "twice"), (twice, "other")]),
        operation_row(twice._replace(start=2), "twice"),
        operation_row(twice._replace(start=1, timeout_ms=-1), "twice"),  # invalid: it takes nobody's place
        *(operation_row(twice._replace(op_id=f"{n}"), "twice") for n in range(50)),
        *confused_operations(),
    ]


def small_events() -> list[dict[str, Any]]:
    event = event_row(Event("k", 3, 1), "broken")
    return [
        event_row(Event("k", 3, 1), "a"),
        event_row(Event("bk", 4, 1), "a"),
        event_row(Event("k", 1500, 1), "waits"),
        event,
        *(event | {name: None} for name in ("instance", "key", "at", "progress")),
        *(event_row(Event(key, at, at), "confused") for key in "ab" for at in range(0, 12, 3)),
    ]


def confused_operations() -> list[dict[str, Any]]:
    """Many rows of few ids, which differ in any column, or in none."""
    dice = random.Random(7)
    rows = []
    for _ in range(400):
        watches = tuple(
            Watch(dice.choice(["a", "b", "é", "z"]), dice.randrange(3)) for _ in range(dice.choice([1, 1, 2]))
        )
        row = operation_row(
            Op(f"op-{dice.randrange(60)}", dice.randrange(2), dice.randrange(3), watches, None), "confused"
        )
        kinds = dice.choice([None, "A", "B", "a", "Ä"])
        rows.append(row | {"condition": dice.choice(["all", "any", None, "other"]), "kind": kinds})
    return rows
