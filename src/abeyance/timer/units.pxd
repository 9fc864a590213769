# C types for units.py: the same source runs interpreted without them.
cimport cython

cdef long long _NEVER
cdef double _NANOSECONDS
cdef double _MANY_SECONDS

@cython.locals(value=cython.double)
cpdef long long to_nanoseconds(object seconds, object name) except *
