"""A log that grows, is rotated, and is written by halves: each line is read once, and whole."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from abeyant.pipeline.request_log.files import Chunk, LongLineError, read_lines
from abeyant.pipeline.request_log.growing import GrowingLog, Offsets
from abeyant.pipeline.request_log.requests import numbered_lines
from pipeline.request_log.kafka_lines import produce

LINES = [produce(remote=float(number)) for number in range(1, 60)]


class Reader:
    def __init__(self, folder: Path) -> None:
        self.log, self.at = GrowingLog(str(folder)), Offsets()

    def new(self, limit: int | None = None) -> list[bytes]:
        end, _ = self.log.latest(self.at, limit=limit)
        found = [line for _, piece in self.log.pieces(self.at, end) for line in read_lines(piece)]
        self.at = end
        return [line for line in found if isinstance(line, bytes)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "broker-1" / "kafka-request.log"
    path.parent.mkdir()
    put(path, LINES[:3])
    return path


def put(path: Path, lines: list[bytes]) -> None:
    with path.open("ab") as file:
        file.writelines(line + b"\n" for line in lines)


def test_only_what_has_come_since_is_read(log: Path) -> None:
    reader = Reader(log.parent)
    assert reader.new() == LINES[:3]
    assert reader.new() == []
    put(log, LINES[3:5])
    assert reader.new() == LINES[3:5]
    other = log.parent.parent / "broker-2" / log.name
    other.parent.mkdir()
    put(other, LINES[:1])
    assert Reader(log.parent.parent).new() == [*LINES[:5], LINES[0]]


def test_indented_documents_are_read_whole_and_files_of_them_are_told_apart(tmp_path: Path) -> None:
    reader = Reader(tmp_path)
    texts = [json.dumps({"_HOSTNAME": "kafka", "MESSAGE": LINES[n].decode()}, indent=8).encode() for n in range(4)]
    for name, mine in (("kafka-request.log", texts[:2]), ("kafka-request-2.log", texts[2:])):
        first, second = mine
        path = tmp_path / name
        path.write_bytes(first + b"\n" + second[:-40])
        assert reader.new() == first.splitlines()
        path.write_bytes(first + b"\n" + second + b"\n")
        assert reader.new() == second.splitlines()
        assert reader.new() == []


def test_a_line_by_halves_is_left_until_its_end_is_there(log: Path) -> None:
    reader = Reader(log.parent)
    with log.open("ab") as file:
        file.write(LINES[3][:50])
    assert reader.new() == LINES[:3]
    assert reader.new() == []
    with log.open("ab") as file:
        file.write(LINES[3][50:] + b"\n" + LINES[4][:1])
    assert reader.new() == [LINES[3]]


def test_a_first_line_by_halves_is_no_file_yet(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    path.write_bytes(LINES[0][:100])
    reader = Reader(path)
    assert reader.new() == []
    path.write_bytes(LINES[0] + b"\n")
    assert reader.new() == [LINES[0]]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_rotated_file_is_read_to_its_end(log: Path, compressed: bool) -> None:
    reader = Reader(log.parent)
    assert reader.new() == LINES[:3]
    put(log, LINES[3:5])
    old = log.with_name("kafka-request.log.2026-11-25-14")
    log.rename(old)
    if compressed:
        old.with_name(f"{old.name}.gz").write_bytes(gzip.compress(old.read_bytes()))
        assert reader.new() == LINES[3:5], "while both are there"
        old.unlink()
    put(log, LINES[5:7])
    assert reader.new() == LINES[5 if compressed else 3 : 7]
    assert reader.new() == []


def test_a_file_that_was_compressed_before_it_was_read_to_its_end(log: Path) -> None:
    reader = Reader(log.parent)
    assert reader.new() == LINES[:3]
    put(log, LINES[3:5])
    log.with_name(f"{log.name}.1.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    assert reader.new() == LINES[3:5]
    assert reader.new() == []


def test_a_file_that_is_copied_and_cut_off(log: Path) -> None:
    reader = Reader(log.parent)
    assert reader.new() == LINES[:3]
    put(log, LINES[3:5])
    shutil.copy(log, log.with_name(f"{log.name}.1"))
    log.write_bytes(b"")
    assert reader.new() == LINES[3:5]
    put(log, LINES[5:7])
    assert reader.new() == LINES[5:7]


@pytest.mark.parametrize("compressed", [False, True])
def test_a_file_that_is_rotated_between_the_plan_and_the_work_or_during_it(log: Path, compressed: bool) -> None:
    reader = Reader(log.parent)
    end, _ = reader.log.latest({})
    put(log, LINES[50:52])  # they come after the plan
    ((name, piece),) = reader.log.pieces({}, end)
    old = log.with_name(f"{log.name}.1")

    def rotate(to: Path) -> None:
        if compressed and not to.name.endswith(".gz"):
            to = to.with_name(f"{to.name}.gz")
            to.write_bytes(gzip.compress(log.read_bytes()))
            log.unlink()
        else:
            log.rename(to)
        put(log, LINES[40:45])

    times = 0

    def work(piece: Chunk) -> list[bytes | LongLineError]:
        nonlocal times
        times += 1
        if times == 1:
            rotate(old)
        return list(read_lines(piece))

    assert reader.log.read(name, piece, work) == LINES[:3]
    assert times == 2
    assert reader.log.read(name, piece, work) == LINES[:3]
    (old if old.exists() else old.with_name(f"{old.name}.gz")).unlink()
    assert reader.log.read(name, piece, work) == []


def test_a_large_log_is_read_in_parts_of_all_brokers(log: Path) -> None:
    put(log, LINES[3:30])
    other = log.parent.parent / "broker-2" / log.name
    other.parent.mkdir()
    put(other, LINES[30:50])
    reader = Reader(log.parent.parent)
    parts = []
    while part := reader.new(limit=len(LINES[0]) * 12):
        parts.append(part)
    assert all(len(part) <= 12 for part in parts)
    assert all({line in LINES[30:50] for line in part} == {True, False} for part in parts[:4])
    assert sorted(line for part in parts for line in part) == sorted(LINES[:50])


def test_the_parts_of_a_line_that_a_container_cut_are_left_until_the_last_is_there(tmp_path: Path) -> None:
    path = tmp_path / "kafka-request.log"
    part, rest = LINES[1][:80], LINES[1][80:]

    def cri(mark: bytes, content: bytes) -> bytes:
        return b"2026-11-25T10:00:00.000000000Z stdout " + mark + b" " + content

    put(path, [cri(b"F", LINES[0]), cri(b"P", part)])
    reader = Reader(path)
    assert reader.new() == [cri(b"F", LINES[0])]
    put(path, [cri(b"F", rest)])
    end, is_all = reader.log.latest(reader.at)
    assert is_all
    ((_, piece),) = reader.log.pieces(reader.at, end)
    assert [line for _, line in numbered_lines(piece)] == [cri(b"P", LINES[1])]
