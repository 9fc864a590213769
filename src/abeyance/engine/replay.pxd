# C types for replay.py: the same source runs interpreted without them.
cimport cython
from abeyance.engine.bulk cimport BulkWheel
from abeyance.engine.delay_queue cimport DelayQueue
from abeyance.engine.wheel cimport TimingWheel


cdef long long _MAX_TIME
cdef long long _FOREVER
cdef long long _LOW_HALF
cdef int _DIGIT
cdef int _DIGITS
cdef long long _DIGIT_MASK


@cython.final
cdef class _Run:
    cdef BulkWheel _bulk
    cdef long long _tick
    cdef object _wheel_size
    cdef const long long[::1] _starts
    cdef const long long[::1] _until
    cdef const long long[::1] _ends
    cdef bint _absolute
    cdef bint _exclusive
    cdef long long[::1] _handles
    cdef bint _sorted
    cdef long long _completed
    cdef long long _at_start
    cdef long long _overtaken
    cdef long long _most
    cdef long long _late_most
    cdef long long _late_high
    cdef long long _late_low
    cdef long long _waited_high
    cdef long long _waited_low
    cdef long long _wakeups
    cdef long long _first
    cdef long long _now
    cdef long long _last

    cdef object judge(self, object completed, object ended_at)
    @cython.locals(row=cython.Py_ssize_t, absolute=cython.bint, first=cython.longlong, before=cython.longlong, start=cython.longlong, until=cython.longlong, deadline=cython.longlong, end=cython.longlong)
    cdef Py_ssize_t _judge(self, unsigned char[::1] completed, long long[::1] ended_at) except *
    cdef object drive(self, object completed, object ended_at)
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _collect_starts(self, long long[::1] start_at, int[::1] start_row) except *
    @cython.locals(ends=cython.Py_ssize_t, row=cython.Py_ssize_t)
    cdef void _collect_ends(self, const unsigned char[::1] completed, const long long[::1] ended_at, long long[::1] end_at, int[::1] end_row) except *
    @cython.locals(bulk=BulkWheel, wheel=TimingWheel, starts=cython.Py_ssize_t, ends=cython.Py_ssize_t, next_start=cython.Py_ssize_t, next_end=cython.Py_ssize_t, ending=cython.bint, at=cython.longlong, row=cython.Py_ssize_t)
    cdef void _drive(self, const long long[::1] start_at, const int[::1] start_row, const long long[::1] end_at, const int[::1] end_row) except *
    @cython.locals(wheel=TimingWheel, queue=DelayQueue)
    cdef bint _may_come_up_before(self, long long at) noexcept
    @cython.locals(wheel=TimingWheel, ticks=cython.longlong, up=cython.longlong, target=cython.longlong, slot=cython.int, row=cython.Py_ssize_t, late=cython.longlong)
    cdef void _come_up_before(self, long long at) except *
    cdef void _leave(self, long long at) noexcept
    cdef object stats(self)


@cython.locals(run=_Run)
cdef object _replay(object starts, object until, object ends, bint absolute, bint exclusive, object tick, object wheel_size)
cdef object _whole(object high, object low)
cpdef sort_by_key(object keys, object rows)
@cython.locals(position=cython.Py_ssize_t, before=cython.longlong)
cdef bint _is_sorted(const long long[::1] keys) except *
@cython.locals(count=cython.Py_ssize_t, position=cython.Py_ssize_t, low=cython.longlong, high=cython.longlong, key=cython.longlong, shift=cython.int, there=cython.bint)
cdef void _sort(long long[::1] keys, int[::1] rows, long long[::1] other_keys, int[::1] other_rows) except *
@cython.locals(position=cython.Py_ssize_t, digit=cython.Py_ssize_t, total=cython.Py_ssize_t, count=cython.Py_ssize_t, to=cython.Py_ssize_t, key=cython.longlong)
cdef void _scatter(const long long[::1] keys, const int[::1] rows, long long[::1] to_keys, int[::1] to_rows, long long[::1] place, long long low, int shift) except *
