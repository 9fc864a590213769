"""The data directory of one cluster, used by one process at a time.

    abeyant-data.json        the program that owns the directory, and the version of its format
    lock                     locked by the process that uses the directory, whose id it holds
    controller.journal       the controller's metadata
    broker-1/orders-0/       a replica's log

In Kafka each broker has its own directory. Here all brokers run in one process, so one lock guards them all.
"""

from __future__ import annotations

import contextlib
import fcntl
import heapq
import json
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from abeyant.broker.log.config import LogConfig
from abeyant.broker.log.disk_log import STATE, DiskLog
from abeyant.broker.log.errors import StorageError
from abeyant.broker.log.files import DELETED, load_json, rename_deleted, replace_file, storage_errors
from abeyant.broker.log.journal import Journal
from abeyant.errors import AbeyantError
from abeyant.former import check_former

MARK = "abeyant-data.json"
LOCK = "lock"
JOURNAL = "controller.journal"
_FORMAT = 1


class DataDirectory:
    """A cluster's data directory: opens its logs and its journal, and deletes files at their scheduled times."""

    def __init__(self, path: str | Path) -> None:
        """Open the directory, or create it, and lock it.

        Raises AbeyantError if the directory is in use, holds other files, is damaged, or cannot be written.
        """
        self.path = Path(path).absolute()
        self._lock = -1
        self._deletions: list[tuple[int, int, Path]] = []
        self._count = 0
        self.on_deletion: Callable[[int], object] | None = None
        """Called when a deletion is scheduled, with the deletion's time (ms)."""
        try:
            with storage_errors("use the data directory", self.path):
                self._open()
                self._require_journal()
                self.journal = Journal(self.path / JOURNAL)
                self._clear()
        except (StorageError, AbeyantError) as error:
            self._unlock()
            raise AbeyantError(str(error)) from None

    def _open(self) -> None:
        if self.path.exists() and not self.path.is_dir():
            raise AbeyantError(f"cannot use the data directory {self.path}: it is a file")
        self.path.mkdir(parents=True, exist_ok=True)
        mark = self.path / MARK
        if not mark.exists():
            others = sorted(entry.name for entry in self.path.iterdir() if entry.name not in (LOCK, MARK + ".tmp"))
            check_former(self.path, others, MARK, "name another directory")
            if others:
                raise AbeyantError(
                    f"{self.path} is no data directory of `abeyant broker`: it holds {others[0]!r}; name an empty"
                    " directory, or one that does not exist"
                )
        self._take_lock()
        if not mark.exists():
            replace_file(mark, json.dumps({"program": "abeyant broker", "format": _FORMAT}).encode() + b"\n")
        try:
            version = json.loads(mark.read_bytes())["format"]
        except (ValueError, KeyError, TypeError):
            raise AbeyantError(f"{mark} is damaged: it does not state the directory's format") from None
        if version != _FORMAT:
            raise AbeyantError(
                f"{self.path} has the format {version}, which this version cannot read; it reads format {_FORMAT}:"
                " run the version that wrote it, or name another directory"
            )

    def _take_lock(self) -> None:
        self._lock = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(self._lock, 32, 0).decode(errors="replace").strip() or "another"
            raise AbeyantError(
                f"the data directory {self.path} is in use by process {owner}; stop that one, or name another directory"
            ) from None
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, b"%d\n" % os.getpid(), 0)

    def _require_journal(self) -> None:
        """Raise AbeyantError if the directory holds replicas, but not the journal that lists their topics."""
        if not (self.path / JOURNAL).exists() and any(self.path.glob("broker-*/*")):
            raise AbeyantError(
                f"{self.path / JOURNAL} is missing, which lists the topics in {self.path}; nothing was deleted: put"
                " it back, or name another data directory"
            )

    def _unlock(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _clear(self) -> None:
        """Delete the replica folders that the previous process had scheduled for deletion."""
        for folder in self.path.glob(f"broker-*/*{DELETED}"):
            shutil.rmtree(folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Carry out the scheduled deletions, close the journal and unlock the directory. Close the logs first."""
        for _, _, path in self._deletions:
            _delete(path)
        self._deletions.clear()
        self.journal.close()
        self._unlock()

    def kill(self) -> None:
        """Unlock the directory without closing anything, as when the process is killed."""
        self._unlock()

    def folder(self, broker: int) -> Path:
        """Return the folder of a broker's logs."""
        return self.path / f"broker-{broker}"

    def open_log(
        self, broker: int, topic: str, partition: int, topic_id: uuid.UUID, config: LogConfig, now_ms: int
    ) -> DiskLog:
        """Open a replica's log with all records that were written before its close or a kill, or create the log.

        If the folder is of a deleted topic with the same name (another `topic_id`), delete it. Raises StorageError.
        """
        folder = self.folder(broker) / f"{topic}-{partition}"
        state = load_json(folder / STATE)
        if state is not None and state.get("topic_id") != str(topic_id):
            self.delete_later(rename_deleted(folder), now_ms)
        return DiskLog(folder, topic, partition, topic_id, config, now_ms, self.delete_later)

    def delete_others(self, broker: int, keep: set[tuple[str, int]], now_ms: int) -> None:
        """Delete the broker's replica folders except those of the (topic, partition) in `keep`. Raises StorageError."""
        names = {f"{topic}-{partition}" for topic, partition in keep}
        for folder in sorted(self.folder(broker).glob("*")):
            if folder.is_dir() and folder.name not in names and folder.suffix != DELETED:
                self.delete_later(rename_deleted(folder), now_ms)

    def delete_later(self, path: Path, at_ms: int) -> None:
        """Schedule the deletion of a file or a folder at `at_ms`."""
        self._count += 1
        heapq.heappush(self._deletions, (at_ms, self._count, path))
        if self.on_deletion is not None:
            self.on_deletion(at_ms)

    def delete_due(self, now_ms: int) -> int | None:
        """Delete the files and folders that are due. Return the time (ms) of the next deletion, None if none is."""
        while self._deletions and self._deletions[0][0] <= now_ms:
            _delete(heapq.heappop(self._deletions)[2])
        return self._deletions[0][0] if self._deletions else None


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def disk_space(path: Path) -> tuple[int, int]:
    """Return the total and free bytes of the disk that holds `path`, for DescribeLogDirs."""
    disk: Any = os.statvfs(path)
    return disk.f_frsize * disk.f_blocks, disk.f_frsize * disk.f_bavail
