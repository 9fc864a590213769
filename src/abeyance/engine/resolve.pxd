# C types for resolve.py: the same source runs interpreted without them.
cimport cython


cdef long long _NEVER
cdef Py_ssize_t _WIDTH
cdef Py_ssize_t _BUCKET
cdef Py_ssize_t _BLOCK


@cython.final
cdef class Staircases:
    cdef long long[::1] _steps
    cdef Py_ssize_t _count

    @cython.locals(kept=cython.Py_ssize_t, last=cython.Py_ssize_t, position=cython.Py_ssize_t, row=cython.Py_ssize_t, column=cython.Py_ssize_t)
    cdef void _keep(self, const long long[::1] rows, const int[::1] order) except *
    @cython.locals(row=cython.Py_ssize_t, step=cython.Py_ssize_t, at=cython.longlong)
    cdef void _judge(self, const long long[::1] place, const long long[::1] identity, const long long[::1] required, const long long[::1] starts, const long long[::1] deadlines, bint exclusive, long long[::1] reached) except *
    @cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t)
    cdef Py_ssize_t _find(self, long long place, long long identity, long long required) noexcept
    cdef bint _comes_after(self, Py_ssize_t step, long long place, long long identity, long long required) noexcept


cdef bint _comes_before(const long long[::1] rows, Py_ssize_t one, Py_ssize_t other) noexcept
cdef bint _is_step(const long long[::1] rows, Py_ssize_t last, Py_ssize_t row) noexcept
@cython.locals(steps=cython.Py_ssize_t, last=cython.Py_ssize_t, position=cython.Py_ssize_t)
cdef Py_ssize_t _count_steps(const long long[::1] rows, const int[::1] order) except *
@cython.locals(count=cython.Py_ssize_t, row=cython.Py_ssize_t, low=cython.longlong, high=cython.longlong, shift=cython.int, begin=cython.Py_ssize_t, bucket=cython.Py_ssize_t, ends="int[::1]")
cdef void _sort(const long long[::1] rows, int[::1] order, int[::1] other) except *
cdef long long _place(const long long[::1] rows, Py_ssize_t row) noexcept
@cython.locals(row=cython.Py_ssize_t, bucket=cython.Py_ssize_t, total=cython.int, count=cython.int)
cdef void _fill_buckets(const long long[::1] rows, int[::1] order, int[::1] ends, long long low, int shift) noexcept
@cython.locals(begin=cython.Py_ssize_t, middle=cython.Py_ssize_t, end=cython.Py_ssize_t, width=cython.Py_ssize_t, there=cython.bint, position=cython.Py_ssize_t)
cdef void _sort_bucket(const long long[::1] rows, int[::1] order, int[::1] other, Py_ssize_t low, Py_ssize_t high) noexcept
@cython.locals(position=cython.Py_ssize_t, to=cython.Py_ssize_t, row=cython.int)
cdef void _insert(const long long[::1] rows, int[::1] order, Py_ssize_t low, Py_ssize_t high) noexcept
@cython.locals(left=cython.Py_ssize_t, right=cython.Py_ssize_t, position=cython.Py_ssize_t)
cdef void _merge(const long long[::1] rows, const int[::1] source, int[::1] target, Py_ssize_t low, Py_ssize_t middle, Py_ssize_t high) noexcept
