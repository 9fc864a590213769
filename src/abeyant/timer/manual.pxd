# C types for manual.py: the same source runs interpreted without them.
cimport cython
from libc.stdint cimport int64_t
from abeyant.timer.base cimport Timer, enter, leave
from abeyant.timer.units cimport to_nanoseconds

cdef long long _CASCADES
cdef long long _FOREVER


cdef class ManualTimer(Timer):
    cdef long long _time

    cdef int64_t _now(self) except -1
    @cython.locals(upcoming=cython.longlong, ran=cython.longlong)
    cdef int64_t _run_until(self, long long target, long long tasks, long long until) except -1
    cdef void _reach(self, long long time) noexcept
