# C types for operation.py: the same source runs interpreted without them.
cimport cython
from abeyant.purgatory.nesting cimport Locked, begin, enter_at_any_depth, leave, whole_lock

cdef int _PENDING
cdef int _COMPLETED
cdef int _LEFT_BEHIND
cdef int _ADOPTED
cdef int _HAD_HOME
cdef int _ENDED_ALONE
cdef bint _LOCKED
cdef double _LONGEST


cdef class Home:
    cdef bint _end(self, DelayedOperation operation, int state, bint trying) except -1
    cpdef object _report(self, object error, DelayedOperation operation)


cdef class DelayedOperation(Locked):
    cdef object __weakref__
    cdef int _dop_state
    cdef bint _dop_trying
    cdef bint _dop_again
    cdef bint _dop_many
    cdef int _dop_watches
    cdef double _dop_timeout
    cdef long long _dop_handle
    cdef Home _dop_home
    cdef object _dop_task

    cdef bint _dop_is_ready(self) except -1
    cdef int _dop_adopt(self, Home home, int watches, bint many) except -1
    cdef int _dop_move_in(self, Home home, int watches, bint many) except -1
    cdef bint _dop_end(self, int state, bint trying) except -1
    cdef bint _dop_end_alone(self, int state) except -1


cpdef bint refuse_async(object result, DelayedOperation operation, object method) except -1
@cython.locals(home=Home)
cpdef object _complete_later(DelayedOperation operation)
@cython.locals(seconds=cython.double)
cdef double _seconds(object timeout) except -1
