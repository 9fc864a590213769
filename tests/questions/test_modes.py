"""The questions of docs/questions.md in every other way: live, in batches of a stream, and as streams of the command.

Live is `Resolver` on a virtual clock. A shard of a stream takes the rows in any order within the lateness, is killed
and begun again from its checkpoint, and does its batch once more.
"""

from __future__ import annotations

import dataclasses
import random
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from abeyant import Resolution, Resolver, Watch, cli
from abeyant.pipeline.resolver.streams.clock import Mark
from abeyant.pipeline.resolver.streams.options import Options, checked
from abeyant.pipeline.resolver.streams.rules import stages
from abeyant.pipeline.resolver.streams.rules.layout import EVENTS, Columns
from abeyant.pipeline.resolver.streams.rules.state import decode_rules, encode_rules
from abeyant.pipeline.resolver.streams.rules.step import RulesState, process_batch
from abeyant.pipeline.resolver.streams.shard import BatchInput
from abeyant.tables.normalizing import normalize
from abeyant.tables.reading import table_of
from abeyant.tables.rules import ALL_CONDITIONS, Rules
from abeyant.tables.schemas import EVENTS as EVENT_COLUMNS
from abeyant.tables.schemas import OPERATIONS as OPERATION_COLUMNS
from abeyant.tables.validity import read_operations, valid_events
from abeyant.timer import ManualTimer
from questions.oracles import ORACLES, Ends
from questions.test_questions import COMMANDS, few, folder, pytestmark, read
from scripts.draw_questions import run

__all__ = ["Rows", "few", "folder", "live", "pytestmark", "streamed"]

LATENESS = timedelta(hours=2)


@pytest.fixture(params=ORACLES)
def question(request: pytest.FixtureRequest, few: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(few)
    return str(request.param)


class Rows:
    """What a question hands to `resolve` (`operations`, `events`, `rules`): its valid rows, with all columns needed."""

    def __init__(self, asked: Any) -> None:
        self.rules = asked.rules
        given = table_of(asked.operations, OPERATION_COLUMNS, "operations").combine_chunks().to_batches()[0]
        normalized = pa.Table.from_batches([normalize(given, OPERATION_COLUMNS)])
        self.operations = given.filter(pa.array(read_operations(normalized, ALL_CONDITIONS).valid))
        given = table_of(asked.events, EVENT_COLUMNS, "events").combine_chunks().to_batches()[0]
        self.events = valid_events(pa.Table.from_batches([normalize(given, EVENT_COLUMNS)]))
        columns = self.operations.schema.names
        self.columns = Columns(
            several_keys=True,
            deadline="deadline" in columns,
            roles=not {"cancel_key", "extend_key"}.isdisjoint(columns),
            pauses="pause_key" in columns,
        )

    def event_rows(self) -> pa.RecordBatch:
        at = self.events["at"].cast(pa.timestamp("us")).cast(pa.int64())
        columns = [self.events["instance"], self.events["key"], self.events["progress"], at]
        table = pa.table([column.combine_chunks() for column in columns], EVENTS.names).cast(EVENTS)
        return table.combine_chunks().to_batches()[0]


def ends_of(rows: Iterator[tuple[str, str, int]]) -> Ends:
    ends: Ends = {}
    for op_id, outcome, at in rows:
        assert op_id not in ends
        ends[op_id] = (outcome, datetime.fromtimestamp(at / 1e6, UTC))
    return ends


# -- live


def test_live_on_a_virtual_clock(question: str) -> None:
    assert live(Rows(run(question))) == ORACLES[question](read)


def live(rows: Rows) -> dict[str, tuple[str, datetime | None]]:
    """Return how each operation ends, and when, in a `Resolver` on a virtual clock."""
    waits, happened = waits_of(rows), rows.event_rows().to_pylist()
    fed: list[tuple[int, str, Any]] = [(event["at"], "", event) for event in happened]
    fed += [(start, op_id, (start, op_id, *more)) for start, op_id, *more in waits]
    ended: list[tuple[str, str, int]] = []

    def note(end: Resolution) -> None:
        assert end.at is not None
        ended.append((str(end.op_id), end.outcome, round(end.at * 1e6) + zero))

    zero = 0 if "calendar" in rows.rules else min(at for at, *_ in fed)  # some were before 1970
    with ManualTimer() as timer:
        resolver = Resolver(timer, **rows.rules)
        for at, some in groupby(sorted(fed, key=lambda one: one[:2]), key=lambda one: one[0]):
            timer.advance_to((at - zero) / 1e6)
            with resolver.instant() as now:
                for _, op_id, one in some:
                    if not op_id:
                        now.event(one["key"], one["progress"])
                        continue
                    start, _, deadline, condition, watches, extend = one
                    instant = rows.columns.deadline
                    until = {"deadline": (deadline - zero) / 1e6} if instant else {"timeout": (deadline - start) / 1e6}
                    now.start(op_id, watches, **until, condition=condition, extend=extend, on_end=note)
        timer.advance(400 * 86400)
        never = {str(end.op_id): ("pending", None) for end in resolver.close()}
    return {**ends_of(iter(ended)), **never}


def waits_of(rows: Rows) -> list[tuple[Any, ...]]:
    """Return start, op_id, deadline, condition, watches and extension in seconds of each operation."""
    batch = stream_rows(rows, checked_options(rows))
    return [
        (
            row["start"],
            row["op_id"],
            row["deadline"],
            row["condition"] or "all",
            [Watch(watch["key"], watch["required"], watch["role"]) for watch in row["watches"]],
            row["extend"] and row["extend"] / 1e6,
        )
        for row in batch.to_pylist()
    ]


# -- a shard of a stream


def checked_options(rows: Rows) -> Options:
    settings: dict[str, Any] = {"time": "event", "tick": None, "forget_after": None, "shards": 1}
    options = checked(Rules(**rows.rules), lateness=LATENESS, **settings)
    return dataclasses.replace(options, columns=rows.columns)


def stream_rows(rows: Rows, options: Options) -> pa.RecordBatch:
    places = pa.array(np.zeros(rows.operations.num_rows, np.int64))
    found = stages.read_operations(rows.operations.append_column("place", places), options)
    assert found.rejected.num_rows == 0
    return found.rows


def test_in_batches_of_a_stream_killed_and_begun_again(question: str) -> None:
    assert streamed(Rows(run(question)), random.Random(question)) == ORACLES[question](read)


def streamed(rows: Rows, dice: random.Random) -> dict[str, tuple[str, datetime | None]]:
    """Return how each operation ends, and when, in batches of rows that arrive as `dice` says."""
    options = checked_options(rows)
    tables = {"operations": stream_rows(rows, options), "events": rows.event_rows()}
    arrives = {
        name: table[time].to_numpy()
        + np.array([dice.randrange(int(LATENESS / timedelta(microseconds=1))) for _ in table[time]])
        for (name, table), time in zip(tables.items(), ("start", "at"), strict=True)
    }
    edges = np.quantile(np.concatenate(list(arrives.values())), [0, *sorted(dice.random() for _ in range(5)), 1])
    edges[-1] += 1
    state, ended = encode_rules(RulesState.first(), options), []
    for number, (begin, end) in enumerate([*pairwise(edges), (0, 0)]):
        some = {
            name: table.filter(pa.array((arrives[name] >= begin) & (arrives[name] < end)))
            for name, table in tables.items()
        }
        marks = [Mark("end", 0, 0)] if begin == end else []
        for name, time in (("operations", "start"), ("events", "at")):
            if some[name].num_rows:
                least, greatest = pc.min_max(some[name][time]).as_py().values()
                marks.append(Mark(name, least, greatest))  # type: ignore[arg-type]
        arrived = BatchInput([some["operations"]], [some["events"]], marks, number)
        done = [process_batch(decode_rules(*state, options), arrived, options) for _ in range(1 + number % 2)]
        assert all(out.outcomes.equals(done[0][1].outcomes) for _, out in done), "done again, it comes to the same"
        state = encode_rules(done[-1][0], options)
        assert done[-1][1].rejected.num_rows == 0
        ended += done[-1][1].outcomes.to_pylist()
    assert len({row["op_id"] for row in ended}) == len(ended)
    return {row["op_id"]: (row["outcome"], row["at"]) for row in ended}


# -- the command of a stream


@pytest.mark.slow
def test_a_stream_that_is_drained(question: str, tmp_path: Path, spark: SparkSession) -> None:
    """As the page's command has it, but for `stream`; or over the tables of the page's block, where that groups."""
    place = Path.cwd()
    words = shlex.split(COMMANDS[question].replace("\\\n", " "))[2:]
    if "GROUP BY" in COMMANDS[question]:
        asked = run(question)
        tables = {"operations": asked.operations, "events": asked.events}
        for name, table in tables.items():
            table.to_parquet(tmp_path / f"{name}.parquet", index=False, coerce_timestamps="us")
        options = (pair for name, value in asked.rules.items() for pair in (f"--{name}", value) if name != "details")
        words = [*(str(tmp_path / f"{name}.parquet") for name in tables), "--out", "result", *options]
    if "'then'" in " ".join(words) and "--within" not in words:
        words += ["--count", "after_start"]  # what it means; a stream does not look into the rows to know of steps
    words = [str(place / word) if word.startswith("questions/") else word for word in words]
    words = [str(tmp_path / "result") if word == "result" else word for word in words]
    assert cli.main(["stream", *words, "--drain", "--quiet"]) == 0
    found = pq.read_table(tmp_path / "result" / "outcomes").to_pylist()
    assert {row["op_id"]: (row["outcome"], row["at"]) for row in found} == ORACLES[question](read)
    assert len(found) == len(ORACLES[question](read))
