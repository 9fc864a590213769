# C types for delay_queue.py: the same source runs interpreted without them.
cimport cython
from lab.rivals.heap cimport Heap
from lab.rivals.rival cimport Rival


cdef class DelayQueue(Rival):
    cdef Heap _heap

    cdef void _file(self, int slot, long long deadline) except *
    @cython.locals(position=cython.int)
    cdef void _forget(self, int slot, long long handle) except *
    cdef long long _upcoming(self) except *
    @cython.locals(heap=Heap)
    cdef void _collect(self) except *
    cpdef list _filed(self)
