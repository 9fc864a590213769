"""A log on disk: opened again it is as it was, killed it keeps every acknowledged batch, damaged it is cut."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from abeyant.broker.log import Batch, LogConfig, split
from abeyant.broker.log.directory import DataDirectory, disk_space
from abeyant.broker.log.disk_log import DiskLog
from abeyant.broker.log.errors import StorageError
from abeyant.broker.log.files import replace_file
from abeyant.broker.log.journal import Journal
from abeyant.errors import AbeyantError
from broker.log.batches import NOW, batch, marker
from broker.log.invariants import check_log

TOPIC = uuid.UUID(int=7)
SIZE = batch([b"0000"]).size


def open_log(path: Path, **settings: Any) -> DiskLog:
    return DiskLog(path / "orders-0", "orders", 0, TOPIC, LogConfig(**settings), NOW, lambda gone, _: gone.unlink())


def fill(log: DiskLog, count: int, *, epoch: int = 0) -> None:
    for _ in range(count):
        sequence = log.end_offset
        one = batch([b"%04d" % sequence], producer_id=5, producer_epoch=0, base_sequence=sequence)
        log.append(one.data, epoch, NOW)


def fill_for_ever(log: DiskLog, data: bytes) -> None:
    while True:
        log.append(data, 0, NOW)


def content(log: DiskLog) -> list[bytes]:
    return [one.data for one in split(log.read(log.start_offset, 1 << 30, log.end_offset, min_one=False))]


def everything(log: DiskLog) -> object:
    check_log(log)
    producers = [(one.producer_id, one.epoch, one.batches, one.transaction_start) for one in log.producers.states()]
    return log.start_offset, log.end_offset, log.size, log.epochs.entries(), producers, content(log)


@pytest.mark.parametrize("end", [DiskLog.close, DiskLog.kill], ids=["closed", "killed"])
@pytest.mark.parametrize("segment_bytes", [3 * SIZE, 1 << 30])
def test_opened_again_it_is_as_it_was(tmp_path: Path, end: Callable[[DiskLog], None], segment_bytes: int) -> None:
    log = open_log(tmp_path, segment_bytes=segment_bytes)
    fill(log, 5, epoch=1)
    log.start_epoch(3)
    fill(log, 5, epoch=3)
    log.advance_start(4, NOW)
    before = everything(log)
    for _ in range(3):
        end(log)
        log = open_log(tmp_path, segment_bytes=segment_bytes)
        assert everything(log) == before
    assert log.append(batch([b"0009"], producer_id=5, producer_epoch=0, base_sequence=9).data, 3, NOW).duplicate
    fill(log, 5, epoch=4)
    check_log(log)
    log.close()


def test_closed_log_is_opened_without_reading_its_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    fill(log, 10)
    before = everything(log)
    log.close()
    with monkeypatch.context() as patch:
        patch.setattr("abeyant.broker.log.files.FileSegment.read", None)
        patch.setattr("abeyant.broker.log.files.FileSegment.recover", None)
        log = open_log(tmp_path, segment_bytes=3 * SIZE)
    assert everything(log) == before
    log.close()


@pytest.mark.parametrize("kind", ["*.index", "*.snapshot", "partition.json"])
@pytest.mark.parametrize("harm", ["lost", "damaged", "empty"])
def test_what_is_beside_the_batches_is_built_again(tmp_path: Path, kind: str, harm: str) -> None:
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    fill(log, 10)
    before = everything(log)
    log.close()
    found = list(tmp_path.glob(f"orders-0/{kind}"))
    assert found
    for path in found:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 0x5A
        if harm == "lost":
            path.unlink()
        else:
            path.write_bytes(bytes(data) if harm == "damaged" else b"")

    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    assert everything(log) == before
    log.close()


@pytest.mark.parametrize("lost", [0, 3, 6])
def test_epochs_are_whole_where_one_index_is_lost(tmp_path: Path, lost: int) -> None:
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    for epoch in range(4):
        fill(log, 3, epoch=epoch)
    before = everything(log)
    log.close()
    (tmp_path / "orders-0" / f"{lost:020d}.index").unlink()
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    assert everything(log) == before
    log.close()


class Counted(bytes):
    """Bytes that count how many of them are copied."""

    copied = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(key, slice):
            Counted.copied += len(found)
            return Counted(found)
        return found

    def __add__(self, other: Any) -> Counted:
        return Counted(super().__add__(other))

    def __radd__(self, other: bytes) -> Counted:
        return Counted(other + bytes(self))


def test_a_killed_log_is_read_again_in_proportion_to_its_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    fill(log, 200)
    log.kill()
    pread = os.pread
    Counted.copied = 0
    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", lambda *args: Counted(pread(*args)))
        log = open_log(tmp_path)
    assert log.end_offset == 200
    assert 200 * SIZE <= Counted.copied < 3 * 200 * SIZE
    log.close()


@pytest.mark.parametrize("cut", [1, 30, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE + 7])
def test_torn_end_is_cut(tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path)
    fill(log, 10)
    whole = content(log)
    log.kill()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    os.truncate(path, 10 * SIZE - cut)

    log = open_log(tmp_path)
    left = 10 - (cut + SIZE - 1) // SIZE
    check_log(log)
    assert (log.end_offset, content(log)) == (left, whole[:left])
    assert ("cut" in caplog.text) == (cut % SIZE > 0)
    fill(log, 1)
    check_log(log)
    log.close()


def test_changed_byte_ends_the_log_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    fill(log, 10)
    whole = content(log)
    log.kill()
    path = tmp_path / "orders-0" / f"{3:020d}.log"
    data = bytearray(path.read_bytes())
    data[SIZE + 70] ^= 1
    path.write_bytes(bytes(data))

    log = open_log(tmp_path, segment_bytes=3 * SIZE)
    check_log(log)
    assert content(log) == whole[:4]
    assert f"cut {2 * SIZE} bytes off {path.name}" in caplog.text
    assert sorted(one.name[18:] for one in path.parent.glob("*.log")) == ["00.log", "03.log"]
    log.close()


def test_what_a_rewritten_end_held_before_does_not_come_back(tmp_path: Path) -> None:
    """Truncated and written anew to the same length, then killed: no index of the first writing is believed."""
    log = open_log(tmp_path, segment_bytes=4 * SIZE)
    fill(log, 6)
    log.close()
    log = open_log(tmp_path, segment_bytes=4 * SIZE)
    log.truncate_to(2, NOW)
    log.start_epoch(2)
    fill(log, 4, epoch=2)
    before = everything(log)
    log.kill()

    log = open_log(tmp_path, segment_bytes=4 * SIZE)
    assert everything(log) == before
    assert log.epochs.entries() == [(0, 0), (2, 2)]
    log.close()


def test_log_without_batches_keeps_its_start(tmp_path: Path) -> None:
    log = open_log(tmp_path, retention_ms=10)
    fill(log, 3)
    assert log.delete_old(NOW + 100, 3) == 1
    log.kill()
    log = open_log(tmp_path)
    assert (log.start_offset, log.end_offset, log.size) == (3, 3, 0)
    log.truncate_fully(9, NOW)
    log.kill()
    log = open_log(tmp_path)
    assert (log.start_offset, log.end_offset) == (9, 9)
    log.close()


def test_transactions_are_known_again(tmp_path: Path) -> None:
    log = open_log(tmp_path, segment_bytes=200)
    for sequence, commits in enumerate((False, True)):
        data = batch(producer_id=9, producer_epoch=0, base_sequence=sequence, attributes=0x10).data
        log.append(data, 0, NOW)
        log.append(marker(9, 0, commits=commits), 0, NOW, from_client=False)
    log.append(batch(producer_id=9, producer_epoch=0, base_sequence=2, attributes=0x10).data, 0, NOW)
    for end in (DiskLog.kill, DiskLog.close, DiskLog.kill):
        end(log)
        log = open_log(tmp_path, segment_bytes=200)
        check_log(log)
        assert log.last_stable_offset(5) == 4
        assert [aborted[:3] for aborted in log.producers.aborted_between(0, 5)] == [(9, 0, 1)]
    log.close()


def test_flush_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fdatasync", flushed.append)
    log = open_log(tmp_path / "never")
    fill(log, 9)
    assert not flushed
    log.close()
    assert len(flushed) == 1
    log = open_log(tmp_path / "by messages", flush_messages=3)
    fill(log, 9)
    assert len(flushed) == 4
    log.close()
    log = open_log(tmp_path / "by time", flush_ms=100)
    log.append(batch().data, 0, NOW + 99)
    assert len(flushed) == 4
    log.append(batch().data, 0, NOW + 100)
    assert len(flushed) == 5
    log.close()


def test_kafkas_tools_would_read_the_file(tmp_path: Path) -> None:
    """The file is the batches as they are sent, under the name that Kafka gives it."""
    log = open_log(tmp_path)
    fill(log, 3)
    log.close()

    assert split((tmp_path / "orders-0" / "00000000000000000000.log").read_bytes())[2].base_offset == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to mount a small disk")
def test_full_disk(tmp_path: Path) -> None:
    """Nothing of the append that did not fit stays, what was acknowledged does, and it goes on when there is room."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this machine lets nobody mount a tmpfs")
    try:
        log = open_log(disk)
        one = batch([b"x" * 10_000]).data
        with pytest.raises(StorageError, match=r"cannot write to .*: No space left on device"):
            fill_for_ever(log, one)
        assert log.end_offset > 5
        before = everything(log)
        log.kill()
        log = open_log(disk)
        assert everything(log) == before
        log.config = LogConfig(retention_ms=0)
        assert log.delete_old(NOW + 1, log.end_offset) == 1
        assert log.append(one, 0, NOW).size == len(one)
        log.close()
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def _no_room_for(monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    """From now on: for files with that ending there is no room on the disk."""
    write = os.pwrite

    def full(fd: int, data: bytes, position: int) -> int:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(ending):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(fd, data, position)

    monkeypatch.setattr(os, "pwrite", full)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc, to count open files")
def test_compaction_on_a_full_disk_leaves_no_file_open_and_none_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, cleanup_policy=frozenset({"compact"}), segment_bytes=SIZE)
    fill(log, 3)
    _no_room_for(monkeypatch, ".cleaned")
    with pytest.raises(StorageError):  # the first of three segments needs no room, as nothing of it stays
        log.compact(NOW, log.end_offset)
    before, files, opened = everything(log), sorted(log.folder.iterdir()), len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with pytest.raises(StorageError, match="No space left on device"):
            log.compact(NOW, log.end_offset)
    assert (everything(log), sorted(log.folder.iterdir())) == (before, files)
    assert len(os.listdir("/proc/self/fd")) == opened
    log.close()


def test_what_is_flushed_is_appended_where_only_its_state_has_no_room(tmp_path: Path) -> None:
    log = open_log(tmp_path, flush_messages=1)
    fill(log, 1)
    (log.folder / "partition.json.tmp").mkdir()  # no state can be written
    fill(log, 1)
    before = everything(log)
    log.kill()
    (log.folder / "partition.json.tmp").rmdir()
    log = open_log(tmp_path)
    assert everything(log) == before
    log.close()


def test_directory_is_one_processs(tmp_path: Path) -> None:
    with DataDirectory(tmp_path / "data"):
        with pytest.raises(AbeyantError, match=f"is in use by process {os.getpid()}; stop that one"):
            DataDirectory(tmp_path / "data")
        script = f"from abeyant.broker.log.directory import DataDirectory; DataDirectory({str(tmp_path / 'data')!r})"
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert f"is in use by process {os.getpid()}" in other.stderr
    DataDirectory(tmp_path / "data").close()


def test_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(AbeyantError, match=r"is no data directory of `abeyant broker`: it holds 'thesis.tex'; name"):
        DataDirectory(tmp_path)
    with pytest.raises(AbeyantError, match="it is a file"):
        DataDirectory(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_directory_of_another_version(tmp_path: Path) -> None:
    DataDirectory(tmp_path).close()
    mark = tmp_path / "abeyant-data.json"
    mark.write_text(json.dumps({"format": 2}))
    with pytest.raises(AbeyantError, match="has the format 2, which this version cannot read; it reads format 1"):
        DataDirectory(tmp_path)
    mark.write_text("{")
    with pytest.raises(AbeyantError, match="is damaged"):
        DataDirectory(tmp_path)
    mark.unlink()
    with pytest.raises(AbeyantError, match="is no data directory"):
        DataDirectory(tmp_path)


def test_deleted_files_go_after_their_delay(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as data:
        due: list[int] = []
        data.on_deletion = due.append
        config = LogConfig(segment_bytes=2 * SIZE, file_delete_delay_ms=100)
        log = data.open_log(1, "orders", 0, TOPIC, config, NOW)
        fill(log, 5)
        log.advance_start(4, NOW)
        folder = tmp_path / "broker-1" / "orders-0"
        assert due == [NOW + 100, NOW + 100]
        assert len(list(folder.glob("*.deleted"))) == 2
        assert data.delete_due(NOW + 99) == NOW + 100
        assert data.delete_due(NOW + 100) is None
        assert not list(folder.glob("*.deleted"))
        log.delete(NOW)
        assert not folder.exists()
        log = data.open_log(1, "orders", 0, TOPIC, config, NOW)  # the same name again, before the first is gone
        assert log.end_offset == 0
        assert data.delete_due(NOW + 100) is None
        assert [path.name for path in folder.parent.iterdir()] == ["orders-0"]
        log.close()


def test_folders_of_topics_that_are_gone(tmp_path: Path) -> None:
    with DataDirectory(tmp_path) as data:
        for topic in ("orders", "payments"):
            log = data.open_log(1, topic, 0, TOPIC, LogConfig(), NOW)
            fill(log, 3)
            log.close()
        data.delete_others(1, {("orders", 0)}, NOW)
        log = data.open_log(1, "orders", 0, uuid.UUID(int=8), LogConfig(), NOW)
        assert log.end_offset == 0  # another topic of that name
        log.close()
    assert [path.name for path in (tmp_path / "broker-1").iterdir()] == ["orders-0"]
    total, free = disk_space(tmp_path)
    assert 0 < free <= total


def test_journal_survives_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.put("topic/orders", {"id": "x"})
    journal.put("topic/payments", [1])
    journal.put("broker/1", 5)
    journal.put("topic/payments", None)
    expected = {"topic/orders": {"id": "x"}, "broker/1": 5}
    data = path.read_bytes()
    for cut in (*range(1, len(data), 7), len(data)):
        path.write_bytes(data[:cut])
        found = Journal(path)
        assert dict(found.items()).items() <= {**expected, "topic/payments": [1]}.items()
        found.put("after", cut)
        assert Journal(path)["after"] == cut
        found.close()
    assert dict(Journal(path).items("topic/")) == {"topic/orders": {"id": "x"}}
    assert Journal(path).get("nothing") is None
    path.write_bytes(data[:-3] + b"x\n")
    assert dict(Journal(path).items()) == {**expected, "topic/payments": [1]}


@pytest.mark.parametrize("line", [0, 1, 2])
def test_journal_that_is_damaged_before_its_end_is_refused(tmp_path: Path, line: int) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    for name in "abcd":
        journal.put(f"topic/{name}", [name])
    lines = path.read_bytes().split(b"\n")
    lines[line] = lines[line].replace(b"topic", b"tonic")
    damaged = b"\n".join(lines)
    path.write_bytes(damaged)
    with pytest.raises(StorageError, match=f"damaged at line {line + 1}, and more lines follow"):
        Journal(path)
    assert path.read_bytes() == damaged


@pytest.mark.parametrize("harm", ["damaged", "missing"])
def test_no_replica_is_deleted_for_a_journal_that_cannot_be_read(tmp_path: Path, harm: str) -> None:
    with DataDirectory(tmp_path) as data:
        data.journal.put("topic/orders", [str(TOPIC), {}])
        data.journal.put("topic/payments", [str(TOPIC), {}])
        log = data.open_log(1, "orders", 0, TOPIC, LogConfig(), NOW)
        fill(log, 3)
        log.close()
    path = tmp_path / "controller.journal"
    if harm == "damaged":
        path.write_bytes(path.read_bytes().replace(b"orders", b"0rders"))
    else:
        path.unlink()
    with pytest.raises(AbeyantError, match=rf"journal is {harm}.*nothing was deleted"):
        DataDirectory(tmp_path)
    assert (tmp_path / "broker-1" / "orders-0" / f"{0:020d}.log").stat().st_size == 3 * SIZE


def test_journal_stays_small(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    for count in range(5_000):
        journal.put("partition/orders/0", [count])
    assert path.stat().st_size < 100_000
    journal.close()
    assert Journal(path)["partition/orders/0"] == [4_999]


def test_small_file_is_the_old_or_the_new(tmp_path: Path) -> None:
    path = tmp_path / "state"
    replace_file(path, b"old")
    path.with_name("state.tmp").mkdir()
    with pytest.raises(StorageError, match="cannot write"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"


def test_batch_bytes_are_whole_after_reopening(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    fill(log, 2)
    log.kill()
    log = open_log(tmp_path)
    assert [Batch(data).crc_is_valid() for data in content(log)] == [True, True]
    log.close()
