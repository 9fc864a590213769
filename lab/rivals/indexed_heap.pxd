# C types for indexed_heap.py: the same source runs interpreted without them.
cimport cython
from lab.rivals.rival cimport Rival


cdef class IndexedHeap(Rival):
    cdef int _size
    cdef long long[::1] _deadline
    cdef int[::1] _slot
    cdef int[::1] _place

    cdef void _file(self, int slot, long long deadline) except *
    cdef void _forget(self, int slot, long long handle) except *
    cdef long long _upcoming(self) except *
    @cython.locals(slot=cython.int)
    cdef void _collect(self) except *
    @cython.locals(last=cython.int, deadline=cython.longlong, slot=cython.int)
    cdef void _delete(self, int place) noexcept
    @cython.locals(parent=cython.int)
    cdef void _rise(self, int place, long long deadline, int slot) noexcept
    @cython.locals(child=cython.int)
    cdef void _sink(self, int place, long long deadline, int slot) noexcept
    cdef void _put(self, int place, long long deadline, int slot) noexcept
    cdef void _make_room(self, int slot) except *
    @cython.locals(place=cython.int)
    cpdef list _filed(self)
