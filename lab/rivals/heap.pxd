# C types for heap.py: the same source runs interpreted without them.
cimport cython


@cython.final
cdef class Heap:
    cdef long long[::1] deadline
    cdef long long[::1] handle
    cdef int size

    cdef void push(self, long long deadline, long long handle) except *
    @cython.locals(last=cython.int, deadline=cython.longlong, handle=cython.longlong)
    cdef void delete(self, int position) noexcept
    @cython.locals(position=cython.int)
    cdef int search(self, long long handle) noexcept
    @cython.locals(position=cython.int)
    cdef void heapify(self) noexcept
    @cython.locals(parent=cython.int)
    cdef void _rise(self, int position, long long deadline, long long handle) noexcept
    @cython.locals(child=cython.int)
    cdef void _sink(self, int position, long long deadline, long long handle) noexcept
    cdef void _grow(self) except *
    @cython.locals(i=cython.int, child=cython.int)
    cpdef list entries(self)
