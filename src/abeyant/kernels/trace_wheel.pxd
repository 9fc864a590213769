# C types for trace_wheel.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.delay_queue cimport DelayQueue


cdef long long _FOREVER
cdef int _MAX_LEVELS
cdef int _NONE


@cython.final
cdef class TraceWheel:
    cdef long long _tick
    cdef long long _wheel_size
    cdef const long long[::1] _deadlines
    cdef const unsigned char[::1] _stops
    cdef const long long[::1] _ended_at
    cdef long long now
    cdef long long clock
    cdef long long cascaded
    cdef int _due
    cdef int[::1] _next
    cdef DelayQueue _queue
    cdef int[::1] _first
    cdef long long[::1] _expiration
    cdef int levels
    cdef long long[::1] _span
    cdef long long[::1] _horizon

    @cython.locals(ticks=cython.longlong)
    cdef int file(self, int row) except -1
    cdef long long _ticks(self, int row) noexcept
    @cython.locals(level=cython.int, place=cython.longlong, bucket=cython.int, expiration=cython.longlong)
    cdef int _file_ahead(self, int row, long long ticks) except -1
    cdef bint may_wake_before(self, long long time) noexcept
    @cython.locals(upcoming=cython.longlong)
    cdef bint wakes_before(self, long long time) noexcept
    @cython.locals(upcoming=cython.longlong)
    cdef int settle(self, long long target) except -1
    @cython.locals(bucket=cython.int, row=cython.int, other=cython.int, ticks=cython.longlong)
    cdef bint _reach_lone(self, long long target) noexcept
    @cython.locals(row=cython.int)
    cdef int next_due(self) noexcept
    cdef long long bucket_operations(self) noexcept
    @cython.locals(bucket=cython.int, row=cython.int)
    cdef long long _next_ticks(self) noexcept
    cdef bint _has_stopped(self, int row) noexcept
    @cython.locals(row=cython.int, after=cython.int)
    cdef int _cascade(self, int bucket) except -1
    @cython.locals(level=cython.int, bucket=cython.Py_ssize_t, buckets=cython.Py_ssize_t)
    cdef int _add_level(self) except -1
    @cython.locals(span=cython.longlong, first=cython.longlong)
    cdef void _set_horizon(self, int level) noexcept
    @cython.locals(level=cython.int, was=cython.longlong)
    cdef void _set_clock(self, long long ticks) noexcept
