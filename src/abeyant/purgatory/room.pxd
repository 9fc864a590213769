# C types for room.py: the same source runs interpreted without them.
cimport cython
from abeyant.purgatory.directory cimport Directory
from abeyant.purgatory.life cimport Life
from abeyant.purgatory.nesting cimport enter, release, settle
from abeyant.purgatory.operation cimport DelayedOperation

cdef int _PENDING
cdef int _COMPLETED
cdef int _EXPIRED
cdef int _CANCELLED
cdef int _LEFT_BEHIND
cdef int _ADOPTED
cdef int _HAD_HOME
cdef int _ENDED_ALONE
cdef int _ROUNDS


cdef class Room(Life):
    cdef object __weakref__
    cdef object _name

    @cython.locals(wanted=DelayedOperation, listed=tuple, watches=cython.int, adopted=cython.int, closed=cython.bint, errors=list)
    cpdef bint try_complete_else_watch(self, object operation, object keys) except -1
    @cython.locals(operation=DelayedOperation, position=cython.Py_ssize_t, completed=cython.longlong)
    cpdef object check_and_complete(self, object key)
    @cython.locals(wanted=DelayedOperation)
    cpdef bint _cancel(self, object operation) except -1
    cdef bint _is_made(self) except -1
    @cython.locals(operation=DelayedOperation, several=list)
    cpdef list _cancel_for_key(self, object key)
    @cython.locals(operation=DelayedOperation)
    cpdef list _close(self, bint expiring)

    cdef object _keep_nothing(self)
    @cython.locals(operation=DelayedOperation, inherited=Directory, closed=cython.bint)
    cpdef object _reset_in_child(self)
    @cython.locals(accepted=cython.bint, errors=list, directory=Directory)
    cdef list _submit(self, DelayedOperation operation, tuple keys)
    cdef list _attempt_catching(self, DelayedOperation operation, list errors)
    cdef bint _watch(self, DelayedOperation operation, tuple keys) except -1
    @cython.locals(operation=DelayedOperation, timed=cython.longlong)
    cpdef object _check(self)
