"""Operations of which no key occurs among the events: a warning with a key of each side, and the mend."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from abeyant import tables

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def operations(keys: Sequence[Any], **more: Any) -> pa.Table:
    ids = [f"o{number}" for number in range(len(keys))]
    times = {"start": [NOON] * len(keys), "timeout_ms": [5] * len(keys)}
    return pa.table({"op_id": ids, "key": keys, **times, **{name: [value] * len(keys) for name, value in more.items()}})


def events(keys: Sequence[Any], **more: Any) -> pa.Table:
    return pa.table(
        {"key": keys, "at": [NOON] * len(keys), **{name: [value] * len(keys) for name, value in more.items()}}
    )


def warned(operations: Any, events: Any, **options: Any) -> list[str]:
    """Return the texts of the warnings, and hold them to name this file."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tables.resolve(operations, events, **options)
    assert all(one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("options", [{}, {"combine": "sum"}], ids=["plain", "timelines"])
@pytest.mark.parametrize(
    ("ours", "theirs", "said"),
    [
        (
            [f"{n:05}" for n in range(12)],
            [*range(5, 9)],
            "key '00005', events have key '5', which differ in zeros in fr",
        ),
        ([f"A-{n}" for n in range(12)], ["a-3"], "key 'A-3', events have key 'a-3', which differ in upper and lower"),
        ([f"{n}" for n in range(12)], [" 7 "], "key '7', events have key ' 7 ', which differ in the spaces around"),
        ([*range(12)], ["7.0"], "key '7', events have key '7.0', which differ in '.0' at the end; make them integers"),
        ([f"ORD/{n}" for n in range(12)], ["ord-04"], "key 'ORD/4', events have key 'ord-04', which differ in how it"),
        ([f"a{n}" for n in range(12)], ["b"], "key 'a0', events have key 'b'; check that both columns have the same"),
    ],
)
def test_no_key_in_common_is_a_warning_with_a_pair_and_the_mend(
    ours: list[Any], theirs: list[Any], said: str, options: dict[str, Any]
) -> None:
    (warning,) = warned(operations(ours), events(theirs), **options)
    expected = "no key of the 12 operations occurs among the events, so all expired: operations have "
    assert warning.startswith(expected + said)


def test_instances_that_are_named_in_two_ways() -> None:
    (warning,) = warned(operations([*"abcdefghij"], instance="EU"), events(["c"], instance="eu"))
    said = "key 'c', events have key 'c', with instance 'EU' in operations and 'eu' in events; name instances alike"
    assert said in warning


def test_the_column_is_the_one_that_the_table_has() -> None:
    plain = operations([*"abcdefghij"])
    watches = [[{"key": key, "required": 1}, {"key": key * 2, "required": 1}] for key in plain["key"].to_pylist()]
    listed = plain.drop_columns("key").append_column("watches", pa.array(watches))
    assert "operations have watches.key 'a', events have key 'A', which" in warned(listed, events(["A"]))[0]
    sessions = plain.rename_columns(["op_id", "extend_key", "start", "timeout_ms"])
    assert "operations have extend_key 'a', events" in warned(sessions, events(["A"]))[0]


@pytest.mark.parametrize("options", [{}, {"combine": "sum"}], ids=["plain", "timelines"])
def test_one_key_in_common_is_enough_and_few_rows_say_nothing(options: dict[str, Any]) -> None:
    late = events(["c"]).set_column(1, "at", pa.array([NOON.replace(year=2027)]))
    assert warned(operations([*"abcdefghij"]), late, **options) == [], "all expire, but one key has an event"
    assert warned(operations([*"abcdefghi"]), events(["z"]), **options) == [], "nine may well wait"
    assert warned(operations([*"abcdefghij"]), events([]), **options) == [], "nothing has happened yet"
    twice = operations([*"abcdefghij"]).append_column("cancel_key", pa.array([None] * 9 + ["z"]))
    assert warned(twice, late.set_column(0, "key", pa.array(["z"])), **options) == [], "a key of another column has"
