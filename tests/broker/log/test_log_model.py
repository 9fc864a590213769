"""The log beside a plain list, driven at random; on disk it is also closed, killed and opened again."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule

from abeyant.broker.log import Log, LogConfig
from abeyant.broker.log.disk_log import DiskLog
from broker.log.log_machine import LogMachine


class DiskLogMachine(LogMachine):
    """The same, in a folder."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())

    def make_log(self, config: LogConfig) -> Log:
        return DiskLog(self.folder / "log", "model", 0, uuid.UUID(int=1), config, self.now, lambda *_: None)

    def open_again(self) -> None:
        self.log = self.make_log(self.log.config)

    def disk_log(self) -> DiskLog:
        assert isinstance(self.log, DiskLog)
        return self.log

    @rule()
    def close_and_open(self) -> None:
        self.disk_log().close()
        self.open_again()

    @rule()
    def kill_and_open(self) -> None:
        self.disk_log().kill()
        self.open_again()

    @rule()
    def flush(self) -> None:
        self.disk_log().flush(self.now)

    @rule(cut=st.integers(1, 400))
    def tear_and_open(self, cut: int) -> None:
        """What was written last is torn off, as where the machine failed: whole batches stay, nothing else is lost."""
        self.disk_log().kill()
        last = max(self.folder.glob("log/*.log"))
        size = last.stat().st_size
        if size == 0:
            self.open_again()
            return
        left = max(size - cut, 0)
        with last.open("r+b") as file:
            file.truncate(left)
        base = int(last.stem)
        for one in [one for one in self.model.batches if one.base >= base]:
            left -= one.size
            if left < 0:
                self.model.batches = [kept for kept in self.model.batches if kept.base < one.base]
                self.model.end = one.base
                break
        self.model.start = min(self.model.start, self.model.end)
        self.open_again()

    def teardown(self) -> None:
        if hasattr(self, "log"):
            self.disk_log().kill()
        shutil.rmtree(self.folder)


TestLogInMemory = LogMachine.TestCase
TestLogOnDisk = pytest.mark.slow(DiskLogMachine.TestCase)
TestLogOnDisk.settings = settings(max_examples=settings().max_examples // 2)
