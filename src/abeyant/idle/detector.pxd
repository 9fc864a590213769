# C types for detector.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from abeyant.engine.wheel cimport TimingWheel
from abeyant.idle.peers cimport Peers
from abeyant.timer.base cimport Timer
from abeyant.timer.task cimport TimerTask
from abeyant.timer.units cimport to_nanoseconds

cdef long long _AWAKE
cdef long long _NEVER
cdef long long _LONGEST
cdef int _BATCH
cdef object _NOBODY


cdef class IdleDetector:
    cdef object __weakref__
    cdef long long _timeout
    cdef object _on_idle
    cdef object _own_timer
    cdef Timer _timer
    cdef TimingWheel _wheel
    cdef Peers _peers
    cdef TimerTask _alarm
    cdef long long _alarm_at
    cdef long long _number

    cdef object _watch_nobody(self)
    @cython.locals(peers=Peers, hashed=cython.longlong, deadline=cython.longlong, number=cython.longlong, slot=cython.int, refused=cython.bint, closed=cython.bint)
    cpdef object seen(self, object peer)
    @cython.locals(peers=Peers, hashed=cython.longlong, slot=cython.int, alarm=TimerTask)
    cpdef bint forget(self, object peer) except -1
    @cython.locals(peers=Peers, hashed=cython.longlong, now=cython.longlong, slot=cython.int)
    cpdef object idle_for(self, object peer)
    cdef bint _is_made(self) except -1
    @cython.locals(drained=list, alarm=TimerTask)
    cpdef list close(self)

    @cython.locals(now=cython.longlong, slot=cython.int)
    cpdef object _turn(self)
    @cython.locals(number=cython.longlong, deadline=cython.longlong)
    cdef object _set_next_alarm(self)
    @cython.locals(task=TimerTask)
    cdef object _set_alarm(self, long long number, long long deadline)
    cdef long long _draw(self, long long deadline) noexcept

    @cython.locals(now=cython.longlong)
    cpdef object _set_back(self, object loop)

    @cython.locals(slab=Slab)
    cpdef object _check(self)
