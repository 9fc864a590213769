"""A log beside a plain list: whatever is done to both, they tell the same, and the log's own check holds.

The model knows records and what batch they came in; it knows nothing of segments, bytes in files, or indexes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from abeyant.broker.log import Log, LogConfig, split
from abeyant.broker.log.errors import OffsetOutOfRangeError
from abeyant.broker.log.validation import records_of
from broker.log.batches import NOW, batch
from broker.log.invariants import check_log

EVERYTHING = 1 << 40


@dataclass(frozen=True)
class Written:
    """A batch as the model knows it."""

    base: int
    epoch: int
    times: tuple[int, ...]
    values: tuple[bytes, ...]
    size: int

    @property
    def end(self) -> int:
        return self.base + len(self.values)


@dataclass
class Model:
    """A list of batches, where the log starts and where it ends."""

    batches: list[Written] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def visible(self) -> list[Written]:
        return [one for one in self.batches if one.end > self.start]

    def records(self) -> list[tuple[int, int, bytes]]:
        return [
            (one.base + index, one.times[index], one.values[index])
            for one in self.visible()
            for index in range(len(one.values))
            if one.base + index >= self.start
        ]


class LogMachine(RuleBasedStateMachine):
    """Drives both."""

    log: Log

    @initialize(segment_bytes=st.sampled_from([150, 400, 1000, 1 << 30]))
    def begin(self, segment_bytes: int) -> None:
        self.model = Model()
        self.epoch = 0
        self.now = NOW
        self.count = 0
        self.log = self.make_log(LogConfig(segment_bytes=segment_bytes, message_timestamp_after_max_ms=1 << 50))

    def make_log(self, config: LogConfig) -> Log:
        return Log("model", 0, config)

    @rule(times=st.lists(st.integers(NOW - 50, NOW + 50), min_size=1, max_size=4), codec=st.integers(0, 4))
    def append(self, times: list[int], codec: int) -> None:
        if self.log.config.segment_bytes < 200:
            times = times[:1]
        values = tuple(b"%d" % (self.count + index) for index in range(len(times)))
        self.count += len(times)
        answer = self.log.append(batch(values, times=times, codec=codec).data, self.epoch, self.now)
        assert (answer.base_offset, answer.last_offset) == (self.model.end, self.model.end + len(times) - 1)
        self.model.batches.append(Written(self.model.end, self.epoch, tuple(times), values, answer.size))
        self.model.end += len(times)

    @rule(more=st.integers(1, 3))
    def next_epoch(self, more: int) -> None:
        self.epoch += more
        self.log.start_epoch(self.epoch)
        assert self.log.epochs.latest == self.epoch

    @rule(back=st.integers(0, 9))
    def truncate(self, back: int) -> None:
        offset = max(self.model.end - back, 0)
        self.log.truncate_to(offset, self.now)
        if offset <= self.model.start < self.model.end:
            self.model = Model(start=offset, end=offset)
        cut = [one.base for one in self.model.visible() if one.base < offset < one.end]
        self.model.batches = [one for one in self.model.batches if one.end <= offset]
        self.model.end = min([offset, *cut])
        self.model.start = min(self.model.start, self.model.end)
        self.epoch += 1  # as a new leader does after it
        self.log.start_epoch(self.epoch)

    @rule(forward=st.integers(0, 9))
    def advance_start(self, forward: int) -> None:
        offset = self.model.start + forward
        if offset > self.model.end:
            with pytest.raises(OffsetOutOfRangeError):
                self.log.advance_start(offset, self.now)
            return
        assert self.log.advance_start(offset, self.now) == (forward > 0)
        self.model.start = offset

    @rule()
    def roll(self) -> None:
        self.log.roll(self.now)

    @precondition(lambda self: self.model.end > self.model.start)
    @rule(data=st.data(), max_bytes=st.integers(0, 900), min_one=st.booleans())
    def read(self, data: st.DataObject, max_bytes: int, min_one: bool) -> None:
        offset = data.draw(st.integers(self.model.start, self.model.end), "offset")
        up_to = data.draw(st.integers(self.model.start, self.model.end), "up to")
        expected: list[tuple[bytes, ...]] = []
        size = 0
        allowed = [one for one in self.model.batches if one.end > offset and one.end <= up_to]
        for one in allowed:
            if size + one.size > max_bytes and not (min_one and not expected):
                break
            expected.append(one.values)
            size += one.size
        found = split(self.log.read(offset, max_bytes, up_to, min_one=min_one))
        assert [tuple(record.value for record in records_of(one)) for one in found] == expected
        assert self.log.bytes_between(offset, up_to) == sum(one.size for one in allowed)
        for outside in (self.model.start - 1, self.model.end + 1):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(outside, max_bytes, up_to, min_one=min_one)

    @rule(timestamp=st.integers(NOW - 55, NOW + 55))
    def find_time(self, timestamp: int) -> None:
        found = self.log.offset_for_time(timestamp)
        expected = next((record for record in self.model.records() if record[1] >= timestamp), None)
        assert (found and (found.offset, found.timestamp)) == (expected and (expected[0], expected[1]))

    @rule(age=st.integers(0, 80), up_to=st.integers(0, 60))
    def delete_old(self, age: int, up_to: int) -> None:
        """Whole segments go, from the first: each record that is gone was old enough and below the high watermark."""
        up_to = min(up_to, self.model.end)
        old = self.log.config
        self.log.config = replace(old, retention_ms=age)
        self.log.delete_old(self.now + 50, up_to)
        self.log.config = old
        assert self.model.start <= self.log.start_offset
        if self.log.start_offset > self.model.start:
            assert self.log.start_offset <= up_to
            gone = [one for one in self.model.visible() if one.end <= self.log.start_offset]
            assert all(self.now + 50 - max(one.times) > age for one in gone)
            self.model.start = self.log.start_offset

    @invariant()
    def same(self) -> None:
        log, model = self.log, self.model
        check_log(log)
        assert (log.start_offset, log.end_offset) == (model.start, model.end)
        batches = split(log.read(model.start, EVERYTHING, model.end, min_one=False))
        assert [one.base_offset for one in batches] == [one.base for one in model.visible()]
        assert [one.leader_epoch for one in batches] == [one.epoch for one in model.visible()]
        found = [
            (record.offset, record.timestamp, record.value)
            for one in batches
            for record in records_of(one)
            if record.offset >= model.start
        ]
        assert found == model.records()
        for epoch, start in log.epochs.entries():
            later = [one.base for one in model.visible() if one.epoch > epoch]
            asked, end = log.epoch_end(epoch)
            assert asked == epoch
            assert start <= end <= min(later, default=model.end)
