"""Records inside a batch: written, read, checked, with every codec and with damage."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.broker.log import compression
from abeyant.broker.log.errors import UndecodableError
from abeyant.broker.log.records import MalformedRecordsError, Record, decode, encode, survey

_texts = st.none() | st.binary(max_size=300)
_records = st.lists(
    st.builds(
        Record,
        st.integers(-(1 << 31), (1 << 31) - 1),
        st.integers(-(1 << 62), 1 << 62),
        _texts,
        _texts,
        st.lists(st.tuples(st.text(max_size=9), _texts), max_size=3).map(tuple),
    ),
    min_size=1,
    max_size=12,
)
_codecs = st.integers(0, 4)


@given(_records)
def test_what_was_written_is_read(records: list[Record]) -> None:
    data = encode(records, 0, 0)

    assert decode(data, len(records), 0, 0) == records
    found = survey(data, len(records))
    assert found.least_delta == min(record.timestamp for record in records)
    assert found.greatest_delta == max(record.timestamp for record in records)
    assert found.in_order == all(record.offset == index for index, record in enumerate(records))
    assert found.without_key == any(record.key is None for record in records)
    assert found.plain


@given(_records, st.data())
def test_damage_is_noticed_or_changes_content_only(records: list[Record], data: st.DataObject) -> None:
    """Whatever the bytes: one of our errors or a walk to the end, never a read outside them."""
    damaged = bytearray(encode(records, 0, 0))
    for _ in range(data.draw(st.integers(1, 3))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(1, len(damaged))) :]
    try:
        survey(bytes(damaged), len(records))
    except MalformedRecordsError:
        with pytest.raises(MalformedRecordsError):
            decode(bytes(damaged), len(records), 0, 0)
    else:
        assert len(decode(bytes(damaged), len(records), 0, 0)) == len(records)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_count_has_to_be_right(count: int) -> None:
    data = encode([Record(0, 0, None, b""), Record(1, 0, None, b"")], 0, 0)

    with pytest.raises(MalformedRecordsError, match="declared batch size"):
        survey(data, count)
    with pytest.raises(MalformedRecordsError, match="declared batch size"):
        decode(data, count, 0, 0)


@given(st.binary(max_size=2000), _codecs)
def test_codecs_give_back_what_they_took(data: bytes, codec: int) -> None:
    assert compression.decompress(codec, memoryview(compression.compress(codec, data))) == data


@given(st.binary(min_size=1, max_size=200), st.integers(1, 4), st.data())
def test_damaged_compression_is_one_error(content: bytes, codec: int, data: st.DataObject) -> None:
    damaged = bytearray(compression.compress(codec, content))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    del damaged[data.draw(st.integers(1, len(damaged))) :]
    with contextlib.suppress(UndecodableError):  # else it made sense: no other error, and no memory beyond the bound
        assert isinstance(compression.decompress(codec, memoryview(bytes(damaged))), bytes)


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_small_bytes_that_grow_large_are_refused(codec: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST", 100_000)
    assert len(compression.decompress(codec, memoryview(compression.compress(codec, bytes(100_000))))) == 100_000
    with pytest.raises(UndecodableError, match="exceed 100,000 bytes"):
        compression.decompress(codec, memoryview(compression.compress(codec, bytes(100_001))))


def test_snappy_in_the_java_librarys_frames() -> None:
    block = compression.compress(compression.SNAPPY, b"hello ")
    framed = b"\x82SNAPPY\x00\0\0\0\1\0\0\0\1" + (len(block).to_bytes(4) + block) * 2

    assert compression.decompress(compression.SNAPPY, memoryview(framed)) == b"hello hello "
    for cut in range(17, len(framed)):
        if cut != 16 + 4 + len(block):
            with pytest.raises(UndecodableError):
                compression.decompress(compression.SNAPPY, memoryview(framed[:cut]))


def test_unknown_codec() -> None:
    with pytest.raises(UndecodableError, match="Unknown compression type id: 5"):
        compression.decompress(5, memoryview(b""))
