"""Find threads of this process that are at rest: asleep until another thread of the process wakes them.

Linux shows the system call in which a thread sleeps, with its arguments. A thread that waits for a lock, a queue or an
event without a time-out is in a private futex, from which no timer, file or other process can wake it.
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
    """Return whether a thread is at rest; False if the system does not show it. Takes some 50 us."""
    number, *arguments = _system_call(native_id)
    if number != _FUTEX or len(arguments) < 4:
        return False
    operation, timeout = int(arguments[1], 16), int(arguments[3], 16)
    waits = operation & _PRIVATE > 0 and operation & (_PRIVATE - 1) in _WAITS and timeout == 0
    # A woken thread shows its system call until a processor takes it, which may be long where others are busy.
    return waits and _state(native_id) == "S"


def is_asleep(native_id: int | None) -> bool:
    """Return whether a thread sleeps, at rest or not; False if the system does not show it."""
    return _system_call(native_id)[0].isdecimal()


def _state(native_id: int | None) -> str:
    """Return the letter of a thread's state: S if it sleeps, R if it runs or has been woken; "" if unknown."""
    return _shown(native_id, "stat").rpartition(") ")[2][:1]


def _system_call(native_id: int | None) -> list[str]:
    """Return the number and arguments of the system call in which a thread sleeps; ["running"] or ["unknown"] else."""
    return _shown(native_id, "syscall").split() or ["unknown"]


def _shown(native_id: int | None, file: str) -> str:
    """Return the content of a thread's file in /proc, such as `stat`; "" if it cannot be read."""
    try:
        with open(f"/proc/self/task/{native_id}/{file}", encoding="utf-8", errors="replace") as opened:
            return opened.read()
    except OSError:
        return ""


def native_threads() -> set[int]:
    """Return the ids of all threads of this process, including those not started by Python; none without /proc."""
    try:
        return set(map(int, os.listdir("/proc/self/task")))
    except OSError:
        return set()


def processor_time(native_id: int | None) -> int | None:
    """Return a thread's CPU time in nanoseconds; None if the system does not show it."""
    if native_id is None or not _FUTEX:
        return None
    try:
        return time.clock_gettime_ns(~native_id << 3 | 6)  # the id that pthread_getcpuclockid would give
    except OSError:
        return None
