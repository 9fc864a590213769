# C types for hashing.py: the same source runs interpreted without them.
cimport cython


cdef unsigned long long _PRIME
cdef unsigned long long _FIRST
cdef unsigned long long _SECOND
cdef unsigned long long _ALL


@cython.locals(last=cython.longlong, position=cython.Py_ssize_t)
cdef bint _within(const long long[::1] ends, Py_ssize_t size) except -1
@cython.locals(number=cython.Py_ssize_t, position=cython.longlong, value=cython.ulonglong)
cdef void _hash(const long long[::1] ends, const unsigned char[::1] text, unsigned long long seed, unsigned long long[::1] out) except *
