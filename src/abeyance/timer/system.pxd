# C types for system.py: the same source runs interpreted without them.
cimport cython
from abeyance.timer.base cimport Timer
from abeyance.timer.task cimport TimerTask

cdef long long _AWAKE
cdef long long _ENDED
cdef long long _FOREVER


cdef class SystemTimer(Timer):
    cdef object _name
    cdef bint _begins
    cdef object _executor
    cdef list _handed
    cdef long long _sleeps_until
    cdef bint _woken
    cdef object _wake
    cdef object _starting
    cdef object _thread

    cdef long long _now(self) except *
    cdef TimerTask _start(self, object callback, tuple args, long long delay, long long deadline)
    cpdef object _start_thread(self)
    cdef void _deadline_added(self, long long deadline) except *
    cdef void _alarm(self) except *
    @cython.locals(now=cython.longlong)
    cpdef long long _turn(self) except *
