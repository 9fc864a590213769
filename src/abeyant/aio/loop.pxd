# C types for loop.py: the same source runs interpreted without them.
cimport cython
from abeyant.aio.handle cimport TimerHandle
from abeyant.aio.schedule cimport Schedule


cdef class WheelTimers:
    cdef Schedule _schedule
    cdef bint _call_at_overridden
    cdef readonly object _own_time

    @cython.locals(handle=TimerHandle)
    cdef object _call(self, object when, object callback, tuple args, object context)
    cdef object _select_timeout(self)
