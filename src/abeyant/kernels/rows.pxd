# C types for rows.py: the same source runs interpreted without them.
cimport cython


cdef Py_ssize_t WIDTH
cdef Py_ssize_t COARSE
cdef Py_ssize_t _WIDTH
cdef Py_ssize_t _FINE
cdef Py_ssize_t _BLOCK


cdef Py_ssize_t coarse_buckets(Py_ssize_t count) noexcept nogil
cdef Py_ssize_t fine_buckets(Py_ssize_t count) noexcept nogil
cdef long long half_place(const long long[::1] rows, Py_ssize_t row) noexcept nogil
cdef Py_ssize_t spread(const long long[::1] rows, long long[::1] target, long long[::1] ends) noexcept nogil
@cython.locals(buckets=cython.Py_ssize_t, bucket=cython.Py_ssize_t, low=cython.Py_ssize_t, high=cython.Py_ssize_t, other="long long[::1]")
cdef void sort(long long[::1] rows, Py_ssize_t begin, Py_ssize_t end, long long[::1] target, long long[::1] ends) noexcept nogil
@cython.locals(row=cython.Py_ssize_t, low=cython.longlong, high=cython.longlong, place=cython.longlong, shift=cython.int, bucket=cython.Py_ssize_t, count=cython.Py_ssize_t, to=cython.Py_ssize_t)
cdef Py_ssize_t _deal(const long long[::1] rows, Py_ssize_t begin, Py_ssize_t end, long long[::1] target, long long[::1] ends, Py_ssize_t buckets) noexcept nogil
cdef void _move(const long long[::1] rows, Py_ssize_t row, long long[::1] target, Py_ssize_t to) noexcept nogil
cdef bint _is_before(const long long[::1] rows, Py_ssize_t one, Py_ssize_t other) noexcept nogil
@cython.locals(row=cython.Py_ssize_t, begin=cython.Py_ssize_t, middle=cython.Py_ssize_t, end=cython.Py_ssize_t, width=cython.Py_ssize_t, there=cython.bint)
cdef void _sort_many(long long[::1] rows, long long[::1] other, Py_ssize_t low, Py_ssize_t high) noexcept nogil
@cython.locals(row=cython.Py_ssize_t, to=cython.Py_ssize_t)
cdef void _insert(long long[::1] rows, Py_ssize_t low, Py_ssize_t high) noexcept nogil
cdef void _reverse(long long[::1] rows, Py_ssize_t low, Py_ssize_t high) noexcept nogil
@cython.locals(column=cython.Py_ssize_t, value=cython.longlong)
cdef void _swap(long long[::1] rows, Py_ssize_t one, Py_ssize_t other) noexcept nogil
@cython.locals(left=cython.Py_ssize_t, right=cython.Py_ssize_t, to=cython.Py_ssize_t)
cdef void _merge(const long long[::1] source, long long[::1] target, Py_ssize_t low, Py_ssize_t middle, Py_ssize_t high) noexcept nogil
