# C types for schedule.py: the same source runs interpreted without them.
cimport cython
from abeyance.aio.handle cimport TimerHandle
from abeyance.engine.wheel cimport TimingWheel

cdef double _TICKS
cdef double _MOST
cdef double _NANOSECONDS
cdef double _SLICE
cdef long long _NEVER
cdef int _TURN


@cython.final
cdef class Schedule:
    cdef readonly object clock
    cdef TimingWheel _wheel
    cdef list _near
    cdef long long _order

    cpdef double now(self) except? -1.0
    @cython.locals(handle=TimerHandle)
    cpdef object use_clock(self, object clock)
    @cython.locals(handle=TimerHandle)
    cpdef TimerHandle add(self, object loop, double when, object callback, tuple args, object context, bint debug)
    cdef object _file(self, TimerHandle handle)
    @cython.locals(handle=TimerHandle)
    cpdef object upcoming(self)
    @cython.locals(now=cython.double, tick=cython.longlong, left=cython.int)
    cpdef object collect(self, object ready)
    cdef object _take(self, TimerHandle handle, double now, object ready)
    @cython.locals(ticks=cython.double)
    cdef long long _tick_of(self, double seconds) except *
