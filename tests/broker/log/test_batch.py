"""Batches: split, checked by CRC, placed in a log."""

from __future__ import annotations

import struct

import pytest

from abeyant.broker.log.batch import HEADER_SIZE, Batch, split
from abeyant.broker.log.errors import CorruptRecordError, InvalidRecordError
from broker.log.batches import NOW, batch


def test_header_is_read() -> None:
    one = batch([b"a", None], codec=4, producer_id=7, producer_epoch=3, base_sequence=5, attributes=0x10)

    assert (one.base_offset, one.last_offset, one.next_offset) == (0, 1, 2)
    assert (one.producer_id, one.producer_epoch, one.base_sequence, one.last_sequence) == (7, 3, 5, 6)
    assert (one.compression, one.is_transactional, one.is_control) == (4, True, False)
    assert (one.max_timestamp, one.record_count, one.size) == (NOW, 2, len(one.data))
    assert one.crc_is_valid()


def test_place_is_outside_the_crc() -> None:
    placed = batch().at_offset(1 << 40, 9)

    assert (placed.base_offset, placed.leader_epoch) == (1 << 40, 9)
    assert placed.crc == batch().crc
    assert placed.crc_is_valid()


def test_append_time_gives_another_crc() -> None:
    timed = batch().with_timestamp(NOW + 5, append_time=True)

    assert (timed.max_timestamp, timed.timestamp_is_append_time) == (NOW + 5, True)
    assert timed.crc != batch().crc
    assert timed.crc_is_valid()


def test_same_time_changes_nothing() -> None:
    one = batch()

    assert one.with_timestamp(NOW, append_time=False) is one


def test_sequence_after_the_greatest_is_zero() -> None:
    one = batch([b""] * 3, producer_id=1, producer_epoch=0, base_sequence=(1 << 31) - 2)

    assert one.last_sequence == 0


@pytest.mark.parametrize("position", range(21, 80))
def test_any_changed_byte_is_noticed(position: int) -> None:
    data = bytearray(batch([b"x" * 40]).data)
    data[position] ^= 0x40

    assert not Batch(bytes(data)).crc_is_valid()


def test_split_leaves_out_what_is_cut_short() -> None:
    data = batch([b"a"]).data + batch([b"b"]).data + batch([b"c"]).data

    for cut in range(len(data)):
        assert [one.data for one in split(data[:cut])] == [batch([name]).data for name in (b"a", b"b", b"c")][
            : cut // batch([b"a"]).size
        ]


def test_split_refuses_what_is_no_batch() -> None:
    data = bytearray(batch().data)
    data[16] = 1
    with pytest.raises(InvalidRecordError, match="format 2, not 1"):
        split(bytes(data))
    data[16] = 3
    with pytest.raises(CorruptRecordError, match="Invalid magic found in record: 3"):
        split(bytes(data))
    data[16] = 2
    struct.pack_into(">i", data, 8, -5)
    with pytest.raises(CorruptRecordError, match="Record size -5"):
        split(bytes(data))
    struct.pack_into(">i", data, 8, HEADER_SIZE - 13)
    with pytest.raises(CorruptRecordError, match="shorter than its header"):
        split(bytes(data))


def test_batch_refuses_a_wrong_length() -> None:
    with pytest.raises(CorruptRecordError, match="declares a size of"):
        Batch(batch().data + b"x")
