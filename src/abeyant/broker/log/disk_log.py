"""A log in a folder. Opening the log recovers all that was written before a close or a kill, except a torn last batch.

Records are acknowledged once written to the file, so they survive kill -9, as in Kafka. fsync is called only for
`flush.messages` and `flush.ms`, and on close. The log is synced up to `recovery_point`: the next start reads the
batches from there on and checks their CRC.

The folder holds segments (`files.py`), producer snapshots at each segment's start, and one small file of state.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abeyant.broker.log.batch import Batch
from abeyant.broker.log.config import LogConfig
from abeyant.broker.log.epochs import LeaderEpochs
from abeyant.broker.log.errors import StorageError
from abeyant.broker.log.files import (
    CLEANED,
    DELETED,
    INDEX,
    LOG,
    SNAPSHOT,
    SWAP,
    TEMPORARY,
    FileSegment,
    load_json,
    name_of,
    offset_of,
    rename_deleted,
    save_json,
    storage_errors,
)
from abeyant.broker.log.log import Log
from abeyant.broker.log.markers import Marker
from abeyant.broker.log.producers import Producers
from abeyant.broker.log.segment import Segment
from abeyant.reporting import logger

if TYPE_CHECKING:
    import uuid

STATE = "partition.json"


DeleteLater = Callable[[Path, int], object]
"""A function that schedules the deletion of a file or a folder, at a time in ms."""


class DiskLog(Log):
    """A `Log` in files. A method that writes either succeeds, or changes nothing and raises StorageError."""

    def __init__(
        self,
        folder: Path,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        config: LogConfig,
        now_ms: int,
        delete_later: DeleteLater,
    ) -> None:
        """Open the log in `folder`, or create it. Raises StorageError."""
        self.folder = folder
        self.topic_id = topic_id
        self._delete_later = delete_later
        self._deletions = 0
        self._recovery_point = 0
        self._flushed_ms = now_ms
        self._unflushed = 0  # records
        with storage_errors("open", folder):
            folder.mkdir(parents=True, exist_ok=True)
            super().__init__(topic, partition, config, now_ms)

    # Opening

    def _open(self, now_ms: int) -> None:
        self._settle_files()
        paths = sorted(path for path in self.folder.iterdir() if path.suffix == LOG and offset_of(path) is not None)
        state = load_json(self.folder / STATE) or {}
        if not paths:
            self._begin(state.get("start", 0), now_ms)
            self._save_state()
            return
        self._load(paths, state, now_ms)

    def _settle_files(self) -> None:
        """Finish what a crash interrupted: move compacted segments into place, and delete leftovers."""
        for path in sorted(self.folder.iterdir()):
            if path.suffix in (TEMPORARY, DELETED, CLEANED):
                path.unlink()
            elif path.suffix == SWAP:
                self._put_in_place(path)

    def _put_in_place(self, swap: Path) -> None:
        base = offset_of(swap)
        if base is None:
            return
        segment = FileSegment(swap, base, 0)
        for _ in segment.recover(base):
            pass
        segment.close()
        for path in self.folder.iterdir():
            offset = offset_of(path)
            if offset is None or not base <= offset < segment.next_offset:
                continue
            if path.suffix in (LOG, INDEX) or (path.suffix == SNAPSHOT and offset > base):
                path.unlink()
        swap.rename(self.folder / name_of(base, LOG))

    def _load(self, paths: list[Path], state: dict[str, Any], now_ms: int) -> None:
        self._recovery_point = state.get("recovery_point", 0)
        self.epochs = LeaderEpochs()
        self.producers = Producers()
        self._segments = []
        self._bases = []
        self._snapshots = {}
        for epoch, start in state.get("epochs", []):
            if start < self._recovery_point:
                self.epochs.assign(epoch, start)
        self.end_offset = 0
        self._compacted_to = state.get("compacted_to", 0)
        for index, path in enumerate(paths):
            base = offset_of(path) or 0
            following = offset_of(paths[index + 1]) if index + 1 < len(paths) else None
            if not self._load_segment(path, base, following, now_ms):
                self._cut_from(paths[index + 1 :])
                break
        self.size = sum(segment.size for segment in self._segments)
        self._compacted_to = min(self._compacted_to, self._bases[-1])
        self.start_offset = min(max(state.get("start", 0), self._bases[0]), self.end_offset)
        self.epochs.truncate_from(self.end_offset)
        self.epochs.truncate_before(self.start_offset)
        self.producers.forget_before(self.start_offset)
        paths[len(self._segments) - 1].with_suffix(INDEX).unlink(missing_ok=True)  # the next append makes it stale
        for path in self.folder.iterdir():
            if path.suffix == SNAPSHOT and offset_of(path) not in self._snapshots:
                path.unlink()
        self._recovery_point = min(self._recovery_point, self.end_offset)
        now = self._state()
        if any(state.get(name) != now[name] for name in ("start", "recovery_point", "topic_id")):
            self._save_state()  # not if only epochs differ, as the batches hold them: a log on a full disk opens

    def _load_segment(self, path: Path, base: int, following: int | None, now_ms: int) -> bool:
        """Load a segment from its index file or its batches. Return False if a damaged end was cut off.

        The segments after a cut are invalid.
        """
        snapshot = load_json(self.folder / name_of(base, SNAPSHOT))
        if snapshot is not None:
            self.producers.restore(snapshot)
        segment = FileSegment(path, base, now_ms)
        self._segments.append(segment)
        self._bases.append(base)
        self._snapshots[base] = self.producers.snapshot()
        if snapshot is None:
            self._save_snapshot(base)
        self.end_offset = base
        if segment.load_index(self._recovery_point):
            self.end_offset = segment.next_offset
            at_end = load_json(self.folder / name_of(following or segment.next_offset, SNAPSHOT))
            if at_end is not None:
                self.producers.restore(at_end)
            else:
                self._replay(segment.batches())
            return True
        size = path.stat().st_size
        for batch in segment.recover(base):
            if batch.base_offset >= self._recovery_point:  # the state file has the epochs below it
                self.epochs.assign(batch.leader_epoch, batch.base_offset)
            self._replay([batch])
        self.end_offset = segment.next_offset
        if size == segment.size:
            return True
        logger("broker.log").warning(
            "%s-%d: cut %d bytes off %s, after its last valid batch; the log ends at offset %d",
            self.topic, self.partition, size - segment.size, path.name, self.end_offset,
        )  # fmt: skip
        return False

    def _cut_from(self, paths: Iterable[Path]) -> None:
        for path in paths:
            logger("broker.log").warning("%s-%d: deleted %s, after the cut", self.topic, self.partition, path.name)
            for suffix in (LOG, INDEX, SNAPSHOT):
                path.with_suffix(suffix).unlink(missing_ok=True)

    # Writing

    def _write(self, batch: Batch, marker: Marker | None, now_ms: int) -> None:
        super()._write(batch, marker, now_ms)
        self._unflushed += batch.record_count
        due = self._unflushed >= self.config.flush_messages or now_ms - self._flushed_ms >= self.config.flush_ms
        if due:
            self.flush(now_ms)

    def _make_segment(self, base_offset: int, now_ms: int) -> Segment:
        return FileSegment(self.folder / name_of(base_offset, LOG), base_offset, now_ms)

    def roll(self, now_ms: int, base_offset: int | None = None) -> Segment:
        """Start a new segment. Save the index of the previous one and a snapshot of the producers."""
        before = self._segments[-1]
        segment = super().roll(now_ms, base_offset)
        if segment is not before:
            if isinstance(before, FileSegment) and len(before):
                with contextlib.suppress(StorageError):  # it only speeds up the next start
                    before.save_index()
            self._save_snapshot(segment.base_offset)
        return segment

    def _save_snapshot(self, base: int) -> None:
        with contextlib.suppress(StorageError):  # it can be rebuilt from the batches
            save_json(self.folder / name_of(base, SNAPSHOT), self._snapshots[base])

    def flush(self, now_ms: int) -> None:
        """Sync everything to the disk. Raises StorageError."""
        for segment in self._segments:
            segment.flush()
        self._flushed_ms = now_ms
        self._unflushed = 0
        before, self._recovery_point = self._recovery_point, self.end_offset
        try:
            self._save_state()
        except StorageError:  # it only speeds up the next start
            self._recovery_point = before

    def _state(self) -> dict[str, Any]:
        return {
            "topic": self.topic,
            "partition": self.partition,
            "topic_id": str(self.topic_id),
            "start": self.start_offset,
            "recovery_point": self._recovery_point,
            "compacted_to": self._compacted_to,
            "epochs": [list(entry) for entry in self.epochs.entries()],
        }

    def _save_state(self) -> None:
        save_json(self.folder / STATE, self._state())

    # Removing

    def truncate_to(self, offset: int, now_ms: int) -> None:
        """Truncate the log as `Log.truncate_to` does, and its files."""
        if offset >= self.end_offset:
            super().truncate_to(offset, now_ms)
            self._save_state()
            return
        self._retreat(offset)
        super().truncate_to(offset, now_ms)
        (self.folder / name_of(self._bases[-1], INDEX)).unlink(missing_ok=True)  # it covers removed batches
        self._save_state()

    def truncate_fully(self, offset: int, now_ms: int) -> None:
        """Remove all batches, epochs and producers, and restart the log at `offset`."""
        self._retreat(min(offset, self.start_offset))
        super().truncate_fully(offset, now_ms)
        self._save_state()

    def _retreat(self, offset: int) -> None:
        """Move the recovery point back to `offset` before a truncation: new batches there will not be flushed yet."""
        if offset < self._recovery_point:
            self._recovery_point = offset
            self._save_state()

    def advance_start(self, offset: int, now_ms: int) -> bool:
        """Advance the log start as `Log.advance_start` does, and save the new log start for the next start."""
        moved = super().advance_start(offset, now_ms)
        if moved:
            try:
                self._save_state()
            except StorageError:
                if self.start_offset != self._bases[0]:  # else the first file's name has it, and a full disk is freed
                    raise
        return moved

    def _remove(self, segments: Sequence[Segment], now_ms: int) -> None:
        for segment in segments:
            segment.close()
            if isinstance(segment, FileSegment):
                self._deletions += 1
                renamed = segment.path.with_suffix(f".{self._deletions}{DELETED}")
                with storage_errors("delete", segment.path):
                    segment.path.with_suffix(INDEX).unlink(missing_ok=True)
                    if segment.base_offset not in self._snapshots:
                        segment.path.with_suffix(SNAPSHOT).unlink(missing_ok=True)
                    segment.path.rename(renamed)
                self._delete_later(renamed, now_ms + self.config.file_delete_delay_ms)

    def compact(self, now_ms: int, up_to: int, *, force: bool = False) -> int:
        """Compact as `Log.compact` does, and save the offset up to which the log is compacted."""
        before = self._compacted_to
        freed = super().compact(now_ms, up_to, force=force)
        if self._compacted_to != before:
            self._save_state()
        return freed

    def _make_cleaned(self, base_offset: int, now_ms: int) -> Segment:
        path = self.folder / name_of(base_offset, CLEANED)
        path.unlink(missing_ok=True)  # left by a failed compaction
        return FileSegment(path, base_offset, now_ms)

    def _replace(self, group: list[Segment], target: Segment, now_ms: int) -> None:
        """Replace the segments of `group` by `target`, their compacted segment.

        After a crash the log has either all of the old segments or the new one.
        """
        assert isinstance(target, FileSegment)
        swap, place = (target.path.with_suffix(suffix) for suffix in (SWAP, LOG))
        target.flush()
        with storage_errors("rename", swap):
            target.path.rename(swap)
            target.path = place
            super()._replace(group, target, now_ms)
            swap.rename(place)
        with contextlib.suppress(StorageError):  # it only speeds up the next start
            target.save_index()

    def close(self) -> None:
        """Flush everything, and write the indexes and snapshots for a fast start. Raises StorageError."""
        last = self._segments[-1]
        for segment in self._segments:
            segment.flush()
        if isinstance(last, FileSegment):
            last.save_index()
        save_json(self.folder / name_of(self.end_offset, SNAPSHOT), self.producers.snapshot())
        self._recovery_point = self.end_offset
        self._save_state()
        super().close()

    def kill(self) -> None:
        """Close the files without flushing, as when the process is killed."""
        super().close()

    def delete(self, now_ms: int) -> None:
        """Close the log, and delete its folder after `file.delete.delay.ms`. Raises StorageError."""
        super().close()
        self._delete_later(rename_deleted(self.folder), now_ms + self.config.file_delete_delay_ms)
