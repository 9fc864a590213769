# C types for system.py: the same source runs interpreted without them.
cimport cython
from libc.stdint cimport int64_t
from abeyant.timer.base cimport Timer, abandon, enter, leave
from abeyant.timer.meter cimport Meter
from abeyant.timer.task cimport TimerTask
from abeyant.timer.units cimport to_nanoseconds

cdef long long _AWAKE
cdef long long _ENDED
cdef long long _FOREVER
cdef long long _CASCADES
cdef int _RUNS
cdef long long _SHARE


cdef class SystemTimer(Timer):
    cdef object _name
    cdef bint _begins
    cdef object _executor
    cdef Meter _meter
    cdef list _handed
    cdef list _dropped
    cdef bint _woken
    cdef object _wake
    cdef object _starting
    cdef object _thread

    cdef int64_t _now(self) except -1
    cdef bint _get_ready(self) except -1
    cpdef object _start_thread(self)
    cdef bint _alarm(self) except -1
    @cython.locals(now=cython.longlong, began=cython.longlong, upcoming=cython.longlong, runs=cython.int)
    @cython.locals(starts=cython.longlong, ended=cython.longlong, late=cython.longlong)
    cpdef int64_t _turn(self) except? -2
    cpdef object _reset_in_child(self)
    cpdef object _break_down(self, object error)
