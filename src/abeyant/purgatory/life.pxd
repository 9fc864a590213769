# C types for life.py: the same source runs interpreted without them.
cimport cython
from abeyant.purgatory.directory cimport Directory
from abeyant.purgatory.nesting cimport enter, leave
from abeyant.purgatory.operation cimport DelayedOperation, Home, refuse_async
from abeyant.timer.base cimport Timer
from abeyant.timer.units cimport whole_nanoseconds

cdef int _PENDING
cdef int _COMPLETED
cdef int _EXPIRED
cdef int _CANCELLED
cdef bint _LOCKED
cdef int _ROUNDS
cdef object _EXPIRE


cdef class Life(Home):
    cdef object _timer
    cdef Timer _quick_timer
    cdef object _on_error
    cdef Directory _directory
    cdef long long _delayed
    cdef long long _completed
    cdef long long _expired
    cdef long long _cancelled
    cdef long long _errors

    @cython.locals(handle=cython.longlong, surplus=cython.bint)
    cdef object _start_timer(self, DelayedOperation operation)
    cdef bint _stop(self, DelayedOperation operation, long long handle, object task) except -1
    cpdef bint _try(self, DelayedOperation operation) except -1
    cdef object _try_later(self, DelayedOperation operation)
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


@cython.locals(home=Life)
cpdef object expire(DelayedOperation operation)
