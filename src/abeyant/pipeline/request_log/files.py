"""Find a log's files, name the instance that wrote each, and read their lines in chunks.

We open files ourselves, inside Spark's tasks, where Spark's own text source would do less: it has no line
numbers, turns invalid UTF-8 into replacement characters, and stops the whole job (or, if set to ignore damage,
silently drops the rest of the file) at a gzip file that was cut off.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import os
import re
import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, cast

from abeyant.errors import AbeyantError
from abeyant.pipeline.request_log.paths import NoLogYetError, expand, is_remote
from abeyant.pipeline.spark.remote_files import AZURE, HDFS, S3A, Reach, system_of

try:
    from isal.igzip import IGzipFile
except ImportError:  # on a worker whose Python lacks it
    _FAST: type[gzip.GzipFile] = gzip.GzipFile
else:
    _FAST = IGzipFile

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

__all__ = [
    "Chunk",
    "DamagedFileError",
    "LogFile",
    "LongLineError",
    "Paths",
    "chunks",
    "find_logs",
    "is_remote",
    "labelled",
    "lines_of",
    "need_session",
    "open_text",
    "read_blocks",
    "read_lines",
]

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

CHUNK_BYTES: Final = 64 << 20
MAX_LINE_BYTES: Final = 32 << 20
_BLOCK_BYTES: Final = 1 << 18  # small enough to stay in the processor's cache from one step to the next

_UTF_16: Final = "UTF-16"
_COMPRESSIONS: Final = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    **{bytes([0x50 + number]) + b"\x2a\x4d\x18": "zstd" for number in range(16)},  # a skippable frame is the first
    codecs.BOM_UTF16_LE: _UTF_16,  # as PowerShell writes what `docker logs` prints
    codecs.BOM_UTF16_BE: _UTF_16,
}
# UTF-16 without a byte order mark: the first two characters are ASCII, as in every line that can be read.
_UNMARKED: Final = re.compile(rb"(?:(?P<LE>[^\0]\0[^\0]\0)|(?P<BE>\0[^\0]\0[^\0]))", re.DOTALL)
_TAR: Final = b"ustar"
_TAR_BYTES: Final = 512  # header of the archive's first file, with `_TAR` at `_TAR_AT`
_TAR_AT: Final = 257
_UNREAD: Final = {b"\xfd7zXZ": "xz", b"PK\x03\x04": "zip"}


class DamagedFileError(Exception):
    """Raised where a file cannot be read any further; the message says why. The lines before have been yielded."""


class LongLineError(Exception):
    """Yielded in place of a line longer than `MAX_LINE_BYTES`; the next line can be read."""


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log."""

    path: str
    instance: str
    """Name of the broker that wrote the file."""
    label: str
    """The shortest end of the path that distinguishes the file from the instance's other files."""
    size: int
    """Size in bytes when the file was found: what a live broker appends later is not read."""
    compression: str
    """`gzip`, `bzip2`, `zstd`, Python's codec for UTF-16 (with the byte order if the file has no BOM), or ""."""
    reach: Reach = field(default=(), repr=False)
    """Arguments to open a URI: of `WebHdfs` for `hdfs://`, else of Arrow's file system. May hold secret keys."""
    folder: str = ""
    """The instance that `find_logs` took from the path: it does not depend on the file's content."""
    by_line: bool = False
    """Whether the file has lines of several brokers, named in the text around each line (`brokers`)."""
    joined: bool = False
    """Whether this file and files of other names count as one broker's, as nothing in them names a broker."""

    @property
    def compressed(self) -> bool:
        """Return whether the file must be decoded from its beginning: a task cannot start in the middle."""
        return self.compression != ""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a file that one task reads: the lines that begin in [start, end), in bytes.

    In a compressed file, `start` counts bytes of uncompressed text, and the chunk has all lines from there on.
    """

    file: LogFile
    start: int
    end: int
    lines_before: int = 0

    @property
    def cost(self) -> int:
        """Approximate bytes of text in the chunk, assuming that request logs compress 20:1."""
        return (self.end - self.start) * (
            1 if not self.file.compressed or self.file.compression.startswith(_UTF_16) else 20
        )


def need_session(paths: Paths) -> bool:
    """Return whether listing these paths needs the settings of a Spark session: S3A, HDFS and Azure do."""
    all_paths = [paths] if isinstance(paths, str | os.PathLike) else paths
    return any(os.fspath(path).startswith((S3A, HDFS, *AZURE)) for path in all_paths)


def find_logs(
    paths: Paths,
    *,
    instance: str | Callable[[str], str] | None = None,
    reach: Callable[[str], Reach] | None = None,
    left_out: Callable[[str], None] | None = None,
    awaited: Callable[[str], None] | None = None,
) -> list[LogFile]:
    """Find the files of a log: files, globs, and directories searched for `kafka-request*`.

    `instance` names the broker of all files, or is a function from a file's path to the broker. By default, a file's
    instance is its folder, with as many parent folders as needed to distinguish it. A path with a scheme (`s3://...`)
    is opened through Arrow's file systems, or over HTTP for HDFS, with the arguments that `reach` returns for it. If a
    glob matches folders without a log, `left_out` is called with a message for each such folder that has other files.
    Raises `AbeyantError` for paths that are missing or cannot be read, and for a path without a log. If a log may still
    appear there and `awaited` is given, `awaited` is called with the message instead.
    """
    all_paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    if not all_paths:
        raise AbeyantError("no log was named: give at least one file, glob or directory")
    entries: dict[str, tuple[int, str, Reach]] = {}
    for path in [os.fspath(path) for path in all_paths]:
        arguments = reach(path) if reach is not None and need_session(path) else ()
        try:
            matches = expand(path, arguments, left_out or (lambda sentence: None))
        except NoLogYetError as error:
            if awaited is None:
                raise
            awaited(str(error))
            continue
        for file in matches:
            if file not in entries:
                entries[file] = (*_look(file, arguments), arguments)
    files = sorted(entries)
    if instance is None:
        folders = _shortest({file.rpartition("/")[0] for file in files})
        instances = {file: folders[file.rpartition("/")[0]] for file in files}
    elif isinstance(instance, str):
        instances = dict.fromkeys(files, instance)
    else:
        instances = {file: instance(file) for file in files}
    if "*" in instances.values():
        raise AbeyantError("an instance cannot be named *: in the tables, * stands for all instances")
    return labelled(LogFile(file, instances[file], "", *entries[file], instances[file]) for file in files)


def labelled(files: Iterable[LogFile]) -> list[LogFile]:
    """Return the files, labelled with the shortest ends of their paths that are unique within the instance."""
    paths: dict[str, set[str]] = {}
    for file in (files := list(files)):
        paths.setdefault("*" if file.by_line else file.instance, set()).add(file.path)
    for name in paths.keys() - {"*"}:
        paths[name] |= paths.get("*", set())  # these may have lines of any instance
    labels = {name: _shortest(instance_paths) for name, instance_paths in paths.items()}
    return [replace(file, label=labels["*" if file.by_line else file.instance][file.path]) for file in files]


def chunks(files: Iterable[LogFile], size: int = CHUNK_BYTES) -> list[Chunk]:
    """Cut files into chunks for tasks; a compressed file is one chunk, as it can be read from its start only."""
    pieces: list[Chunk] = []
    for file in files:
        step = max(file.size, 1) if file.compressed else size
        pieces += [Chunk(file, at, min(at + step, file.size)) for at in range(0, file.size, step)]
    return pieces


def read_lines(chunk: Chunk) -> Iterator[bytes | LongLineError]:
    """Yield the lines that begin in a chunk, without line ends; a `LongLineError` in place of a line that is too long.

    Raises `DamagedFileError` where nothing more can be read.
    """
    for block in read_blocks(chunk):
        if isinstance(block, LongLineError):
            yield block
        else:
            yield from lines_of(block)


def lines_of(block: bytes) -> list[bytes]:
    """Return a block's lines without line ends."""
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [line.rstrip(b"\r") for line in lines] if b"\r" in block else lines


def read_blocks(chunk: Chunk) -> Iterator[bytes | LongLineError]:
    """Yield the lines that begin in a chunk in blocks of about 256 KiB, each of whole lines.

    Raises `DamagedFileError` where nothing more can be read. Memory: a few blocks, or the longest line.
    """
    compression = chunk.file.compression
    try:
        with _open(chunk.file.path, chunk.file.reach) as raw:
            if chunk.file.compressed:
                with _decompressed(raw, compression) as stream:
                    if not chunk.start:
                        _refuse_tar(cast("io.BufferedReader", stream).peek(_TAR_BYTES), chunk.file.path)
                    remaining = chunk.start
                    while remaining > 0 and (part := stream.read(min(remaining, _BLOCK_BYTES))):
                        remaining -= len(part)
                    yield from _blocks(stream, None)
                return
            magic = raw.read(_TAR_BYTES)
            for prefix, name in _UNREAD.items():
                if magic.startswith(prefix):
                    raise DamagedFileError(f"compressed with {name}, which is not supported: decompress the file first")
            _refuse_tar(magic, chunk.file.path)
            raw.seek(max(chunk.start - 1, 0))
            if chunk.start > 0:
                # From the byte before: when that one ends a line, the chunk's first byte begins one.
                while (part := raw.readline(MAX_LINE_BYTES)) and not part.endswith(b"\n"):
                    pass
            yield from _blocks(raw, chunk.end - raw.tell())
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        cut = isinstance(error, EOFError)
        raise DamagedFileError(f"the {compression} file is cut off" if cut else f"damaged gzip: {error}") from error
    except OSError as error:
        if compression in ("bzip2", "zstd") and error.errno is None:  # as bz2 and Arrow raise it for damaged data
            raise DamagedFileError(f"cut off, or damaged {compression}: {error}") from error
        raise DamagedFileError(f"cannot be read: {error.strerror or error}") from error


def _refuse_tar(head: bytes, path: str) -> None:
    if head.startswith(_TAR, _TAR_AT):
        unpack = f"tar xf {shlex.quote(path)}"
        raise DamagedFileError(f"files inside a tar archive are not read: unpack it first ({unpack})")


def counted_files(files: Sequence[LogFile]) -> str:
    """Return the number of files with its noun, such as "2 files"."""
    return f"{len(files):,} file{'' if len(files) == 1 else 's'}"


def named_files(files: Sequence[LogFile]) -> str:
    """Return the path of the first file, and how many more there are."""
    return files[0].path if len(files) == 1 else f"{files[0].path} and {len(files) - 1} more"


def no_request(files: Sequence[LogFile]) -> str:
    """Return a message that the files have no request, with the error of the first file that cannot be read."""
    message = f"no request in {counted_files(files)}: {named_files(files)}"
    for file in files:
        lines = read_lines(Chunk(file, 0, file.size))
        try:
            for _ in lines if file.compressed else islice(lines, 1):
                pass
        except DamagedFileError as error:
            return f"{message}: {error}" if len(files) == 1 else f"{message}: {file.path}: {error}"
    return f"{message}: Kafka logs requests while its logger kafka.request.logger is at DEBUG (docs/pipeline.md)"


@contextmanager
def open_text(file: LogFile) -> Iterator[IO[bytes]]:
    """Open a file as a binary stream of its text, decompressed. Raises OSError and the decompressor's errors."""
    with _open(file.path, file.reach) as raw:
        if file.compressed:
            with _decompressed(raw, file.compression) as stream:
                yield stream
        else:
            yield raw


def _decompressed(raw: IO[bytes], compression: str) -> IO[bytes]:
    if compression == "gzip":
        return cast("IO[bytes]", io.BufferedReader(_Gzip(raw), _BLOCK_BYTES))
    if compression == "bzip2":
        return cast("IO[bytes]", bz2.BZ2File(raw))
    if compression.startswith(_UTF_16):
        return cast("IO[bytes]", io.BufferedReader(_Recoded(raw, compression), 1 << 20))
    import pyarrow as pa

    return cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", pa.CompressedInputStream(raw, "zstd")), 1 << 20))


class _Gzip(io.RawIOBase):
    """A stream of a gzip file's text. isal decompresses three times as fast as zlib; where isal fails, zlib continues.

    Before damaged data isal loses up to a block of decompressed text; zlib loses nothing.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw = raw
        self._at = 0
        self._stream: gzip.GzipFile = _FAST(fileobj=raw)
        self._failed = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            part = self._stream.read1(len(view))
        except Exception as error:
            if self._failed or (isinstance(error, OSError) and error.errno is not None):  # of the disk or the store
                raise
            self._failed = True
            self._raw.seek(0)
            self._stream = gzip.GzipFile(fileobj=self._raw)
            self._stream.seek(self._at)
            part = self._stream.read1(len(view))
        self._at += len(part)
        view[: len(part)] = part
        return len(part)


class _Recoded(io.RawIOBase):
    """A stream of a UTF-16 file's text in UTF-8."""

    def __init__(self, raw: IO[bytes], encoding: str) -> None:
        self._raw = raw
        self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        self._text = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        while not self._text and (part := self._raw.read(_BLOCK_BYTES)):
            self._text = self._decoder.decode(part).encode("utf-8", "replace")
        view = memoryview(buffer).cast("B")
        block, self._text = self._text[: len(view)], self._text[len(view) :]
        view[: len(block)] = block
        return len(block)


def _blocks(stream: Any, remaining: int | None) -> Iterator[bytes | LongLineError]:
    """Yield, in blocks, the whole lines that begin in the next `remaining` bytes of the stream, or all if None."""
    rest, is_long = b"", False
    step = min(_BLOCK_BYTES, MAX_LINE_BYTES)
    while True:
        if remaining is None or remaining > 0:  # read1: the data before a damaged part is not lost
            block = stream.read1(step if remaining is None else min(step, remaining))
        elif rest or is_long:
            block = stream.readline(step)
        else:
            return
        if not block:
            break
        remaining = None if remaining is None else remaining - len(block)
        first = block.find(b"\n") + 1
        if is_long or len(rest) + (first or len(block)) > MAX_LINE_BYTES:
            if not is_long:
                yield LongLineError(f"longer than {MAX_LINE_BYTES >> 20} MiB")
            is_long = not first
            rest, block = b"", block[first:] if first else b""
        end = block.rfind(b"\n") + 1
        if end:
            yield rest + block[:end]
            rest = block[end:]
        else:
            rest += block
    if rest:
        yield rest


def _open(path: str, reach: Reach) -> IO[bytes]:
    if not is_remote(path):
        return open(path, "rb")
    system, name = system_of(path, reach)
    return cast("IO[bytes]", io.BufferedReader(cast("io.RawIOBase", system.open_input_file(name)), 1 << 20))


def _look(path: str, reach: Reach) -> tuple[int, str]:
    """Return a file's size and compression. The first bytes show the compression, as file names can be wrong."""
    try:
        with _open(path, reach) as stream:
            magic = stream.read(4)
            compression = next((name for first, name in _COMPRESSIONS.items() if magic.startswith(first)), "")
            if not compression and (match := _UNMARKED.match(magic)) is not None:
                compression = f"{_UTF_16}-{match.lastgroup}"
            return stream.seek(0, os.SEEK_END), compression
    except OSError as error:
        raise AbeyantError(f"cannot read {path}: {error.strerror or error}") from error


def _shortest(paths: set[str]) -> dict[str, str]:
    """Map each path to its last parts, as few as make all results distinct; the same number for all paths."""
    parts = {path: Path(path).parts for path in paths}
    for count in range(1, max((len(p) for p in parts.values()), default=0) + 1):
        names = {path: "/".join(p[-count:]) for path, p in parts.items()}
        if len(set(names.values())) == len(paths):
            return {path: name if name.strip("/") else path or "/" for path, name in names.items()}
    return {path: path for path in paths}
