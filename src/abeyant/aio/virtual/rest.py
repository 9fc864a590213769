"""Which threads of this process are at rest: asleep until another thread of the process wakes them.

Linux says in which system call a thread sleeps, and how. One that waits for a lock, a queue or an event, and without a
time-out, waits in a futex of this process: no time, no file and no other process can wake it.
"""

from __future__ import annotations

import os
import platform
import time
from typing import Final

_FUTEX: Final = {"x86_64": "202", "aarch64": "98", "riscv64": "98"}.get(platform.machine(), "")
_PRIVATE: Final = 0x80
_WAITS: Final = (0, 9)  # FUTEX_WAIT, FUTEX_WAIT_BITSET


def is_at_rest(native_id: int | None) -> bool:
    """Return whether a thread is at rest; False where the system does not say. Some 20 us."""
    number, *arguments = _system_call(native_id)
    if number != _FUTEX or len(arguments) < 4:
        return False
    operation, timeout = int(arguments[1], 16), int(arguments[3], 16)
    return operation & _PRIVATE > 0 and operation & (_PRIVATE - 1) in _WAITS and timeout == 0


def is_asleep(native_id: int | None) -> bool:
    """Return whether a thread sleeps, at rest or not; False where the system does not say."""
    return _system_call(native_id)[0].isdecimal()


def _system_call(native_id: int | None) -> list[str]:
    """Return the number of the system call in which a thread sleeps, and its arguments; another word if it does not."""
    try:
        with open(f"/proc/self/task/{native_id}/syscall", encoding="ascii") as file:
            return file.read().split() or ["unknown"]
    except OSError:
        return ["unknown"]


def native_threads() -> set[int]:
    """Return the ids of all threads of this process, those that are not Python's too; none where there is no /proc."""
    try:
        return set(map(int, os.listdir("/proc/self/task")))
    except OSError:
        return set()


def processor_time(native_id: int | None) -> int | None:
    """Return for how many nanoseconds a thread has run; None where the system does not say."""
    if native_id is None or not _FUTEX:
        return None
    try:
        return time.clock_gettime_ns(~native_id << 3 | 6)  # the id that pthread_getcpuclockid would give
    except OSError:
        return None
