# C types for kafka.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.wheel cimport TimingWheel
from abeyant.pipeline.purging.reaped cimport Reaped
from abeyant.purgatory.operation cimport DelayedOperation

cdef int _PENDING


cdef class KafkaPurgatory(Reaped):
    cdef TimingWheel _wheel
    cdef long long _estimate

    cpdef object next_expiration(self)
    @cython.locals(due=list, expired=cython.longlong)
    cpdef long long turn(self, long long now) except -1
    cdef void _joined(self) except *
    cdef void _start(self, DelayedOperation operation, long long deadline) except *
    cdef long long _timer_size(self) except *
    cdef void _ended(self, DelayedOperation operation) except *
