# C types for lazy_heap.py: the same source runs interpreted without them.
cimport cython
from lab.rivals.heap cimport Heap
from lab.rivals.rival cimport Rival

cdef int _FEW


cdef class LazyHeap(Rival):
    cdef Heap _heap
    cdef int _stale

    cdef void _file(self, int slot, long long deadline) except *
    cdef void _forget(self, int slot, long long handle) except *
    cdef long long _upcoming(self) except *
    @cython.locals(heap=Heap)
    cdef void _collect(self) except *
    cdef void _drop_stale(self) except *
    @cython.locals(heap=Heap, kept=cython.int, position=cython.int)
    cdef void _compact(self) except *
    cpdef list _filed(self)
