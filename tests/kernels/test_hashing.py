"""Hashes of texts beside CPython's own, and what their users rely on."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest

from abeyant.kernels.hashing import SEED, hash_texts

# CPython's own hashes of these, which are SipHash-1-3: hash(bytes(...)) under PYTHONHASHSEED=0, the seed of zeros
SIP_HASH_1_3 = {
    1: 7541581120933061747,
    7: 386219405845348734,
    8: 12042683478986832881,
    9: 12200889907289652906,
    15: 15800749542009048596,
    16: 3314984965159650497,
    31: 8060741833371613938,
    300: 18328248316486519924,
}
ZEROS = bytes(SEED)


def hashed(texts: list[bytes], seed: bytes = ZEROS) -> list[tuple[int, int]]:
    hashes = array("Q", [0, 0]) * len(texts)
    hash_texts(array("q", accumulate(map(len, texts), initial=0)), b"".join(texts), seed, hashes)
    return list(zip(hashes[::2], hashes[1::2], strict=True))


def test_it_is_sip_hash_1_3() -> None:
    texts = [bytes(n * 37 & 255 for n in range(length)) for length in SIP_HASH_1_3]
    assert hashed(texts) == [(value, value) for value in SIP_HASH_1_3.values()]


def test_each_half_of_the_seed_makes_one_hash() -> None:
    one, other = b"1" * 16, b"2" * 16
    assert hashed([b"key"], one + other) == [(hashed([b"key"], one * 2)[0][0], hashed([b"key"], other * 2)[0][0])]


def test_the_same_text_has_the_same_hash_wherever_it_stands() -> None:
    one, two, other, again = hashed([b"key", b"\xff\x00", b"", b"key"])
    assert one == again
    assert len({one, two, other}) == 3


def test_offsets_of_32_bits_are_those_of_64() -> None:
    texts = [b"", b"k", b"key", b"a key of some bytes", b"12345678", b"tail"]
    narrow = array("Q", [0, 0]) * len(texts)
    hash_texts(array("i", accumulate(map(len, texts), initial=0)), b"".join(texts), ZEROS, narrow)
    assert list(zip(narrow[::2], narrow[1::2], strict=True)) == hashed(texts)


def test_a_part_of_the_texts_is_hashed_as_in_the_whole() -> None:
    hashes = array("Q", [0, 0])
    hash_texts(array("i", [3, 12]), b"abckey-00010", ZEROS, hashes)  # its last byte is loaded with those before
    assert (hashes[0], hashes[1]) == hashed([b"key-00010"])[0]


def test_texts_and_seeds_differ_and_the_uppermost_bits_are_spread() -> None:
    texts = [f"key-{number:07d}".encode() for number in range(20_000)]
    one, other = zip(*hashed(texts, bytes(range(SEED))), strict=True)
    assert len({*one, *other}) == 40_000
    parts = [sum(value >> 60 == part for value in one) for part in range(16)]
    assert min(parts) > 1000
    assert max(parts) < 1500


def test_no_texts_have_no_hashes() -> None:
    assert hashed([]) == []


def test_offsets_that_lie_are_refused() -> None:
    hashes = array("Q", [0, 0])
    with pytest.raises(ValueError, match="offsets must be from 0 to 3, the size of data, and must not decrease"):
        hash_texts(array("q", [0, 4]), b"abc", ZEROS, hashes)
    with pytest.raises(ValueError, match="offsets must be from 0"):
        hash_texts(array("q", [2, 1]), b"abc", ZEROS, hashes)
    with pytest.raises(ValueError, match="offsets must be from 0"):
        hash_texts(array("q", [-1, 1]), b"abc", ZEROS, hashes)
    with pytest.raises(ValueError, match="hashes has 2 elements, expected 4, as many as offsets minus 1, times 2"):
        hash_texts(array("q", [0, 1, 2]), b"abc", ZEROS, hashes)
    with pytest.raises(ValueError, match="offsets is empty"):
        hash_texts(array("q"), b"", ZEROS, array("Q"))
    with pytest.raises(ValueError, match="seed has 3 bytes, expected 32"):
        hash_texts(array("q", [0, 1]), b"abc", b"abc", hashes)
    with pytest.raises(TypeError, match="offsets must hold signed 64-bit integers"):
        hash_texts(array("f", [0, 1]), b"abc", ZEROS, hashes)
    with pytest.raises(ValueError, match="offsets must be from 0 to 3, the size of data, and must not decrease"):
        hash_texts(array("i", [0, 4]), b"abc", ZEROS, hashes)
