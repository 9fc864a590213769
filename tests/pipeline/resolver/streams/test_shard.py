"""Shards live through micro-batches as the purgatory lives through time: O1-O4, whatever the cuts and the disorder."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest

from abeyant.pipeline.resolver.streams.clock import START
from abeyant.pipeline.resolver.streams.options import Options
from pipeline.resolve_traces import (
    Deadline,
    Event,
    Op,
    Outcomes,
    Trace,
    Watch,
    by_brute_force,
    by_purgatory,
    some_traces,
    variety,
)
from pipeline.resolver.streams.cuts import Batch, Stream, cut, how, run, steps_of
from seeds import seeds, with_slow

MS = 1000


@cache
def traces() -> list[Trace]:
    return some_traces(3000, seed=20261121)


@cache
def ends(deadline: Deadline) -> dict[str, Outcomes]:
    """Brute force's outcomes, which the purgatory's equal (`test_resolve`)."""
    return {f"t{n}": by_brute_force(trace, deadline) for n, trace in enumerate(traces())}


def test_the_traces_hold_what_the_laws_speak_of() -> None:
    seen = variety(traces(), "inclusive")
    assert min(seen.values()) > 100, seen


@pytest.mark.parametrize("disorder_ms", with_slow([0, 1, 6], [0, 1]))
@pytest.mark.parametrize("deadline", ["inclusive", "exclusive"])
def test_o1_to_o4_any_cuts_and_any_order_within_the_lateness(deadline: Deadline, disorder_ms: int) -> None:
    dice = random.Random(disorder_ms)
    batches = cut(traces(), dice, batches=9, disorder_us=disorder_ms * MS)
    stream = run(batches, how(deadline=deadline, lateness=disorder_ms / 1000))
    assert stream.rejected == []
    assert stream.outcomes == ends(deadline)
    assert stream.pending == 0


@pytest.mark.parametrize("number", seeds(40, quick=10))
def test_o1_to_o4_a_row_or_two_a_batch(number: int) -> None:
    trace = traces()[number]
    disorder = random.Random(number).choice([0, 500, 3000])
    batches = cut([trace], random.Random(number), batches=25, disorder_us=disorder)
    stream = run(batches, how(lateness=disorder / 1e6, shards=2))
    assert stream.outcomes == {"t0": by_brute_force(trace, "inclusive")} == {"t0": by_purgatory(trace, "inclusive")}, (
        trace
    )
    assert stream.rejected == []


def test_outcomes_come_as_soon_as_the_watermark_has_passed_them() -> None:
    """And not only with the end: what is final after a batch was given by then."""
    stream = Stream(how())
    for batch in cut(traces(), random.Random(1), batches=9, disorder_us=0)[:-1]:
        stream.take(batch)
        watermark = stream.clock.watermark
        given = {(i, op): end for i, ops in stream.outcomes.items() for op, end in ops.items()}
        assert given == {
            (i, op): end for i, ops in ends("inclusive").items() for op, end in ops.items() if end[1] < watermark
        }


def test_a_batch_that_is_done_again_comes_to_the_same_in_any_order_of_its_rows() -> None:
    batches = cut(traces()[:300], random.Random(3), batches=6, disorder_us=4 * MS)
    once, again = Stream(how(lateness=0.002)), Stream(how(lateness=0.002))
    dice = random.Random(4)
    for batch in batches:
        mixed = Batch(
            dice.sample(batch.operations, len(batch.operations)), dice.sample(batch.events, len(batch.events))
        )
        mixed = Batch(mixed.operations, mixed.events, end=batch.end)
        assert once.take(batch) == again.take(mixed)
    assert _sorted(once.rejected) == _sorted(again.rejected)
    assert once.rejected, "disorder beyond the lateness makes late rows"


def _sorted(rows: list[dict[str, str]]) -> list[tuple[str, ...]]:
    return sorted(tuple(row.values()) for row in rows)


@pytest.mark.slow  # again and again
def test_o4_a_late_row_changes_no_outcome_and_is_rejected() -> None:
    """With less lateness than disorder: brute force over the rows that were not late comes to the same outcomes."""
    batches = cut(traces(), random.Random(5), batches=9, disorder_us=6 * MS)
    stream = Stream(how(lateness=0.001))
    in_time: dict[str, Trace] = {}
    late = 0
    for batch in batches:
        watermark = stream.clock.watermark if stream.states else START
        for instance, op in batch.operations:
            if op.start >= watermark:
                in_time.setdefault(instance, Trace([], [])).operations.append(op)
            else:
                late += 1
        for instance, event in batch.events:
            if event.at >= watermark:
                in_time.setdefault(instance, Trace([], [])).events.append(event)
            else:
                late += 1
        stream.take(batch)
    assert late > 500
    assert len(stream.rejected) == late
    assert {row["reason"].split(" ")[0] for row in stream.rejected} == {"late:"}
    accepted = {instance: trace for instance, trace in in_time.items() if trace.operations}
    assert stream.outcomes == {instance: by_brute_force(trace, "inclusive") for instance, trace in accepted.items()}


OP = Op("op", 10 * MS, 5, (Watch("k", 1),), "all")


def far(at_ms: int) -> Batch:
    """Rows of both tables that only move the clock."""
    return Batch(
        [("clock", Op(f"at {at_ms}", at_ms * MS, 0, (Watch("z", 1),), "all"))], [("clock", Event("z", at_ms * MS, 0))]
    )


def test_a_row_on_the_watermark_is_in_time_and_one_before_is_late() -> None:
    stream = run([far(10)], how())
    assert stream.clock.watermark == 10 * MS
    stream.take(
        Batch([("i", OP), ("i", OP._replace(op_id="before", start=10 * MS - 1))], [("i", Event("k", 10 * MS, 1))])
    )
    stream.take(Batch(end=True))
    assert stream.outcomes["i"] == {"op": ("completed", 10 * MS)}
    (late,) = stream.rejected
    assert late["table"] == "operations"
    assert late["reason"] == (
        "late: start 1970-01-01T00:00:00.009999Z is before the watermark 1970-01-01T00:00:00.010000Z"
    )
    assert late["row"] == (
        '{"instance":"i","op_id":"before","kind":"TEST","start":"1970-01-01T00:00:00.009999Z","timeout_ms":5,'
        '"condition":"all","watches":[{"key":"k","required":1}]}'
    )


def test_o4_a_copy_changes_nothing_and_of_conflicting_rows_the_first_by_start_counts() -> None:
    earlier, longer = OP._replace(start=9 * MS), OP._replace(timeout_ms=9)
    stream = run([Batch([("i", OP), ("i", OP)]), Batch([("i", longer), ("i", earlier)]), Batch([("i", OP)])], how())
    stream.take(Batch(end=True))
    assert stream.outcomes == {"i": {"op": ("expired", 14 * MS)}}
    assert [row["reason"] for row in stream.rejected] == ["duplicate op_id"] * 4


def test_o4_a_copy_of_an_operation_with_several_watches_is_one_row_aside() -> None:
    several = OP._replace(watches=(Watch("k", 1), Watch("j", 1), Watch("k", 2)))
    stream = run([Batch([("i", several)]), Batch([("i", several)])], how())
    assert stream.pending == 3
    stream.take(Batch(end=True))
    assert stream.outcomes == {"i": {"op": ("expired", 15 * MS)}}
    assert len(stream.rejected) == 1


def test_o4_conflicting_rows_on_different_keys_never_lose_an_operation_silently() -> None:
    """The shards of `j` and `h` cannot know of one another; the row that the shard of `k` let go of is rejected."""
    one = OP._replace(watches=(Watch("k", 1), Watch("j", 1)))
    other = OP._replace(watches=(Watch("k", 1), Watch("h", 1)))
    stream = run([Batch([("i", one), ("i", other)]), Batch(end=True)], how(shards=64))
    assert stream.outcomes == {"i": {"op": ("expired", 15 * MS)}}
    assert [row["reason"] for row in stream.rejected] == ["duplicate op_id"]
    assert stream.pending == 0


@pytest.mark.slow  # many cases
def test_a_key_is_one_step_below_the_watermark() -> None:
    stream = Stream(how())
    for at in range(1, 200):
        stream.take(Batch(events=[("i", Event("k", at * MS, at)), ("i", Event("j", at * MS, 200 - at))]))
        stream.take(far(at))
    assert steps_of(stream) <= 2 * 2 + 2
    stream.take(Batch([("i", Op("after", 200 * MS, 1, (Watch("k", 199), Watch("j", 199)), "all"))]))
    stream.take(Batch(end=True))
    assert stream.outcomes["i"] == {"after": ("completed", 200 * MS)}, "what happened long before still counts"


@pytest.mark.slow
def test_state_is_flat_where_operations_come_and_go() -> None:
    sizes = _sizes(how(), lambda at: "the key")
    assert max(sizes[200:]) < 1.2 * max(sizes[50:100])


@pytest.mark.slow
def test_state_is_flat_where_keys_come_and_go_too_if_they_may_be_forgotten() -> None:
    forgetting = _sizes(how(forget_after=0.02), lambda at: f"key {at}")
    assert max(forgetting[200:]) < 1.2 * max(forgetting[50:100])
    remembering = _sizes(how(), lambda at: f"key {at}")
    assert remembering[-1] > remembering[100] + 30 * 199, "which is what it costs to forget nothing"


def _sizes(options: Options, key: Callable[[int], str]) -> list[int]:
    stream, sizes = Stream(options), []
    for at in range(300):
        name = key(at)
        ops = [
            ("i", Op(f"{at}-{n}", at * MS, 5, (Watch(name, 1), Watch("other", 10**6))[: 1 + n % 2], "any"))
            for n in range(6)
        ]
        stream.take(Batch(ops, [("i", Event(name, at * MS, at % 3))]))
        sizes.append(stream.state_bytes)
    assert sum(len(ends) for ends in stream.outcomes.values()) > 1500
    return sizes


def test_a_key_is_not_forgotten_while_anything_waits_for_it_or_happens_on_it() -> None:
    stream = Stream(how(forget_after=0.01))
    stream.take(
        Batch(
            [("i", Op("waits", 2 * MS, 500, (Watch("k", 5),), "all"))],
            [("i", Event("k", 1 * MS, 3)), ("i", Event("h", MS, 3))],
        )
    )
    for at in range(2, 400, 5):
        stream.take(far(at))
        stream.take(Batch(events=[("i", Event("h", at * MS, 1))]))
    stream.take(Batch([("i", Op(key, 400 * MS, 1, (Watch(key, 3),), "all")) for key in ("k", "h", "never")]))
    stream.take(Batch(end=True))
    assert {op: end[0] for op, end in stream.outcomes["i"].items()} == {
        "waits": "expired", "k": "completed", "h": "completed", "never": "expired",
    }  # fmt: skip


def test_a_key_that_was_forgotten_has_no_progress() -> None:
    stream = Stream(how(forget_after=0.01))
    stream.take(Batch(events=[("i", Event("k", MS, 3))]))
    for at in (2, 50):
        stream.take(far(at))
    stream.take(Batch([("i", Op("k", 60 * MS, 1, (Watch("k", 3),), "all"))]))
    stream.take(Batch(end=True))
    assert stream.outcomes["i"] == {"k": ("expired", 61 * MS)}


def test_processing_time_what_arrives_happens_then_and_nothing_is_late() -> None:
    stream = Stream(how(time="processing"))
    assert stream.take(Batch([("i", OP)], wall=100 * MS)) == {}
    assert stream.take(Batch([("i", OP._replace(op_id="second"))], [("i", Event("k", 5, 1))], wall=105 * MS)) == {
        "i": {"op": ("completed", 105 * MS), "second": ("completed", 105 * MS)}
    }
    assert stream.take(Batch([("i", OP._replace(op_id="third", watches=(Watch("h", 1),)))], wall=110 * MS)) == {}
    assert stream.take(Batch(wall=109 * MS)) == {}, "a wall clock that goes back does not take time back"
    assert stream.take(Batch(wall=115 * MS)) == {"i": {"third": ("expired", 115 * MS)}}
    stream.take(Batch(end=True))
    stream.take(Batch([("i", OP)]))
    assert [row["reason"] for row in stream.rejected] == ["late: the input has ended"]


@pytest.mark.parametrize("deadline", ["inclusive", "exclusive"])
def test_the_last_instant_of_all_can_be_a_deadline(deadline: Deadline) -> None:
    last = (1 << 63) - 1
    op = Op("op", last - 2000, 2, (Watch("k", 1),), "all")
    stream = run([Batch([("i", op)], [("i", Event("h", 0, 1))]), Batch(end=True)], how(deadline=deadline))
    assert stream.outcomes == {"i": {"op": ("expired", last)}}
