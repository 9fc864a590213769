# C types for reaped.py: the same source runs interpreted without them.
cimport cython
from abeyant.purgatory.nesting cimport enter, enter_at_any_depth, leave
from abeyant.purgatory.operation cimport DelayedOperation, Home

cdef int _PENDING
cdef int _COMPLETED
cdef int _EXPIRED
cdef bint _LOCKED
cdef long long _FOREVER


cdef class Reaped(Home):
    cdef object _clock
    cdef long long _interval
    cdef dict _lists
    cdef object _lock
    cdef long long _watched
    cdef long long _completed
    cdef long long _expired
    cdef long long _purges
    cdef long long _visited
    cdef long long _sleeps_until
    cdef object _wake

    @cython.locals(wanted=DelayedOperation)
    cpdef bint try_complete_else_watch(self, object operation, object keys) except -1
    @cython.locals(found=list, operation=DelayedOperation, completed=cython.longlong)
    cpdef object check_and_complete(self, object key)
    cpdef object next_expiration(self)
    cpdef long long turn(self, long long now) except -1
    cpdef object sleeping(self, long long until, object wake)

    cdef void _joined(self) except *
    cdef void _start(self, DelayedOperation operation, long long deadline) except *
    cdef long long _timer_size(self) except *
    cdef void _ended(self, DelayedOperation operation) except *

    cdef void _enter(self) except *
    cdef void _leave(self) except *
    @cython.locals(watchers=list)
    cdef void _watch(self, object key, DelayedOperation operation) except *
    cpdef bint _try(self, DelayedOperation operation) except -1
    @cython.locals(gone=list, watchers=list, kept=cython.Py_ssize_t, position=cython.Py_ssize_t, operation=DelayedOperation)
    cdef void _sweep(self, object key) except *
    cdef void _purge_lists(self) except *
    cpdef bint _expire(self, DelayedOperation operation) except -1
    cdef bint _end(self, DelayedOperation operation, int state, bint trying) except -1
    cpdef object _report(self, object error, DelayedOperation operation)
    cdef void _started(self, long long deadline) except *
