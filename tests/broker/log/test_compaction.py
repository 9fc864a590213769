"""Compaction beside a plain model: of each key the last record, in its place; tombstones for as long as they should."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.broker.log import Log, LogConfig, split
from abeyant.broker.log.disk_log import DiskLog
from abeyant.broker.log.errors import StorageError
from abeyant.broker.log.records import Record
from abeyant.broker.log.validation import records_of
from broker.log.batches import NOW, batch_of, marker
from broker.log.invariants import check_log

EVER = 1 << 40


def config(**settings: Any) -> LogConfig:
    return LogConfig(cleanup_policy=frozenset({"compact"}), **settings)


def make_log(**settings: Any) -> Log:
    return Log("prices", 0, config(**settings))


def put(log: Log, *pairs: tuple[bytes, bytes | None], codec: int = 0, **header: Any) -> None:
    records = [Record(index, NOW, key, value) for index, (key, value) in enumerate(pairs)]
    log.append(batch_of(records, codec=codec, **header).data, 0, NOW)


def content(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    data = log.read(log.start_offset, EVER, log.end_offset, min_one=False)
    return [
        (record.offset, record.key, record.value)
        for batch in split(data)
        if not batch.is_control
        for record in records_of(batch)
    ]


_writes = st.lists(
    st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.none() | st.binary(max_size=4)), min_size=1, max_size=4),
    max_size=12,
)


@given(
    rounds=st.lists(_writes, min_size=1, max_size=3),
    codec=st.integers(0, 4),
    segment_bytes=st.sampled_from([150, 400, 1 << 20]),
)
def test_last_record_of_each_key_stays(rounds: list[Any], codec: int, segment_bytes: int) -> None:
    log = make_log(segment_bytes=segment_bytes)
    written = []
    for writes in rounds:
        for write in writes:
            written += [(log.end_offset + index, *pair) for index, pair in enumerate(write)]
            put(log, *write, codec=codec)
        log.compact(NOW, log.end_offset, force=True)
        check_log(log)
        last = {key: offset for offset, key, _ in written}
        assert content(log) == [one for one in written if last[one[1]] == one[0]]
        assert log.end_offset == len(written)
        for offset in range(log.end_offset + 1):
            found = [one for one in content(log) if one[0] >= offset]
            data = log.read(offset, EVER, log.end_offset, min_one=False)
            assert [r.offset for b in split(data) for r in records_of(b) if r.offset >= offset] == [
                o for o, _, _ in found
            ]


def test_tombstones_stay_for_their_time() -> None:
    log = make_log(delete_retention_ms=100)
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", None))
    log.compact(NOW, log.end_offset, force=True)
    assert content(log) == [(1, b"b", b"1"), (2, b"a", None)]
    put(log, (b"b", b"2"))
    log.compact(NOW + 99, log.end_offset, force=True)
    assert content(log) == [(2, b"a", None), (3, b"b", b"2")]
    put(log, (b"b", b"3"))
    log.compact(NOW + 100, log.end_offset, force=True)
    assert content(log) == [(4, b"b", b"3")]
    assert [record.timestamp for one in log.read_batches(0, EVER, 5, min_one=True) for record in records_of(one)] == [
        NOW
    ]
    check_log(log)


def test_nothing_above_the_last_stable_offset() -> None:
    log = make_log(segment_bytes=150)
    for _ in range(6):
        put(log, (b"a", b"x" * 50))
    assert log.compact(NOW, 3, force=True) > 0
    assert [offset for offset, _, _ in content(log)] == [2, 3, 4, 5]


def test_by_itself_when_enough_is_dirty() -> None:
    log = make_log(segment_bytes=150, min_cleanable_dirty_ratio=0.5)
    for _ in range(3):
        put(log, (b"a", b"x" * 50))
    assert log.compact(NOW, 3) > 0
    assert [offset for offset, _, _ in content(log)] == [1, 2]  # the last segment is still written to
    assert log.compact(NOW, 3) == 0
    assert make_log().compact(NOW, 0) == 0
    assert Log("x", 0, LogConfig()).compact(NOW, 0, force=True) == 0


def test_compaction_lags() -> None:
    log = make_log(segment_bytes=150, min_compaction_lag_ms=100)
    for _ in range(3):
        put(log, (b"a", b"x" * 50))
    assert log.compact(NOW + 99, 3) == 0
    assert log.compact(NOW + 100, 3) > 0
    log = make_log(segment_bytes=150, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=100)
    for _ in range(3):
        put(log, (b"a", b"x" * 50))
    assert log.compact(NOW + 100, 3) == 0
    assert log.compact(NOW + 101, 3) > 0


def test_producers_keep_their_sequence() -> None:
    log = make_log()
    for sequence in range(3):
        put(log, (b"a", b""), producer_id=7, producer_epoch=0, base_sequence=sequence)
    put(log, (b"a", b"other"))
    log.compact(NOW, log.end_offset, force=True)
    assert content(log) == [(3, b"a", b"other")]
    batches = log.read_batches(0, EVER, 4, min_one=True)
    assert [(one.record_count, one.base_sequence) for one in batches] == [(0, 2), (1, -1)]
    put(log, (b"a", b""), producer_id=7, producer_epoch=0, base_sequence=3)
    check_log(log)


def test_aborted_transactions_go() -> None:
    log = make_log()
    for sequence, commits in enumerate((True, False)):
        put(log, (b"a", b"%d" % commits), attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=sequence)
        log.append(marker(9, 0, commits=commits), 0, NOW, from_client=False)
    log.compact(NOW, log.end_offset, force=True)
    assert content(log) == [(0, b"a", b"1")]
    check_log(log)


def markers(log: Log) -> list[tuple[int, int]]:
    """The offset of each marker that there is, and how many records its batch has."""
    batches = log.read_batches(log.start_offset, EVER, log.end_offset, min_one=True)
    return [(batch.base_offset, batch.record_count) for batch in batches if batch.is_control]


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_stays_for_its_time_once_nothing_of_its_transaction_is_left(commits: bool) -> None:
    """Kafka: `CleanedTransactionMetadata`, and KIP-534's delete horizon."""
    log = make_log(delete_retention_ms=100)
    put(log, (b"a", b"1"), attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=0)
    log.append(marker(9, 0, commits=commits), 0, NOW, from_client=False)
    put(log, (b"a", b"2"), attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=1)
    log.append(marker(9, 0, commits=True), 0, NOW, from_client=False)
    put(log, (b"b", b"1"))

    def compact(now_ms: int) -> list[tuple[int, int]]:
        put(log, (b"b", b"2"))
        log.compact(now_ms, log.end_offset, force=True)
        check_log(log)
        return markers(log)

    assert compact(NOW) == [(1, 1), (3, 1)]  # its transaction's data goes now
    assert compact(NOW + 1_000) == [(1, 1), (3, 1)]  # its time begins
    assert compact(NOW + 1_099) == [(1, 1), (3, 1)]
    assert compact(NOW + 1_100) == [(3, 1)]
    assert log.producers.aborted_between(0, log.end_offset) == []
    assert content(log)[0] == (2, b"a", b"2")


def test_the_last_marker_of_a_producer_stays_without_its_record(tmp_path: Path) -> None:
    """So that its epoch is known; whoever reads the log finds nothing in it (as in Kafka)."""
    log = open_log(tmp_path)
    put(log, (b"a", b"1"), attributes=0x10, producer_id=9, producer_epoch=0, base_sequence=0)
    log.append(marker(9, 1, commits=True), 0, NOW, from_client=False)
    for step in range(4):
        put(log, (b"a", b"2"))
        log.compact(NOW + step * 90_000_000, log.end_offset, force=True)
    assert markers(log) == [(1, 0)]
    log.kill()
    log = open_log(tmp_path)
    check_log(log)
    assert [one for one in content(log) if one[1] == b"a"] == [(5, b"a", b"2")]
    log.close()


def open_log(path: Path) -> DiskLog:
    return DiskLog(path / "prices-0", "prices", 0, uuid.UUID(int=3), config(segment_bytes=400), NOW, lambda *_: None)


@pytest.mark.parametrize("end", [DiskLog.close, DiskLog.kill], ids=["closed", "killed"])
def test_on_disk(tmp_path: Path, end: Any) -> None:
    log = open_log(tmp_path)
    for index in range(20):
        put(log, (b"k%d" % (index % 3), b"%d" % index), producer_id=7, producer_epoch=0, base_sequence=index)
    log.compact(NOW, log.end_offset, force=True)
    before = content(log)
    assert [offset for offset, _, _ in before] == [17, 18, 19]
    for _ in range(2):
        end(log)
        log = open_log(tmp_path)
        check_log(log)
        assert content(log) == before
        assert log.compact(NOW, log.end_offset) == 0
    put(log, (b"k0", b"x"), producer_id=7, producer_epoch=0, base_sequence=20)
    log.close()


@pytest.mark.parametrize("at", range(12))
def test_crash_at_any_rename(tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever step a compaction reaches: the log opens again with the same last records."""
    log = open_log(tmp_path)
    for index in range(20):
        put(log, (b"k%d" % (index % 3), b"%d" % index))
    expected = [(offset, b"k%d" % (offset % 3), b"%d" % offset) for offset in (17, 18, 19)]
    rename = Path.rename
    steps = iter(range(1000))

    def failing(self: Path, target: Any) -> Any:
        if next(steps) == at:
            raise OSError("the machine is off")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", failing)
        with contextlib.suppress(StorageError):
            log.compact(NOW, log.end_offset, force=True)
    log.kill()
    log = open_log(tmp_path)
    check_log(log)
    found = content(log)
    assert [one for one in found if one in expected] == expected
    assert log.end_offset == 20
    log.compact(NOW, log.end_offset, force=True)
    assert content(log) == expected
    log.close()
