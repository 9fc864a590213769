"""A leader's append: what is taken, what is refused and how, and what a producer gets that sends again."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

import pytest

from abeyant.broker.log import Batch, Log, LogConfig, LogError, split
from abeyant.broker.log.errors import (
    BatchTooLargeError,
    CoordinatorFencedError,
    CorruptRecordError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTimestampError,
    InvalidTransactionStateError,
    OutOfOrderSequenceError,
    RecordTooLargeError,
    UndecodableError,
)
from abeyant.broker.log.markers import Marker, marker_batch, marker_of
from abeyant.broker.log.records import Record, decode
from abeyant.broker.log.validation import records_of
from broker.log.batches import NOW, batch, batch_of, marker
from broker.log.invariants import check_log


def make_log(**settings: Any) -> Log:
    return Log("orders", 0, LogConfig(**settings))


def everything(log: Log) -> list[Batch]:
    return split(log.read(log.start_offset, 1 << 30, log.end_offset, min_one=False))


def refused(log: Log, data: bytes, **options: Any) -> LogError:
    """The error of an append that must leave the log as it was."""
    before = log.end_offset, log.size, log.epochs.latest, [one.data for one in everything(log)]
    with pytest.raises(LogError) as caught:
        log.append(data, 0, NOW, **options)
    check_log(log)
    assert (log.end_offset, log.size, log.epochs.latest, [one.data for one in everything(log)]) == before
    return caught.value


@pytest.mark.parametrize("codec", range(5))
def test_batches_get_offsets_and_the_leaders_epoch(codec: int) -> None:
    log = make_log()

    assert log.append(batch([b"a", b"b"], codec=codec).data, 3, NOW)[:4] == (0, 1, -1, False)
    assert log.append(batch([b"c"], codec=codec).data, 4, NOW)[:4] == (2, 2, -1, False)

    check_log(log)
    assert [(one.base_offset, one.leader_epoch, one.compression) for one in everything(log)] == [
        (0, 3, codec),
        (2, 4, codec),
    ]
    assert [(r.offset, r.value) for one in everything(log) for r in records_of(one)] == [
        (0, b"a"),
        (1, b"b"),
        (2, b"c"),
    ]
    assert log.size == sum(one.size for one in everything(log))


def test_append_time() -> None:
    log = make_log(message_timestamp_type="LogAppendTime")

    assert log.append(batch([b"a"], times=[5]).data, 0, NOW).append_time_ms == NOW
    assert everything(log)[0].timestamp_is_append_time
    assert [record.timestamp for record in records_of(everything(log)[0])] == [NOW]
    check_log(log)


def test_greatest_timestamp_is_the_records_own() -> None:
    log = make_log()
    log.append(batch([b"", b"", b""], times=[NOW, NOW + 9, NOW - 9], max_timestamp=NOW).data, 0, NOW)

    assert everything(log)[0].max_timestamp == NOW + 9
    check_log(log)


@pytest.mark.parametrize(("asked", "codec"), [("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4), ("uncompressed", 0)])
def test_topic_that_asks_for_a_codec(asked: str, codec: int) -> None:
    log = make_log(compression_type=asked)
    log.append(batch([b"a" * 100, None], codec=2, producer_id=1, producer_epoch=2, base_sequence=3).data, 0, NOW)

    (one,) = everything(log)
    assert (one.compression, one.producer_id, one.producer_epoch, one.base_sequence) == (codec, 1, 2, 3)
    assert [record.value for record in records_of(one)] == [b"a" * 100, None]
    check_log(log)


def test_compressed_batch_with_odd_offsets_is_put_in_order() -> None:
    log = make_log()
    log.append(batch_of([Record(4, NOW, None, b"a"), Record(9, NOW, None, b"b")], codec=1).data, 0, NOW)

    assert [record.offset for record in records_of(everything(log)[0])] == [0, 1]


def test_crc_is_checked() -> None:
    data = bytearray(batch().data)
    data[-1] ^= 1

    assert isinstance(refused(make_log(), bytes(data)), CorruptRecordError)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no batches at all"),
        (batch().data[:-1], "no batches at all"),
        (batch().data * 2, "more than one batch"),
        (batch(base=1).data, "should be 0, but it is 1"),
        (batch([b"a"], record_count=2).data, "declared batch size"),
        (
            batch([b"a", b"b"], record_count=2, last_offset_delta=2).data,
            r"offset range \[0, 2\] and count of records 2",
        ),
        (batch([b"a"], record_count=0, last_offset_delta=0).data, "Invalid reported count"),
        (batch([b"a"], record_count=1, last_offset_delta=-1).data, "invalid offset range"),
        (batch([b"a"], producer_id=1, producer_epoch=0).data, "Invalid sequence number -1"),
        (marker(1, 0, commits=True), "not allowed to write control records"),
    ],
)
def test_batch_that_contradicts_itself(data: bytes, reason: str) -> None:
    error = refused(make_log(), data)

    assert isinstance(error, InvalidRecordError)
    assert error.code == 87
    error.args[0]
    with pytest.raises(InvalidRecordError, match=reason):
        raise error


def test_compressed_rubbish() -> None:
    plain = batch([b"a" * 50])
    data = bytearray(plain.data)
    struct.pack_into(">h", data, 21, 3)
    changed = Batch(bytes(data)).with_timestamp(NOW + 1, append_time=False)

    assert isinstance(refused(make_log(), changed.data), UndecodableError)


def test_size_limits() -> None:
    data = batch([b"x" * 1000]).data

    assert isinstance(refused(make_log(max_message_bytes=len(data) - 1), data), RecordTooLargeError)
    assert isinstance(refused(make_log(segment_bytes=len(data) - 1), data), BatchTooLargeError)
    make_log(max_message_bytes=len(data), segment_bytes=len(data)).append(data, 0, NOW)
    grown = batch([b"x" * 1000], codec=4).data
    assert isinstance(
        refused(make_log(max_message_bytes=200, compression_type="uncompressed"), grown), RecordTooLargeError
    )


def test_each_untimely_record_is_named() -> None:
    log = make_log(message_timestamp_before_max_ms=100)
    error = refused(log, batch([b""] * 4, times=[NOW - 101, NOW - 100, NOW + 3_600_000, NOW + 3_600_001]).data)

    assert isinstance(error, InvalidTimestampError)
    assert [index for index, _ in error.record_errors] == [0, 3]
    log.append(batch([b"", b""], times=[NOW - 100, -1]).data, 0, NOW)
    assert isinstance(refused(make_log(), batch(attributes=0x08).data), InvalidTimestampError)


def test_compacted_topic_wants_keys() -> None:
    log = make_log(cleanup_policy=frozenset({"compact"}))
    error = refused(log, batch_of([Record(0, NOW, b"k", b""), Record(1, NOW, None, b"")]).data)

    assert isinstance(error, InvalidRecordError)
    assert [index for index, _ in error.record_errors] == [1]


def sequenced(sequence: int, *, epoch: int = 0, count: int = 1, attributes: int = 0) -> bytes:
    return batch(
        [b"%d" % sequence] * count,
        producer_id=9,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=attributes,
    ).data


def test_duplicate_gets_its_first_answer_again() -> None:
    log = make_log()
    answers = [log.append(sequenced(2 * index, count=2), 0, NOW) for index in range(7)]

    for index in range(2, 7):
        again = log.append(sequenced(2 * index, count=2), 0, NOW + 5)
        assert (again.base_offset, again.last_offset) == (answers[index].base_offset, answers[index].last_offset)
        assert (again.duplicate, again.size) == (True, 0)
    for index in range(2):  # older than the window of five
        assert isinstance(refused(log, sequenced(2 * index, count=2)), OutOfOrderSequenceError)
    assert isinstance(refused(log, sequenced(12, count=1)), OutOfOrderSequenceError)  # another end: no duplicate
    assert log.end_offset == 14
    check_log(log)


def test_gap_in_a_sequence() -> None:
    log = make_log()
    log.append(sequenced(5), 0, NOW)  # whatever comes first, for what was before may have been deleted

    assert isinstance(refused(log, sequenced(7)), OutOfOrderSequenceError)
    log.append(sequenced(6), 0, NOW)


def test_sequence_goes_round() -> None:
    log = make_log()
    log.append(sequenced((1 << 31) - 1), 0, NOW)

    assert isinstance(refused(log, sequenced(1)), OutOfOrderSequenceError)
    assert not log.append(sequenced(0), 0, NOW).duplicate


def test_epochs_of_a_producer() -> None:
    log = make_log()
    log.append(sequenced(3, epoch=1), 0, NOW)

    assert isinstance(refused(log, sequenced(4, epoch=0)), InvalidProducerEpochError)
    assert isinstance(refused(log, sequenced(4, epoch=2)), OutOfOrderSequenceError)
    assert not log.append(sequenced(0, epoch=2), 0, NOW).duplicate
    assert [(state.epoch, state.last_sequence) for state in log.producers.states()] == [(2, 0)]


def test_producers_expire() -> None:
    log = make_log(producer_expiration_ms=1000)
    log.append(sequenced(0), 0, NOW)

    assert log.expire_producers(NOW + 999) == 0
    assert log.expire_producers(NOW + 1000) == 1
    log.append(sequenced(5), 0, NOW)


def test_deleted_records_leave_their_producer_known() -> None:
    log = make_log()
    log.append(sequenced(0), 0, NOW)
    log.advance_start(1, NOW)

    assert log.append(sequenced(0), 0, NOW).duplicate


def test_truncation_forgets_what_it_cut() -> None:
    log = make_log(segment_bytes=200)
    for sequence in range(6):
        log.append(sequenced(sequence), 0, NOW)
    log.truncate_to(3, NOW)
    check_log(log)

    assert log.append(sequenced(2), 0, NOW).duplicate
    assert log.append(sequenced(3), 0, NOW).base_offset == 3


def test_transactions_hold_back_the_last_stable_offset() -> None:
    log = make_log()
    log.append(batch().data, 0, NOW)
    log.append(sequenced(0, attributes=0x10), 0, NOW)
    log.append(batch().data, 0, NOW)

    assert log.producers.in_transaction(9, 0)
    assert log.last_stable_offset(3) == 1
    assert log.last_stable_offset(0) == 0
    assert isinstance(refused(log, sequenced(1)), InvalidTransactionStateError)
    log.append(marker(9, 0, commits=False, coordinator_epoch=4), 0, NOW, from_client=False)
    assert log.last_stable_offset(3) == 1  # the marker is not below the high watermark yet
    assert log.last_stable_offset(4) == 4
    assert log.last_stable_offset(4) == 4
    assert [aborted[:3] for aborted in log.producers.aborted_between(0, 4)] == [(9, 1, 3)]
    assert [aborted[:3] for aborted in log.producers.aborted_between(3, 4)] == [(9, 1, 3)]
    assert log.producers.aborted_between(4, 9) == log.producers.aborted_between(0, 1) == []
    log.append(sequenced(1, attributes=0x10), 0, NOW)
    log.append(marker(9, 0, commits=True, coordinator_epoch=4), 0, NOW, from_client=False)
    assert log.last_stable_offset(6) == 6
    assert len(log.producers.aborted_between(0, 6)) == 1
    zombie = marker(9, 0, commits=True, coordinator_epoch=3)
    assert isinstance(refused(log, zombie, from_client=False), CoordinatorFencedError)
    check_log(log)


def test_the_last_stable_offset_is_not_before_the_start() -> None:
    """Else a consumer of committed data that begins at the end would be told an offset that is out of range."""
    log = make_log()
    log.append(sequenced(0, attributes=0x10), 0, NOW)
    log.append(batch().data, 0, NOW)
    log.append(batch().data, 0, NOW)
    log.advance_start(2, NOW)
    assert log.producers.in_transaction(9, 0)
    assert log.last_stable_offset(3) == 2
    check_log(log)


def test_aborted_transactions_survive_truncation_behind_them() -> None:
    log = make_log(segment_bytes=150)
    log.append(sequenced(0, attributes=0x10), 0, NOW)
    log.append(marker(9, 0, commits=False), 0, NOW, from_client=False)
    log.append(sequenced(1, attributes=0x10), 0, NOW)
    log.append(marker(9, 0, commits=False), 0, NOW, from_client=False)
    log.truncate_to(3, NOW)
    check_log(log)

    assert [aborted[:3] for aborted in log.producers.aborted_between(0, 9)] == [(9, 0, 1)]
    assert log.last_stable_offset(3) == 2


@pytest.mark.parametrize("commits", [True, False])
def test_a_marker_is_written_as_kafka_writes_it(commits: bool) -> None:
    written = marker_batch(9, 3, Marker(commits, 4), NOW)

    assert written.data == marker(9, 3, commits=commits, coordinator_epoch=4)
    assert marker_of(written) == Marker(commits, 4)


@pytest.mark.parametrize("segment_bytes", [150, 1 << 20])
def test_a_reader_is_told_of_no_aborted_transaction_behind_what_it_reads(segment_bytes: int) -> None:
    log = make_log(segment_bytes=segment_bytes)
    for sequence in range(4):
        log.append(sequenced(sequence, attributes=0x10), 0, NOW)
        log.append(marker(9, 0, commits=False), 0, NOW, from_client=False)
    for offset in range(8):
        for max_bytes in (1, 150, 400, 1 << 20):
            read = log.read(offset, max_bytes, 8, min_one=True)
            end = split(read)[-1].next_offset
            assert log.end_of_read(offset, len(read)) == end
            assert [one.first_offset for one in log.producers.aborted_between(offset, end)] == [
                first for first in range(0, 8, 2) if first + 1 >= offset and first < end
            ]


def test_follower_has_the_leaders_bytes() -> None:
    leader, follower, second = make_log(), make_log(), make_log()
    for sequence in range(3):
        leader.append(sequenced(sequence), 2, NOW)

    assert follower.append_replicated(leader.read(0, 1 << 20, 3, min_one=True), NOW) == 3
    assert second.append_replicated(leader.read_batches(0, 1 << 20, 3, min_one=True), NOW) == 3
    for one in (follower, second):
        check_log(one)
        assert [b.data for b in everything(one)] == [b.data for b in everything(leader)]
        assert one.epochs.latest == 2
        assert one.append(sequenced(2), 3, NOW).duplicate  # it could lead now
    mine, leaders = (log.read_batches(0, 1, 3, min_one=True)[0] for log in (second, leader))
    assert mine.data is leaders.data  # shared, not copied


def test_follower_takes_nothing_damaged_or_out_of_order() -> None:
    leader, follower = make_log(), make_log()
    for _ in range(3):
        leader.append(batch().data, 0, NOW)
    data = leader.read(0, 1 << 20, 3, min_one=True)
    follower.append_replicated(data, NOW)

    with pytest.raises(CorruptRecordError, match="Unexpected offset"):
        follower.append_replicated(data, NOW)
    with pytest.raises(CorruptRecordError, match="Record is corrupt"):
        make_log().append_replicated(data[:-1] + b"?", NOW)


def test_follower_whose_leader_starts_within_a_batch() -> None:
    leader, follower = make_log(), make_log()
    leader.append(batch([b""] * 5).data, 0, NOW)
    leader.advance_start(3, NOW)
    follower.truncate_fully(3, NOW)
    follower.append_replicated(leader.read(3, 1 << 20, 5, min_one=True), NOW)

    check_log(follower)
    assert (follower.start_offset, follower.end_offset) == (3, 5)


def test_settings_may_change() -> None:
    log = make_log()
    log.config = replace(log.config, max_message_bytes=10)

    assert isinstance(refused(log, batch().data), RecordTooLargeError)


def test_decoded_record_keeps_headers() -> None:
    record = Record(0, NOW, None, None, (("h", None), ("g", b"1")))

    assert records_of(batch_of([record], codec=2)) == [record]
    assert decode(bytes(batch_of([record]).records), 1, 0, NOW) == [record]
