# C types for task.py: the same source runs interpreted without them.
cimport cython

cdef long long _CANCELLED


cdef class TaskOwner:
    cdef bint _cancel(self, TimerTask task) except -1
    cdef bint _refresh(self, TimerTask task) except -1
    cpdef bint _is_pending(self, TimerTask task) except -1


# No C methods: their table would add a pointer to every handle, and so 16 bytes.
@cython.final
cdef class TimerTask:
    cdef object _owner
    cdef long long _handle
    cdef long long _delay
    cdef long long _deadline
