# C types for wheel.py: the same source runs interpreted without them.
cimport cython
from libc.stdint cimport int64_t
from abeyant.engine.delay_queue cimport DelayQueue
from abeyant.engine.slab cimport Slab


cdef long long _MAX_TIME
cdef long long _FOREVER
cdef int _MAX_LEVELS
cdef long long _SLOT_MASK
cdef Py_ssize_t _FEW


cpdef long long whole_number(object value, str name) except *


@cython.final
cdef class TimingWheel:
    cdef long long _tick
    cdef long long _clock
    cdef long long _wheel_size
    cdef Slab _slab
    cdef int _due
    cdef int _cascading
    cdef list _overdue
    cdef Py_ssize_t _overdue_most
    cdef long long _overdue_order
    cdef DelayQueue _queue
    cdef int _levels
    cdef long long[::1] _span
    cdef long long[::1] _shift
    cdef long long[::1] _reach
    cdef long long[::1] _base
    cdef long long[::1] _first
    cdef long long[::1] _begin
    cdef long long[::1] _horizon
    cdef long long _pending
    cdef long long _started
    cdef long long _expired
    cdef long long _cancelled
    cdef long long _cascaded

    cdef void _make_slab(self, long long born) except *
    cdef bint _check_initialised(self) except -1
    @cython.locals(wheel=TimingWheel)
    cpdef TimingWheel _successor(self, long long start)
    @cython.locals(ticks=cython.longlong, handle=cython.longlong)
    cdef int64_t _add(self, long long deadline, object item) except -1
    @cython.locals(slot=cython.int)
    cdef object _remove(self, long long handle)
    @cython.locals(slot=cython.int, ticks=cython.longlong, filed=cython.longlong)
    cdef bint _refresh(self, long long handle, long long deadline) except -1
    cdef void _foresee(self, long long handle) noexcept
    cdef bint _is_pending(self, long long handle) noexcept
    @cython.locals(upcoming=cython.longlong)
    cpdef object next_expiration(self)
    cpdef object earliest(self)
    @cython.locals(slab=Slab, queue=DelayQueue, earliest=cython.longlong)
    cdef list _earliest(self)
    @cython.locals(slab=Slab, slot=cython.int, deadline=cython.longlong)
    cdef int64_t _read_earliest(self, int sentinel, long long earliest, list slots) except? -1
    @cython.locals(ticks=cython.longlong)
    cdef long long _now(self) noexcept
    cdef int64_t _upcoming(self) except? -2
    @cython.locals(left=cython.longlong, target=cython.longlong, slot=cython.int)
    cpdef list advance(self, object now, object budget=*)
    @cython.locals(slot=cython.int)
    cdef object _poll(self, long long now, long long budget)

    @cython.locals(ticks=cython.longlong)
    cdef int64_t _to_ticks(self, long long deadline) except? 0x7FFFFFFFFFFFFFFF
    cdef int64_t _to_clock(self, long long now) except -1
    @cython.locals(slab=Slab, ticks=cython.longlong, level=cython.int, ahead=cython.longlong, bucket=cython.longlong, sentinel=cython.int, expiration=cython.longlong)
    cdef void _file(self, int slot, bint cascading) except *
    @cython.locals(level=cython.int, span=cython.longlong)
    cdef void _add_level(self) except *
    @cython.locals(number=cython.longlong, begin=cython.longlong)
    cdef void _place(self, int level) noexcept
    @cython.locals(slab=Slab, sentinel=cython.int)
    cdef int64_t _next_ticks(self) except? -2
    @cython.locals(slab=Slab, slot=cython.int, sentinel=cython.int, upcoming=cython.longlong)
    cdef int64_t _settle(self, long long target, long long budget) except? -2
    cdef bint _cascade_is_due(self) except -1
    @cython.locals(slab=Slab, sentinel=cython.int, slot=cython.int, deadline=cython.longlong)
    cdef bint _reach_lone(self, long long target) noexcept
    @cython.locals(level=cython.int)
    cdef void _set_clock(self, long long ticks) noexcept
    @cython.locals(slot=cython.int)
    cdef int _next_due(self) except? -2
    cdef void _file_overdue(self, long long ticks, long long handle) except *
    cdef void _drop_stale_overdue(self) except *
    cdef void _forget_stale_overdue(self) except *
    @cython.locals(slot=cython.int)
    cdef bint _is_overdue(self, tuple entry) except -1
    cdef object _hand_out(self, int slot)

    @cython.locals(slot=cython.int)
    cpdef list drain(self)
    @cython.locals(slab=Slab, handle=cython.longlong, level=cython.int)
    cpdef object _set_back(self, long long now)
    @cython.locals(slot=cython.int, level=cython.int, index=cython.int)
    cdef list _in_order(self)
