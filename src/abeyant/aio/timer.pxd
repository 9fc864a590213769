# C types for timer.py: the same source runs interpreted without them.
cimport cython
from libc.stdint cimport int64_t
from abeyant.timer.base cimport Timer as _Timer
from abeyant.timer.base cimport enter, leave
from abeyant.timer.meter cimport Meter
from abeyant.timer.task cimport TimerTask
from abeyant.timer.units cimport to_nanoseconds

cdef long long _NEVER
cdef long long _AWAKE
cdef long long _IDLE
cdef int _BATCH
cdef long long _SLICE


cdef class _Keeper:
    cdef object timer
    cdef object reference


cdef class Timer(_Timer):
    cdef object _context
    cdef bint _debug
    cdef bint _must_rearm
    cdef object _handle
    cdef _Keeper _keeper
    cdef bint _lags
    cdef object _loop
    cdef Meter _meter
    cdef long long _wakes_at

    cdef int64_t _now(self) except -1
    cdef int64_t _due_by(self) except? -1
    cdef bint _accepts(self) except -1
    cpdef object _reset_in_child(self)
    cdef TimerTask _start(self, object callback, tuple args, long long delay, long long deadline)
    @cython.locals(prevented=cython.bint)
    cdef bint _cancel(self, TimerTask task) except -1
    @cython.locals(deadline=cython.longlong, pending=cython.bint)
    cdef bint _refresh(self, TimerTask task) except -1
    cdef bint _alarm(self) except -1
    cdef object _release(self)
    cpdef object _run(self, object item)
    cpdef object _report(self, object error, object callback)
    @cython.locals(now=cython.longlong)
    cpdef object _set_back(self, object loop)
    @cython.locals(due_at=cython.longlong, left=cython.int, ends=cython.longlong, now=cython.longlong)
    @cython.locals(late=cython.longlong, began=cython.longlong, looked=cython.longlong, measured=cython.bint)
    cpdef object _turn(self)
    cdef object _arm_for(self, long long deadline)
    cpdef bint _arm_at_earliest(self) except -1
    @cython.locals(upcoming=cython.longlong)
    cdef object _arm(self, bint early, tuple earliest=*)
    cdef object _disarm(self)
    cdef object _check_callback(self, object callback)
    cpdef object _check_thread(self)


cpdef object _wake(_Keeper keeper)
@cython.locals(keeper=_Keeper)
cpdef object timer_of(object handle)
cdef object _without_context(object callback, tuple args)
cdef object _seconds_rounded_up(long long deadline)
