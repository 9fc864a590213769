# C types for narrow.py: the same source runs interpreted without them.
cimport cython


cdef Py_ssize_t _WORD
cdef unsigned long long _TOP
cdef unsigned long long _ALL


@cython.locals(columns=cython.Py_ssize_t, last=cython.Py_ssize_t, place=cython.Py_ssize_t, row=cython.Py_ssize_t, block=cython.Py_ssize_t, end=cython.Py_ssize_t, column=cython.Py_ssize_t, number=cython.Py_ssize_t, value=cython.ulonglong)
cdef void _narrow(const long long[::1] rows, const long long[::1] ends, const long long[::1] widths, const long long[::1] least, unsigned char[::1] packed) except *
@cython.locals(count=cython.Py_ssize_t, place=cython.Py_ssize_t, rows=cython.longlong, width=cython.longlong, one=cython.longlong, _=cython.Py_ssize_t)
cdef Py_ssize_t _count(const unsigned char[::1] blocks, Py_ssize_t columns) except -2
@cython.locals(last=cython.Py_ssize_t, place=cython.Py_ssize_t, to=cython.Py_ssize_t, end=cython.Py_ssize_t, column=cython.Py_ssize_t, number=cython.Py_ssize_t, value=cython.ulonglong, byte=cython.ulonglong)
cdef void _widen(const unsigned char[::1] blocks, Py_ssize_t columns, long long first_least, long long[::1] widths, unsigned long long[::1] masks, long long[::1] least, long long[::1] rows) except *
@cython.locals(number=cython.Py_ssize_t)
cdef void _write(unsigned char[::1] packed, Py_ssize_t place, unsigned long long value) noexcept nogil
@cython.locals(value=cython.ulonglong, byte=cython.ulonglong, number=cython.Py_ssize_t)
cdef long long _read(const unsigned char[::1] packed, Py_ssize_t place) noexcept nogil
cdef long long _signed(unsigned long long value) noexcept nogil
