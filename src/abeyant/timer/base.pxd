# C types for base.py: the same source runs interpreted without them.
cimport cython
from libc.stdint cimport int64_t
from abeyant.engine.wheel cimport TimingWheel
from abeyant.timer.task cimport TaskOwner, TimerTask
from abeyant.timer.units cimport to_nanoseconds

cdef bint _LOCKED
cdef long long _NEVER
cdef long long _CANCELLED
cdef long long _AWAKE


cdef class Timer(TaskOwner):
    cdef object __weakref__
    cdef TimingWheel _wheel
    cdef object _lock
    cdef object _reference
    cdef object _on_error
    cdef object _caught
    cdef bint _closed
    cdef bint _ready
    cdef long long _sleeps_until
    cdef long long _failed
    cdef object _failure
    cdef long long _wakeups

    cdef int64_t _now(self) except -1
    cdef bint _get_ready(self) except -1
    cdef bint _is_made(self) except -1
    cdef bint _accepts(self) except -1
    cpdef object _reset_in_child(self)
    cdef bint _alarm(self) except -1
    cpdef object _run(self, object item)
    cpdef object _report(self, object error, object callback)
    @cython.locals(deadline=cython.longlong)
    cdef TimerTask _start_later(self, object callback, tuple args, long long delay)
    @cython.locals(task=TimerTask, closed=cython.bint)
    cdef TimerTask _start(self, object callback, tuple args, long long delay, long long deadline)
    cdef bint _cancel(self, TimerTask task) except -1
    @cython.locals(deadline=cython.longlong, pending=cython.bint)
    cdef bint _refresh(self, TimerTask task) except -1
    @cython.locals(deadline=cython.longlong, handle=cython.longlong)
    cdef long long _start_item(self, tuple item, long long delay) except -1
    cdef bint _stop_item(self, long long handle) except -1
    cpdef bint _is_pending(self, TimerTask task) except -1


cpdef bint enter(Timer timer) except -1
cpdef bint leave(Timer timer) except -1
cpdef bint abandon(Timer timer) except -1
