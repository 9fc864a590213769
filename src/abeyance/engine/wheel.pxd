# C types for wheel.py: the same source runs interpreted without them.
cimport cython
from abeyance.engine.delay_queue cimport DelayQueue
from abeyance.engine.slab cimport Slab


cdef long long _MAX_TIME
cdef long long _FOREVER
cdef int _MAX_LEVELS


@cython.final
cdef class TimingWheel:
    cdef long long _tick
    cdef long long _clock
    cdef long long _wheel_size
    cdef Slab _slab
    cdef int _due
    cdef int _cascading
    cdef list _overdue
    cdef long long _overdue_order
    cdef DelayQueue _queue
    cdef int _levels
    cdef long long[::1] _span
    cdef long long[::1] _base
    cdef long long[::1] _horizon
    cdef long long _pending
    cdef long long _started
    cdef long long _expired
    cdef long long _cancelled
    cdef long long _cascaded

    @cython.locals(ticks=cython.longlong, slot=cython.int)
    cpdef long long add(self, long long deadline, object item) except *
    @cython.locals(slot=cython.int)
    cpdef object remove(self, long long handle)
    @cython.locals(slot=cython.int, ticks=cython.longlong, filed=cython.longlong)
    cpdef bint refresh(self, long long handle, long long deadline) except -1
    cpdef bint is_pending(self, long long handle)
    @cython.locals(ticks=cython.longlong)
    cpdef object next_expiration(self)
    @cython.locals(left=cython.longlong, target=cython.longlong, slot=cython.int)
    cpdef list advance(self, long long now, object budget=*)
    @cython.locals(slot=cython.int)
    cpdef object poll(self, long long now, long long budget=*)

    @cython.locals(ticks=cython.longlong)
    cdef long long _to_ticks(self, long long deadline) except *
    @cython.locals(ticks=cython.longlong)
    cdef long long _to_clock(self, long long now) except *
    @cython.locals(slab=Slab, ticks=cython.longlong, level=cython.int, virtual=cython.longlong, sentinel=cython.int, expiration=cython.longlong)
    cdef void _file(self, int slot, bint cascading) except *
    @cython.locals(level=cython.int, span=cython.longlong)
    cdef void _add_level(self) except *
    @cython.locals(span=cython.longlong, first=cython.longlong)
    cdef void _set_horizon(self, int level) except *
    @cython.locals(slab=Slab, expiration=cython.longlong, sentinel=cython.int)
    cdef long long _next_ticks(self) except *
    @cython.locals(slab=Slab, slot=cython.int, expiration=cython.longlong, sentinel=cython.int, upcoming=cython.longlong)
    cdef long long _settle(self, long long target, long long budget) except *
    @cython.locals(level=cython.int, was=cython.longlong)
    cdef void _set_clock(self, long long ticks) except *
    @cython.locals(slot=cython.int)
    cdef int _next_due(self) except *
    @cython.locals(slot=cython.int)
    cdef object _ticks_of(self, long long handle)
    cdef void _drop_stale_overdue(self) except *
    cdef object _hand_out(self, int slot)

    @cython.locals(slot=cython.int, level=cython.int, index=cython.int)
    cpdef list drain(self)
