# C types for nesting.py: the same source runs interpreted without them.
cimport cython

cdef bint _LOCKED
cdef int _DEEPEST


cdef class Locked:
    cdef object _dop_lock
    cdef unsigned long _dop_owner
    cdef int _dop_held


cpdef bint begin(Locked operation, object lock) except -1
@cython.locals(held=cython.int, owner=cython.ulong)
cpdef object whole_lock(Locked operation)
@cython.locals(me=cython.ulong)
cdef bint _take(Locked operation, bint blocking) except -1
cdef bint _give(Locked operation) except -1
cpdef bint enter(Locked operation) except -1
cpdef bint enter_at_any_depth(Locked operation) except -1
cpdef bint release(Locked operation) except -1
cpdef bint leave(Locked operation) except -1
@cython.locals(interruption=object)
cpdef object settle()
