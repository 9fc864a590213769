"""Hashes of texts beside the published figures of their parts, and what their users rely on."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest

from abeyance.engine.hashing import hash_texts

BASIS = 0xCBF29CE484222325
FNV_1A = {b"": BASIS, b"a": 0xAF63DC4C8601EC8C, b"foobar": 0x85944171F73967E8}  # published
ALL = (1 << 64) - 1


def hashed(texts: list[bytes], seed: int = BASIS) -> list[int]:
    hashes = array("Q", [0]) * len(texts)
    hash_texts(array("q", accumulate(map(len, texts), initial=0)), b"".join(texts), seed, hashes)
    return list(hashes)


def finalized(value: int) -> int:
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        value = ((value ^ (value >> 33)) * factor) & ALL
    return value ^ (value >> 33)


def test_it_is_fnv_1a_and_the_finalizer_of_murmur_hash_3() -> None:
    assert hashed(list(FNV_1A)) == [finalized(value) for value in FNV_1A.values()]


def test_the_same_text_has_the_same_hash_wherever_it_stands() -> None:
    one, two, other, again = hashed([b"key", b"\xff\x00", b"", b"key"])
    assert one == again
    assert len({one, two, other}) == 3


def test_texts_and_seeds_differ_and_the_uppermost_bits_are_spread() -> None:
    texts = [f"key-{number:07d}".encode() for number in range(20_000)]
    one, other = hashed(texts), hashed(texts, 1)
    assert len({*one, *other}) == 40_000
    parts = [sum(value >> 60 == part for value in one) for part in range(16)]
    assert min(parts) > 1000
    assert max(parts) < 1500


def test_no_texts_have_no_hashes() -> None:
    assert hashed([]) == []


def test_offsets_that_lie_are_refused() -> None:
    hashes = array("Q", [0])
    with pytest.raises(ValueError, match="offsets go back, or beyond the 3 bytes of data"):
        hash_texts(array("q", [0, 4]), b"abc", 0, hashes)
    with pytest.raises(ValueError, match="offsets go back"):
        hash_texts(array("q", [2, 1]), b"abc", 0, hashes)
    with pytest.raises(ValueError, match="offsets go back"):
        hash_texts(array("q", [-1, 1]), b"abc", 0, hashes)
    with pytest.raises(ValueError, match="hashes has 1 elements and offsets, less one, has 2"):
        hash_texts(array("q", [0, 1, 2]), b"abc", 0, hashes)
    with pytest.raises(ValueError, match="offsets is empty"):
        hash_texts(array("q"), b"", 0, array("Q"))
    with pytest.raises(TypeError, match="offsets must hold signed 64-bit integers"):
        hash_texts(array("i", [0, 1]), b"abc", 0, hashes)
