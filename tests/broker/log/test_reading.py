"""Reading a log: bytes, times, epochs, retention; the cases that a model does not single out."""

from __future__ import annotations

from typing import Any

import pytest

from abeyant.broker.log import Log, LogConfig
from abeyant.broker.log.epochs import LeaderEpochs
from abeyant.broker.log.errors import OffsetOutOfRangeError
from broker.log.batches import NOW, batch
from broker.log.invariants import check_epochs, check_log


def make_log(count: int = 0, **settings: Any) -> Log:
    log = Log("orders", 0, LogConfig(**settings))
    for index in range(count):
        log.append(batch([b"%04d" % index], times=[NOW + index]).data, 0, NOW + index)
    return log


SIZE = batch([b"0000"]).size


def test_read_gives_whole_batches_within_max_bytes() -> None:
    log = make_log(10, segment_bytes=3 * SIZE)

    assert len(log.read(0, 5 * SIZE, 10, min_one=True)) == 5 * SIZE  # over a segment's end
    assert len(log.read(0, 5 * SIZE - 1, 10, min_one=True)) == 4 * SIZE
    assert len(log.read(0, 1, 10, min_one=True)) == SIZE
    assert log.read(0, SIZE - 1, 10, min_one=False) == b""
    assert len(log.read(4, 100 * SIZE, 6, min_one=False)) == 2 * SIZE
    assert log.read(10, 100 * SIZE, 10, min_one=True) == b""
    assert log.read(7, 100 * SIZE, 7, min_one=True) == b""
    with pytest.raises(OffsetOutOfRangeError, match=r"offset 11 for partition orders-0.*range 0 to 10"):
        log.read(11, 1, 11, min_one=True)


def test_bytes_between_needs_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    log = make_log(100, segment_bytes=7 * SIZE)
    monkeypatch.setattr("abeyant.broker.log.segment.Segment.read", None)
    monkeypatch.setattr("abeyant.broker.log.segment.Segment.batch", None)

    assert log.bytes_between(3, 90) == 87 * SIZE
    assert log.bytes_between(90, 3) == log.bytes_between(100, 200) == 0
    assert log.bytes_between(0, 1000) == 100 * SIZE


def test_greatest_timestamp() -> None:
    log = make_log()
    assert log.max_timestamp() is None
    log.append(batch([b"", b"", b""], times=[NOW, NOW + 7, NOW + 7]).data, 4, NOW)
    log.append(batch([b""], times=[NOW + 7]).data, 5, NOW)

    assert log.max_timestamp() == (NOW + 7, 1, 4)


def test_time_look_up_skips_what_was_deleted() -> None:
    log = make_log()
    log.append(batch([b"", b"", b""], times=[NOW + 9, NOW, NOW + 5]).data, 0, NOW)
    log.append(batch([b""], times=[NOW + 2]).data, 0, NOW)
    log.advance_start(1, NOW)

    assert log.offset_for_time(NOW + 1) == (NOW + 5, 2, 0)
    log.advance_start(3, NOW)
    assert log.offset_for_time(NOW + 1) == (NOW + 2, 3, 0)
    assert log.offset_for_time(NOW + 3) is None


def test_retention_by_size() -> None:
    log = make_log(10, segment_bytes=2 * SIZE, retention_bytes=5 * SIZE, retention_ms=-1)

    assert log.delete_old(NOW, 3) == 1  # no further than the high watermark
    assert log.delete_old(NOW, 10) == 1
    assert (log.start_offset, log.size) == (4, 6 * SIZE)
    assert log.delete_old(NOW, 10) == 0
    check_log(log)


def test_retention_by_time_takes_the_last_segment_too() -> None:
    log = make_log(10, segment_bytes=4 * SIZE, retention_ms=100)

    assert log.delete_old(NOW + 103, 10) == 0  # the first segment's last record is 100 ms old
    assert log.delete_old(NOW + 104, 10) == 1
    assert log.delete_old(NOW + 500, 10) == 2
    assert (log.start_offset, log.end_offset, log.size) == (10, 10, 0)
    assert make_log(3, cleanup_policy=frozenset({"compact"}), retention_ms=0).delete_old(NOW + 9, 3) == 0
    assert log.append(batch().data, 0, NOW).base_offset == 10
    check_log(log)


def test_segment_ends_after_its_time() -> None:
    log = make_log(segment_ms=100, retention_ms=0)
    for time in (0, 100, 101):
        log.append(batch(times=[NOW + time]).data, 0, NOW)

    assert log.delete_old(NOW + 10_000, 2) == 1
    assert log.start_offset == 2


def test_epochs() -> None:
    log = make_log()
    log.start_epoch(2)
    log.append(batch([b""] * 3).data, 2, NOW)
    log.start_epoch(5)
    log.append(batch([b""] * 2).data, 5, NOW)

    assert [log.epoch_end(epoch) for epoch in (-1, 1, 2, 3, 5, 6)] == [
        (-1, -1), (1, 0), (2, 3), (2, 3), (5, 5), (-1, -1),
    ]  # fmt: skip
    assert [log.epochs.at(offset) for offset in (0, 2, 3, 9)] == [2, 2, 5, 5]
    log.advance_start(4, NOW)
    assert log.epochs.entries() == [(5, 4)]
    assert log.epoch_end(2) == (2, 4)


def test_epoch_without_a_batch_is_overwritten() -> None:
    epochs = LeaderEpochs()
    assert epochs.at(0) is None
    for epoch, offset in ((1, 0), (3, 5), (4, 5), (4, 9)):
        epochs.assign(epoch, offset)
    assert epochs.entries() == [(1, 0), (4, 5)]
    epochs.assign(2, 3)
    assert epochs.entries() == [(1, 0), (2, 3)]
    check_epochs(epochs)


def test_truncation_within_a_batch_cuts_it_whole() -> None:
    log = make_log()
    log.append(batch([b""] * 3).data, 0, NOW)
    log.append(batch([b""] * 3).data, 0, NOW)
    log.truncate_to(4, NOW)

    assert log.end_offset == 3
    log.truncate_fully(7, NOW)
    assert (log.start_offset, log.end_offset, log.size, log.epochs.latest) == (7, 7, 0, None)
    check_log(log)
    with pytest.raises(OffsetOutOfRangeError, match="larger than the end offset 7"):
        log.advance_start(8, NOW)
