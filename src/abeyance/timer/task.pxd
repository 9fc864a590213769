# C types for task.py: the same source runs interpreted without them.
cimport cython


cdef class TaskOwner:
    cdef bint _cancel(self, TimerTask task) except *
    cdef bint _refresh(self, TimerTask task) except *
    cpdef bint _is_pending(self, TimerTask task) except *


@cython.final
cdef class TimerTask:
    cdef object _owner
    cdef long long _handle
    cdef long long _delay
    cdef long long _deadline
    cdef bint _cancelled

    @cython.locals(owner=TaskOwner)
    cpdef bint cancel(self) except *
    @cython.locals(owner=TaskOwner)
    cpdef bint refresh(self) except *
