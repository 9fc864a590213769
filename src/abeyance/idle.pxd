# C types for idle.py: the same source runs interpreted without them.
cimport cython
from abeyance.engine.slab cimport Slab
from abeyance.engine.wheel cimport TimingWheel
from abeyance.timer.base cimport Timer
from abeyance.timer.task cimport TimerTask
from abeyance.timer.units cimport to_nanoseconds

cdef bint _LOCKED
cdef long long _AWAKE
cdef long long _NEVER
cdef long long _LONGEST
cdef long long _SLOT_MASK
cdef unsigned long long _GOLDEN
cdef unsigned long long _WORD
cdef int _BATCH
cdef object _NOBODY


cdef class IdleDetector:
    cdef object __weakref__
    cdef long long _timeout
    cdef object _on_idle
    cdef object _own_timer
    cdef Timer _timer
    cdef TimingWheel _wheel
    cdef bint _closed
    cdef object _lock
    cdef TimerTask _alarm
    cdef long long _alarm_at
    cdef long long _number
    cdef long long[::1] _hash
    cdef int[::1] _chain
    cdef int _bits
    cdef int[::1] _first

    @cython.locals(hashed=cython.longlong, deadline=cython.longlong, number=cython.longlong, slot=cython.int, refused=cython.bint, closed=cython.bint)
    cpdef object seen(self, object peer)
    @cython.locals(hashed=cython.longlong, slot=cython.int, alarm=TimerTask)
    cpdef bint forget(self, object peer) except -1
    @cython.locals(hashed=cython.longlong, now=cython.longlong, slot=cython.int)
    cpdef object idle_for(self, object peer)
    cdef bint _is_made(self) except -1
    @cython.locals(closed=cython.bint, bucket=cython.int, drained=list, alarm=TimerTask)
    cpdef list close(self)

    @cython.locals(number=cython.longlong, deadline=cython.longlong)
    cdef object _set_next_alarm(self)
    @cython.locals(task=TimerTask)
    cdef object _set_alarm(self, long long number, long long deadline)

    cdef void _enter(self) except *
    cdef void _leave(self) except *
    cdef long long _draw(self, long long deadline) noexcept
    @cython.locals(filed=cython.longlong)
    cdef bint _is_later(self, int slot, long long deadline) noexcept
    @cython.locals(wheel=TimingWheel, slot=cython.int)
    cdef object _take_idle(self, long long now)
    @cython.locals(slab=Slab, started=cython.longlong, slot=cython.int, handle=cython.longlong, same=cython.bint)
    cdef int _find(self, object peer, long long hashed) except? -2
    cdef int _bucket(self, long long hashed) noexcept
    @cython.locals(handle=cython.longlong, slot=cython.int, bucket=cython.int)
    cdef void _watch(self, object peer, long long hashed, long long deadline) except *
    @cython.locals(bucket=cython.int, before=cython.int)
    cdef void _unchain(self, int slot) noexcept
    cdef void _grow(self) except *
    @cython.locals(slot=cython.int, bucket=cython.int)
    cdef void _widen(self) except *
    @cython.locals(slab=Slab, bucket=cython.int, slot=cython.int)
    cpdef object _check(self)
