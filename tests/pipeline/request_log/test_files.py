"""Finding a log's files, naming their instances, cutting them in pieces, and reading damaged ones."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.errors import AbeyantError
from abeyant.pipeline.request_log import files as log_files
from abeyant.pipeline.request_log.files import (
    Chunk,
    DamagedFileError,
    LogFile,
    LongLineError,
    chunks,
    find_logs,
    no_request,
    read_lines,
)

LINES = [f"line {number}".encode() for number in range(3000)]
TEXT = b"\n".join(LINES) + b"\n"


def put(path: Path, content: bytes = TEXT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def read(path: Path, size: int = log_files.CHUNK_BYTES) -> tuple[list[bytes | LongLineError], str]:
    """Read a file by its chunks; return its lines and what was wrong with it."""
    found: list[bytes | LongLineError] = []
    for chunk in chunks(find_logs(path), size):
        try:
            found += read_lines(chunk)
        except DamagedFileError as error:
            return found, str(error)
    return found, ""


def test_files_globs_and_directories(tmp_path: Path) -> None:
    one = put(tmp_path / "broker-1" / "kafka-request.log")
    old = put(tmp_path / "broker-1" / "deep" / "kafka-request.log.2026-11-20-07.gz", gzip.compress(TEXT))
    two = put(tmp_path / "broker-2" / "kafka-request.log")
    put(tmp_path / "broker-2" / "server.log")
    other = put(tmp_path / "named otherwise.txt")

    def paths(*given: str | Path) -> set[str]:
        return {file.path for file in find_logs([str(path) for path in given])}

    assert paths(tmp_path) == {str(one), str(old), str(two)}
    assert paths(tmp_path / "*" / "kafka-request.log*") == {str(one), str(two)}
    assert paths(tmp_path / "**" / "kafka-request.log*") == {str(one), str(old), str(two)}
    assert paths(other, one, tmp_path / "broker-1") == {str(other), str(one), str(old)}
    assert paths(f"file://{tmp_path / 'broker-2'}") == {f"file://{two}"}
    assert find_logs(f"file://{one}")[0].instance == "broker-1"


def test_a_glob_passes_over_folders_without_a_log(tmp_path: Path) -> None:
    os.chdir(tmp_path)
    Path("mix/kafka-0").mkdir(parents=True)
    for name in ("a-json.log", "b-json.log", "c/server.log"):
        put(Path("mix/dock") / name)
    with pytest.raises(AbeyantError) as caught:
        find_logs("mix/*")
    assert str(caught.value) == (
        "no kafka-request* in mix/dock: 3 other files left out; to read them, name them: 'mix/dock/*'"
    )
    with pytest.raises(AbeyantError, match="3 other files"):
        find_logs("mix/dock")
    for pod in range(3):
        put(Path(f"pods/kafka-{pod}/kafka.log"))
    put(Path("pods/README"))
    for path in ("pods", "pods/kafka-*", "pods/kafka-[0-2]"):
        with pytest.raises(
            AbeyantError, match=r"no kafka-request\* in .*: [34] other files left out; to read them, name them: "
        ) as told:
            find_logs(path)
        *_, mend = shlex.split(str(told.value))
        assert {file.path for file in find_logs(mend)} == {f"{tmp_path}/pods/kafka-{pod}/kafka.log" for pod in range(3)}
    one = put(tmp_path / "mix" / "kafka-1" / "kafka-request.log")
    said = list[str]()
    assert [file.path for file in find_logs("mix/*", left_out=said.append)] == [str(one)]
    assert said == [str(caught.value)]


def test_a_name_that_looks_like_a_glob_is_a_name_first(tmp_path: Path) -> None:
    odd = put(tmp_path / "a [1] {b} *" / "kafka-request.log")
    assert [file.path for file in find_logs(odd)] == [str(odd)]
    assert read(odd) == (LINES, "")


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    file = put(tmp_path / "b" / "kafka-request.log")
    (tmp_path / "link").symlink_to(file)
    os.chdir(tmp_path)
    assert len(find_logs([file, "b", "b/../b/kafka-request.log", "link", tmp_path])) == 1


def test_the_folder_names_the_instance_and_more_of_it_where_needed(tmp_path: Path) -> None:
    for folder in ("a/broker-1", "a/broker-2", "b/broker-1"):
        put(tmp_path / folder / "kafka-request.log")
    one_site = find_logs(tmp_path / "a")
    assert [file.instance for file in one_site] == ["broker-1", "broker-2"]
    assert [file.instance for file in find_logs(tmp_path)] == ["a/broker-1", "a/broker-2", "b/broker-1"]
    named = find_logs(tmp_path, instance="all")
    assert {file.instance for file in named} == {"all"}
    assert len({file.label for file in named}) == 3
    assert {f.instance for f in find_logs(tmp_path, instance=lambda path: path.split("/")[-3])} == {"a", "b"}
    with pytest.raises(AbeyantError, match="cannot be named"):
        find_logs(tmp_path, instance="*")


def test_what_cannot_be_found_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe")
    for path, message in [
        ("gone", "no such file or directory: "),
        ("gone*", "nothing matches "),
        ("empty", "no kafka-request* in "),
        ("dangling", "no such file or directory: "),
        ("pipe", "cannot read "),
        ("pip*", "cannot read "),
    ]:
        with pytest.raises(AbeyantError) as caught:
            find_logs(str(tmp_path / path))
        assert str(caught.value).startswith(message)
        assert path.replace("pip*", "pipe") in str(caught.value)
    for path in ("-", str(tmp_path / "pipe"), "/dev/null"):
        with pytest.raises(
            AbeyantError, match="write it to a file first, as in: kubectl logs POD > broker-1/kafka-req"
        ):
            find_logs(path)
    for uri in ("file:///nowhere/at/all", "nosuchscheme://x/y"):
        with pytest.raises(AbeyantError, match=uri):
            find_logs(uri)
    with pytest.raises(AbeyantError, match="no log was named"):
        find_logs([])


def test_a_log_that_may_appear_is_awaited_if_wanted(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    put(tmp_path / "others" / "server.log")
    log = put(tmp_path / "b" / "kafka-request.log")
    paths = [str(tmp_path / name) for name in ("empty", "others", "other*", "gone*", "b/kafka-request.log.1", "b")]
    said = list[str]()
    assert [file.path for file in find_logs(paths, awaited=said.append)] == [str(log)]
    assert [one.partition(str(tmp_path))[0] for one in said] == [
        *["no kafka-request* in "] * 3,
        "nothing matches ",
        "no such file or directory: ",
    ]
    for path in (str(tmp_path / "gone" / "kafka-request.log"), "-"):
        with pytest.raises(AbeyantError):
            find_logs(path, awaited=said.append)


@pytest.mark.skipif(sys.platform != "linux", reason="drops root's right to read with Linux's setpriv")
def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    file = put(tmp_path / "kafka-request.log")
    file.chmod(0)
    program = f"from abeyant.pipeline.request_log.files import find_logs; find_logs({str(file)!r})"
    command = [sys.executable, "-c", program]
    if os.geteuid() == 0:
        # Root reads everything, unless it gives up that one right.
        command = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all", *command]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert f"cannot read {file}: Permission denied" in run.stderr.splitlines()[-1]


@given(
    st.integers(1, 300),
    st.lists(st.binary(max_size=40).map(lambda b: b.replace(b"\n", b"")), max_size=20),
    st.booleans(),
)
def test_chunks_of_any_size_give_each_line_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, size: int, lines: list[bytes], ended: bool
) -> None:
    text = b"\n".join(lines) + (b"\n" if ended and lines else b"")
    whole = [line.rstrip(b"\r") for line in text.split(b"\n")]
    if text.endswith(b"\n") or not text:
        whole.pop()
    path = put(tmp_path_factory.mktemp("chunks") / "kafka-request.log", text.replace(b"\x1f\x8b", b"..") or b"")
    if path.read_bytes() == text and not text.startswith((*log_files._UNREAD, *log_files._COMPRESSIONS)):
        assert read(path, size) == (whole, "")


def test_chunks_tile_the_file() -> None:
    plain = LogFile("p", "i", "l", 100, compression="")
    assert [(c.start, c.end) for c in chunks([plain], 40)] == [(0, 40), (40, 80), (80, 100)]
    packed = LogFile("p", "i", "l", 100, compression="gzip")
    assert chunks([packed], 40) == [Chunk(packed, 0, 100)]
    assert chunks([LogFile("p", "i", "l", 0, compression="")]) == []


@pytest.fixture(params=["isal", "zlib"])
def decompress(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What decompresses gzip: a worker whose Python lacks isal does with zlib."""
    if request.param == "isal":
        pytest.importorskip("isal")
    else:
        monkeypatch.setattr(log_files, "_FAST", gzip.GzipFile)


@pytest.mark.usefixtures("decompress")
def test_gzip_is_known_by_its_content(tmp_path: Path) -> None:
    assert read(put(tmp_path / "kafka-request.log.1", gzip.compress(TEXT))) == (LINES, "")
    assert read(put(tmp_path / "kafka-request.log.2.gz", TEXT)) == (LINES, "")
    # Rotation may append one gzip file to another.
    members = gzip.compress(TEXT[:500]) + gzip.compress(TEXT[500:])
    assert read(put(tmp_path / "kafka-request.log.3.gz", members)) == (LINES, "")


@pytest.mark.usefixtures("decompress")
def test_a_gzip_file_that_was_cut_off_gives_what_it_holds(tmp_path: Path) -> None:
    packed = gzip.compress(os.urandom(300_000).hex().encode() + b"\n" + TEXT)
    for keep in (len(packed) - 4, len(packed) - 9, len(packed) // 2, 11, 3):
        lines, damage = read(put(tmp_path / "kafka-request.log.gz", packed[:keep]))
        assert damage == "the gzip file is cut off"
        assert len(lines) == (0 if keep <= len(packed) // 2 else 3001 if keep == len(packed) - 4 else len(lines))


def test_what_is_read_of_a_damaged_gzip_file_does_not_depend_on_who_decompresses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("isal")
    random = Random(1)
    text = b"".join(b"%d: %s\n" % (number, random.randbytes(40).hex().encode()) for number in range(20_000))
    packed = gzip.compress(text, 1) + gzip.compress(text[:99_999], 9)
    damaged = [packed[: random.randrange(len(packed))] for _ in range(8)]
    for _ in range(8):
        flipped = bytearray(packed)
        flipped[random.randrange(len(packed))] ^= 1 << random.randrange(8)
        damaged.append(bytes(flipped))
    files = [put(tmp_path / f"kafka-request.log.{number}", content) for number, content in enumerate(damaged)]
    found = list(map(read, files))
    assert max(len(lines) for lines, _ in found) > 10_000
    monkeypatch.setattr(log_files, "_FAST", gzip.GzipFile)
    assert list(map(read, files)) == found


@pytest.mark.usefixtures("decompress")
def test_a_gzip_file_that_was_damaged_gives_what_came_before(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT)
    flipped = bytearray(packed)
    flipped[-6] ^= 0xFF  # the check sum
    lines, damage = read(put(tmp_path / "kafka-request.log.gz", bytes(flipped)))
    assert lines == LINES
    assert damage.startswith("damaged gzip: CRC check failed")
    lines, damage = read(put(tmp_path / "kafka-request.log.gz", packed + b"\nappended text"))
    assert lines == LINES
    assert damage.startswith("damaged gzip: ")
    flipped = bytearray(packed)
    flipped[len(packed) // 2] ^= 0xFF
    lines, damage = read(put(tmp_path / "kafka-request.log.gz", bytes(flipped)))
    assert damage
    assert lines[:100] == LINES[: min(len(lines), 100)]


@pytest.mark.parametrize("magic", [b"\xfd7zXZ\x00", b"PK\x03\x04"])
def test_other_compression_is_named(tmp_path: Path, magic: bytes) -> None:
    lines, damage = read(put(tmp_path / "kafka-request.log.1", magic + TEXT))
    assert lines == []
    assert damage.startswith("compressed with ")


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lambda text: _zstd(text)])
@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_an_archive_of_several_files_is_to_be_unpacked(
    tmp_path: Path, pack: Callable[[bytes], bytes], form: int
) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for broker in range(3):
            info = tarfile.TarInfo(f"broker-{broker}/kafka-request.log")
            info.size = len(TEXT)
            archive.addfile(info, io.BytesIO(TEXT))
    path = put(tmp_path / "the logs.tgz", pack(buffer.getvalue()))
    said = f"files inside a tar archive are not read: unpack it first (tar xf '{path}')"
    assert read(path) == ([], said)
    assert no_request(find_logs(path)) == f"no request in 1 file: {path}: {said}"


def _zstd(text: bytes) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(text)
    return bytes(sink.getvalue())


SKIPPABLE = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(TEXT) * 2,
        bz2.compress(TEXT) * 2,
        _zstd(TEXT) * 2,
        SKIPPABLE + _zstd(TEXT) * 2,
        _zstd(TEXT) + SKIPPABLE + _zstd(TEXT),
    ],
    ids=["gzip", "bzip2", "zstd", "zstd, a skippable frame first", "zstd, a skippable frame within"],
)
def test_files_put_together_are_read_to_the_end(tmp_path: Path, packed: bytes) -> None:
    assert read(put(tmp_path / "kafka-request.log", packed)) == (LINES * 2, "")


@pytest.mark.parametrize("mark", ["\ufeff", ""])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_as_powershell_writes_it_or_without_its_mark(tmp_path: Path, encoding: str, mark: str) -> None:
    lines = [f"line {number} é \U0001f600" for number in range(3000)]
    path = put(tmp_path / "kafka-request.log", (mark + "\r\n".join(lines)).encode(encoding)[:-1])
    found, wrong = read(path)
    assert found[:-1] == [one.encode() for one in lines[:-1]]
    assert (found[-1], wrong) == (lines[-1][:-1].encode(), "")  # without the half of a letter
    [file] = find_logs(path)
    assert chunks([file])[0].cost == file.size


def test_a_huge_line_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_files, "MAX_LINE_BYTES", 100)
    long = b"x" * 99 + b"\n" + b"y" * 1000 + b"\n" + b"z\n" + b"w" * 250
    for content in (long, gzip.compress(long)):
        path = put(tmp_path / "kafka-request.log", content)
        for size in (10, 99, 100, 101, 5000):
            lines, damage = read(path, size)
            assert damage == ""
            assert [line if isinstance(line, bytes) else len(line.args) for line in lines] == [
                b"x" * 99,
                1,
                b"z",
                1,
            ]


def test_a_file_that_grows_is_read_as_it_was_found(tmp_path: Path) -> None:
    path = put(tmp_path / "kafka-request.log")
    found = chunks(find_logs(path))
    with path.open("ab") as stream:
        stream.write(b"later\n")
    assert [line for chunk in found for line in read_lines(chunk)] == LINES
    path.unlink()
    with pytest.raises(DamagedFileError, match="cannot be read: No such file"):
        list(read_lines(found[0]))
