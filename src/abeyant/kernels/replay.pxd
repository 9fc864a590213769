# C types for replay.py: the same source runs interpreted without them.
cimport cython
from abeyant.kernels.trace_wheel cimport TraceWheel


cdef long long _MAX_TIME
cdef long long _FOREVER
cdef long long _LOW_HALF


@cython.final
cdef class _Run:
    cdef TraceWheel _wheel
    cdef long long _tick
    cdef object _wheel_size
    cdef const long long[::1] _starts
    cdef const long long[::1] _until
    cdef const long long[::1] _ends
    cdef bint _absolute
    cdef bint _exclusive
    cdef object completed
    cdef object ended_at
    cdef unsigned char[::1] _completed
    cdef long long[::1] _ended_at
    cdef long long[::1] _deadlines
    cdef bint _sorted
    cdef long long _stopped
    cdef long long _at_start
    cdef long long _expired
    cdef long long _overtaken
    cdef long long _most
    cdef long long _late_most
    cdef long long _late_high
    cdef long long _late_low
    cdef long long _waited_high
    cdef long long _waited_low
    cdef long long _wakeups
    cdef long long _first
    cdef long long _last

    cdef object judge(self)
    @cython.locals(row=cython.Py_ssize_t, absolute=cython.bint, first=cython.longlong, before=cython.longlong, start=cython.longlong, until=cython.longlong, deadline=cython.longlong, end=cython.longlong)
    cdef Py_ssize_t _judge(self) noexcept
    cdef object drive(self)
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _collect_starts(self, long long[::1] start_at, int[::1] start_row) noexcept
    @cython.locals(ends=cython.Py_ssize_t, row=cython.Py_ssize_t)
    cdef void _collect_ends(self, long long[::1] end_at) noexcept
    @cython.locals(wheel=TraceWheel, ends=cython.Py_ssize_t, next_end=cython.Py_ssize_t, started=cython.longlong, pending=cython.longlong, position=cython.Py_ssize_t, at=cython.longlong, row=cython.int)
    cdef int _drive(self, const long long[::1] start_at, const int[::1] start_row, const long long[::1] end_at) except -1
    @cython.locals(wheel=TraceWheel, target=cython.longlong, row=cython.int)
    cdef int _wake_before(self, long long time) except -1
    @cython.locals(late=cython.longlong)
    cdef void _record_expired(self, int row, long long at) noexcept
    cdef void _wait(self, long long time) noexcept
    cdef object stats(self)


@cython.locals(run=_Run)
cdef object _replay(object starts, object until, object ends, bint absolute, bint exclusive, object tick, object wheel_size)
cdef object _whole(object high, object low)
