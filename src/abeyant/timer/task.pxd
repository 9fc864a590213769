# C types for task.py: the same source runs interpreted without them.
cimport cython

cdef long long _CANCELLED


cdef class TaskOwner:
    cdef bint _cancel(self, TimerTask task) except -1
    cdef bint _refresh(self, TimerTask task) except -1
    cpdef bint _is_pending(self, TimerTask task) except -1


# No C methods: a table of them would make every handle a pointer, and with it 16 bytes, larger.
@cython.final
cdef class TimerTask:
    cdef object _owner
    cdef long long _handle
    cdef long long _delay
    cdef long long _deadline
