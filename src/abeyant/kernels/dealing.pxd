# C types for dealing.py: the same source runs interpreted without them.
cimport cython


cdef unsigned long long _GOLDEN
cdef unsigned long long _ALL
cdef Py_ssize_t _WIDTH


@cython.locals(row=cython.Py_ssize_t, number=cython.int)
cdef bint _all_in_range(const int[::1] numbers, Py_ssize_t count, Py_ssize_t rows) except -1
@cython.locals(row=cython.Py_ssize_t, one=cython.Py_ssize_t, other=cython.Py_ssize_t)
cdef void _pair(const unsigned long long[::1] ones, const int[::1] one_of, const unsigned long long[::1] others, const int[::1] other_of, unsigned long long[::1] places, unsigned long long[::1] identities) except *
cdef unsigned long long _both(unsigned long long one, unsigned long long other) noexcept nogil
@cython.locals(shard=cython.Py_ssize_t, row=cython.Py_ssize_t, to=cython.Py_ssize_t, count=cython.Py_ssize_t)
cdef void _deal(const long long[::1] places, const long long[::1] identities, const long long[::1] thirds, const long long[::1] fourths, int shift, long long[::1] ends, long long[::1] rows) except *
cdef Py_ssize_t _shard(long long place, int shift) noexcept nogil
