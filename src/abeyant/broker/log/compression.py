"""Compress and decompress records with Kafka's four codecs: gzip, snappy, lz4 and zstd.

A codec is given by its number in a batch's attributes. The decompressed size is limited. Snappy is written raw; when
reading, the framing of the Java library snappy-java is accepted as well, as in Kafka.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import partial

from abeyant.broker.log.errors import UndecodableError

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
NAMES = {"none": NONE, "uncompressed": NONE, "gzip": GZIP, "snappy": SNAPPY, "lz4": LZ4, "zstd": ZSTD}

# Kafka decompresses a batch as a stream. We hold it in memory, so its decompressed size is limited to Kafka's largest
# request (socket.request.max.bytes).
LARGEST = 104_857_600

_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16  # magic, version, lowest compatible version
_BLOCK = struct.Struct(">i")
_GZIP_FORMAT = 31  # zlib's `wbits` for a gzip header and a window of 32 kB
_SMALLEST_BUFFER = 65_536
_LIKELY_RATIO = 16


def decompress(codec: int, data: memoryview, most: int | None = None) -> bytes:
    """Return the decompressed records, of at most `most` bytes (default: `LARGEST`).

    Raises UndecodableError for an unknown codec, invalid data, or more than `most` bytes.
    """
    most = LARGEST if most is None else most
    if codec == NONE:
        if len(data) > most:
            raise _too_large(most)
        return bytes(data)
    try:
        decoder = _DECODERS[codec]
    except KeyError:
        raise UndecodableError(f"Unknown compression type id: {codec}") from None
    return decoder(data, most)


def compress(codec: int, data: bytes) -> bytes:
    """Return `data` compressed with `codec`, at the codec's default level."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return zlib.compress(data, wbits=_GZIP_FORMAT)
    import cramjam

    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(data))
    return bytes((cramjam.lz4 if codec == LZ4 else cramjam.zstd).compress(data))


def _gunzip(data: memoryview, limit: int) -> bytes:
    out = []
    remaining = limit
    rest: bytes | memoryview = data
    while rest:  # a gzip stream may have several members
        decoder = zlib.decompressobj(_GZIP_FORMAT)
        try:
            out.append(decoder.decompress(rest, remaining + 1))
        except zlib.error as error:
            raise UndecodableError(f"Failed to decompress record stream: gzip: {error}") from None
        remaining -= len(out[-1])
        if remaining < 0:
            raise _too_large(limit)
        if not decoder.eof:
            raise UndecodableError("Failed to decompress record stream: gzip: the data is truncated")
        rest = decoder.unused_data
    return out[0] if len(out) == 1 else b"".join(out)


def _unsnap(data: memoryview, limit: int) -> bytes:
    if data[: len(_XERIAL)] != _XERIAL:
        return _unsnap_block(data, limit)
    out = []
    remaining = limit
    position = _XERIAL_HEADER
    while position < len(data):
        if len(data) - position < _BLOCK.size:
            raise UndecodableError("Failed to decompress record stream: snappy: the data is truncated")
        size = _BLOCK.unpack_from(data, position)[0]
        position += _BLOCK.size
        if not 0 <= size <= len(data) - position:
            raise UndecodableError(f"Failed to decompress record stream: snappy: invalid block size {size}")
        out.append(_unsnap_block(data[position : position + size], remaining))
        remaining -= len(out[-1])
        position += size
    return b"".join(out)


def _unsnap_block(data: memoryview, limit: int) -> bytes:
    from cramjam import DecompressionError, snappy

    block = bytes(data)
    try:
        if snappy.decompress_raw_len(block) > limit:
            raise _too_large(limit)
        return bytes(snappy.decompress_raw(block))
    except DecompressionError as error:
        raise UndecodableError(f"Failed to decompress record stream: snappy: {error}") from None


def _decompress_into(name: str, data: memoryview, limit: int) -> bytes:
    import cramjam

    # `limit` is only allocated if the likely size was too small; pages that stay zero take no memory.
    decoder: Callable[[bytes, bytearray], int] = getattr(cramjam, name).decompress_into
    for capacity in (min(limit, _SMALLEST_BUFFER + _LIKELY_RATIO * len(data)), limit):
        out = bytearray(capacity)
        try:
            size = decoder(bytes(data), out)
        except cramjam.DecompressionError as error:
            reason = str(error)
            if "whole buffer" not in reason:
                raise UndecodableError(f"Failed to decompress record stream: {name}: {reason}") from None
            continue
        return bytes(memoryview(out)[:size])
    raise _too_large(limit)


def _too_large(limit: int) -> UndecodableError:
    return UndecodableError(f"Failed to decompress record stream: the records exceed {limit:,} bytes")


_DECODERS: dict[int, Callable[[memoryview, int], bytes]] = {
    GZIP: _gunzip, SNAPPY: _unsnap, LZ4: partial(_decompress_into, "lz4"), ZSTD: partial(_decompress_into, "zstd"),
}  # fmt: skip
