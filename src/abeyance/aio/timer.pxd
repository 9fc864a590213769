# C types for timer.py: the same source runs interpreted without them.
cimport cython
from abeyance.timer.base cimport Timer as _Timer
from abeyance.timer.task cimport TimerTask
from abeyance.timer.units cimport to_nanoseconds

cdef long long _NEVER
cdef long long _AWAKE
cdef int _BATCH
cdef long long _SLICE


cdef class _Keeper:
    cdef object timer
    cdef object reference


cdef class Timer(_Timer):
    cdef object _context
    cdef bint _debug
    cdef bint _early
    cdef object _handle
    cdef _Keeper _keeper
    cdef bint _lags
    cdef object _loop
    cdef long long _wakes_at

    cdef long long _now(self) except *
    cdef long long _due_by(self) except *
    cdef TimerTask _start(self, object callback, tuple args, long long delay, long long deadline)
    @cython.locals(prevented=cython.bint)
    cdef bint _cancel(self, TimerTask task) except *
    @cython.locals(deadline=cython.longlong, pending=cython.bint)
    cdef bint _refresh(self, TimerTask task) except *
    cdef void _deadline_added(self, long long deadline) except *
    cpdef object _run(self, object item)
    cpdef object _report(self, object error, object callback)
    @cython.locals(due_at=cython.longlong, left=cython.int, ends=cython.longlong, now=cython.longlong)
    cpdef object _turn(self)
    @cython.locals(upcoming=cython.longlong)
    cdef object _arm(self, bint early)
    cdef object _disarm(self)
    cdef object _check_callback(self, object callback)
    cpdef object _check_thread(self)


cpdef object _wake(_Keeper keeper)
cdef object _without_context(object callback, tuple args)
cdef object _not_before(long long deadline)
