# C types for meter.py: the same source runs interpreted without them.
cimport cython
from cpython.array cimport array

cdef int _BUCKETS
cdef int _FIRST


cdef class Meter:
    cdef int _every
    cdef int _left
    cdef array _late
    cdef array _long
    cdef long long* _late_counts
    cdef long long* _long_counts
    cdef long long _late_total
    cdef long long _long_total

    cdef bint _due(self) noexcept
    cdef void _add(self, long long late, long long took) except *


cpdef Meter measuring(Meter meter, object every)
@cython.locals(bucket=cython.int)
cdef int _bucket(long long duration) noexcept
