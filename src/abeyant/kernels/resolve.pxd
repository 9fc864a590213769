# C types for resolve.py: the same source runs interpreted without them.
cimport cython


cdef long long _NEVER
cdef Py_ssize_t _WIDTH
cdef Py_ssize_t _SPAN


@cython.final
cdef class Staircases:
    cdef long long[::1] _steps
    cdef long long[::1] _directory
    cdef long long _low
    cdef int _shift
    cdef Py_ssize_t _count

    cdef Py_ssize_t _spread(self, const long long[::1] rows, long long[::1] steps, long long[::1] ends) except -1
    @cython.locals(kept=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t, number=cython.Py_ssize_t, row=cython.Py_ssize_t, column=cython.Py_ssize_t)
    cdef Py_ssize_t _keep(self, long long[::1] rows, const long long[::1] ends, long long[::1] bucket, long long[::1] fine) except -1
    @cython.locals(count=cython.Py_ssize_t, width=cython.longlong, entry=cython.Py_ssize_t, step=cython.Py_ssize_t, own=cython.Py_ssize_t)
    cdef void _fill_directory(self) except *
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _judge(self, const long long[::1] place, const long long[::1] identity, const long long[::1] required, const long long[::1] starts, const long long[::1] deadlines, bint exclusive, long long[::1] reached) except *
    @cython.locals(position=cython.Py_ssize_t, row=cython.Py_ssize_t, step=cython.Py_ssize_t)
    cdef void _reach(self, long long[::1] asked) except *
    @cython.locals(step=cython.Py_ssize_t, at=cython.longlong)
    cdef long long _first(self, long long place, long long identity, long long required, long long start, long long deadline, bint exclusive) noexcept nogil
    @cython.locals(entry=cython.longlong, low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t)
    cdef Py_ssize_t _find(self, long long place, long long identity, long long required) noexcept nogil
    cdef bint _is_after(self, Py_ssize_t step, long long place, long long identity, long long required) noexcept nogil


cdef bint _is_step(const long long[::1] steps, Py_ssize_t last, const long long[::1] rows, Py_ssize_t row) noexcept nogil
