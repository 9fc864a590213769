# C types for radix.py: the same source runs interpreted without them.
cimport cython


cdef long long _FOREVER
cdef int _DIGIT
cdef int _DIGITS
cdef long long _DIGIT_MASK


cpdef sort_by_key(object keys, object rows)
@cython.locals(position=cython.Py_ssize_t, before=cython.longlong)
cdef bint _is_sorted(const long long[::1] keys) except *
@cython.locals(position=cython.Py_ssize_t, low=cython.longlong, high=cython.longlong, key=cython.longlong, shift=cython.int, there=cython.bint)
cdef void _sort(long long[::1] keys, int[::1] rows, long long[::1] other_keys, int[::1] other_rows) except *
@cython.locals(position=cython.Py_ssize_t, digit=cython.Py_ssize_t, total=cython.Py_ssize_t, count=cython.Py_ssize_t, to=cython.Py_ssize_t, key=cython.longlong, paired=cython.bint)
cdef void _scatter(const long long[::1] keys, const int[::1] rows, long long[::1] to_keys, int[::1] to_rows, long long[::1] place, long long low, int shift) except *
