# C types for meter.py: the same source runs interpreted without them.
cimport cython

cdef int _BUCKETS
cdef int _FIRST


cdef class Meter:
    cdef int _every
    cdef int _left
    cdef list _late
    cdef list _long
    cdef long long _late_total
    cdef long long _long_total

    cdef bint _due(self) noexcept
    cdef void _add(self, long long late, long long took) except *


cpdef Meter measuring(Meter meter, object every)
@cython.locals(rest=cython.longlong, bucket=cython.int)
cdef int _bucket(long long duration) noexcept
