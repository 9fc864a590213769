# C types for delay_queue.py: the same source runs interpreted without them.
cimport cython

cdef long long _FOREVER


@cython.final
cdef class DelayQueue:
    cdef long long[::1] _expiration
    cdef long long[::1] _bucket
    cdef int _size
    cdef long long _pushed

    cdef long long first_expiration(self) noexcept
    cdef int first_bucket(self) noexcept
    cdef long long second_expiration(self) noexcept
    @cython.locals(child=cython.int, parent=cython.int)
    cdef void push(self, long long expiration, int bucket) except *
    @cython.locals(first=cython.int, size=cython.int, expiration=cython.longlong, bucket=cython.int, parent=cython.int, child=cython.int)
    cdef int pop(self) noexcept
    cdef bint _precedes(self, int one, int other) noexcept
    cdef void _grow(self) except *
    @cython.locals(i=cython.int)
    cpdef list entries(self)
    @cython.locals(child=cython.int)
    cpdef _check(self)
