# C types for schedule.py: the same source runs interpreted without them.
cimport cython
from abeyant.aio.handle cimport TimerHandle
from abeyant.engine.wheel cimport TimingWheel

cdef double _TICKS
cdef double _MOST
cdef double _NANOSECONDS
cdef double _SLICE
cdef long long _NEVER
cdef long long _EARLIEST
cdef int _TURN


@cython.final
cdef class Schedule:
    cdef readonly object clock
    cdef TimingWheel _wheel
    cdef list _near
    cdef object _read_clock
    cdef object _loop
    cdef unsigned int _version
    cdef long long _order
    cdef long long _origin
    cdef long long _reached

    cpdef double now(self) except? -1.0
    cpdef double own(self) except? -1.0
    cdef bint is_plain(self) noexcept
    cpdef object trust(self, bint plain)
    cpdef object use_clock(self, object clock)
    cdef object _begin(self, long long tick)
    @cython.locals(handle=TimerHandle)
    cdef object _rebuild(self, long long tick)
    cdef long long _on_wheel(self, long long tick) noexcept
    @cython.locals(handle=TimerHandle)
    cpdef TimerHandle add(self, object loop, double when, object callback, tuple args, object context, bint debug)
    cdef object _file(self, TimerHandle handle)
    cpdef object upcoming(self)
    cpdef object earliest(self)
    @cython.locals(now=cython.double)
    cpdef object seconds_to_next(self)
    @cython.locals(tick=cython.longlong)
    cdef object _upcoming_at(self, double now)
    @cython.locals(now=cython.double, tick=cython.longlong, left=cython.int)
    cpdef object collect(self, object ready)
    cdef object _take(self, TimerHandle handle, double now, object ready)
    cdef object _take_near(self, long long tick, double now, object ready)
    @cython.locals(ticks=cython.double)
    cdef long long _tick_of(self, double seconds) except *
