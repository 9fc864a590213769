# C types for units.py: the same source runs interpreted without them.
cimport cython
from libc.stdint cimport int64_t

cdef long long _NEVER
cdef double _NANOSECONDS
cdef double _MANY_SECONDS

cpdef long long whole_nanoseconds(double seconds) noexcept
@cython.locals(value=cython.double)
cpdef int64_t to_nanoseconds(object seconds, object name) except? 0x7FFFFFFFFFFFFFFF
