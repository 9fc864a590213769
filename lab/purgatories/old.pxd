# C types for old.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from abeyant.pipeline.purging.reaped cimport Reaped
from lab.rivals.delay_queue cimport DelayQueue
from lab.rivals.heap cimport Heap
from abeyant.purgatory.operation cimport DelayedOperation

cdef int _PENDING


cdef class OldPurgatory(Reaped):
    cdef DelayQueue _queue

    cpdef object next_expiration(self)
    @cython.locals(expired=cython.longlong, due=list)
    cpdef long long turn(self, long long now) except -1
    cdef void _start(self, DelayedOperation operation, long long deadline) except *
    cdef long long _timer_size(self) except *
    @cython.locals(gone=list, queue=DelayQueue, heap=Heap, slab=Slab, kept=cython.int, position=cython.int, slot=cython.int, operation=DelayedOperation)
    cdef void _purge_queue(self) except *
