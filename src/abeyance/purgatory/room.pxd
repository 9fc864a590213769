# C types for room.py: the same source runs interpreted without them.
cimport cython
from abeyance.purgatory.directory cimport Directory
from abeyance.purgatory.nesting cimport enter, leave, release, settle
from abeyance.purgatory.operation cimport DelayedOperation, Home, refuse_async
from abeyance.timer.base cimport Timer
from abeyance.timer.units cimport whole_nanoseconds

cdef int _PENDING
cdef int _COMPLETED
cdef int _EXPIRED
cdef int _CANCELLED
cdef int _LEFT_BEHIND
cdef int _ADOPTED
cdef int _HAD_HOME
cdef int _ENDED_ALONE
cdef bint _LOCKED
cdef int _ROUNDS
cdef object _EXPIRE


cdef class Room(Home):
    cdef object __weakref__
    cdef object _name
    cdef object _timer
    cdef Timer _quick_timer
    cdef object _on_error
    cdef Directory _directory
    cdef long long _delayed
    cdef long long _completed
    cdef long long _expired
    cdef long long _cancelled
    cdef long long _errors

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
    cpdef object _begin_anew(self)
    @cython.locals(accepted=cython.bint, errors=list, directory=Directory)
    cdef list _submit(self, DelayedOperation operation, tuple keys)
    cdef list _attempt_catching(self, DelayedOperation operation, list errors)
    cdef bint _watch(self, DelayedOperation operation, tuple keys) except -1
    @cython.locals(handle=cython.longlong, surplus=cython.bint)
    cdef object _start_timer(self, DelayedOperation operation)
    cdef bint _stop(self, DelayedOperation operation, long long handle, object task) except -1
    cpdef bint _try(self, DelayedOperation operation) except -1
    @cython.locals(done=cython.bint, rounds=cython.int)
    cpdef bint _attempt(self, DelayedOperation operation) except -1
    cpdef bint _expire(self, DelayedOperation operation) except -1
    cpdef bint _expire_early(self, DelayedOperation operation) except -1
    @cython.locals(failures=list)
    cdef bint _let_expire(self, DelayedOperation operation, bint fired) except -1
    cdef bint _end(self, DelayedOperation operation, int state, bint trying) except -1
    @cython.locals(earlier=cython.int, handle=cython.longlong)
    cdef bint _pass(self, DelayedOperation operation, int state, bint trying, bint fired) except -1
    cpdef object _report(self, object error, DelayedOperation operation)
    @cython.locals(timed=cython.longlong)
    cpdef object _check(self)


@cython.locals(home=Room)
cpdef object expire(DelayedOperation operation)
cpdef bint _is_timed(DelayedOperation operation) except -1
