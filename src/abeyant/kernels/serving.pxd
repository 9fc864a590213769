# C types for serving.py: the same source runs interpreted without them.
cimport cython


cdef long long _NEVER
cdef Py_ssize_t _NONE


@cython.final
cdef class Waiting:
    cdef long long[::1] _before_operation
    cdef long long[::1] _after_operation
    cdef long long[::1] _before_event
    cdef long long[::1] _after_event
    cdef Py_ssize_t _operations
    cdef Py_ssize_t _events
    cdef Py_ssize_t _first_operation
    cdef Py_ssize_t _last_operation
    cdef Py_ssize_t _first_event
    cdef Py_ssize_t _last_event

    @cython.locals(event=cython.Py_ssize_t, operation=cython.Py_ssize_t, begin=cython.Py_ssize_t, key=cython.Py_ssize_t, found=cython.Py_ssize_t, same_instant=cython.Py_ssize_t, now=cython.longlong)
    cdef void _serve(self, const long long[::1] event_ends, const long long[::1] at, const long long[::1] progress, const long long[::1] operation_ends, const long long[::1] starts, const long long[::1] lasts, long long[::1] required, long long[::1] met, long long[::1] brought, long long[::1] served, long long[::1] owner, bint newest, bint always, bint after, bint add) except *
    @cython.locals(operation=cython.Py_ssize_t)
    cdef void _start(self, Py_ssize_t begin, Py_ssize_t end, const long long[::1] met) noexcept nogil
    @cython.locals(before=cython.Py_ssize_t, after=cython.Py_ssize_t)
    cdef void _end(self, Py_ssize_t operation) noexcept nogil
    @cython.locals(operation=cython.Py_ssize_t, following=cython.Py_ssize_t)
    cdef Py_ssize_t _first_served(self, long long progress, const long long[::1] lasts, const long long[::1] required, long long now, bint newest, bint add) noexcept nogil
    cdef void _give(self, Py_ssize_t operation, long long when, long long progress, long long[::1] required, long long[::1] met, long long[::1] brought, long long[::1] served, long long now, bint add) noexcept nogil
    @cython.locals(before=cython.Py_ssize_t)
    cdef void _leave_unused(self, Py_ssize_t event, Py_ssize_t after) noexcept nogil
    @cython.locals(before=cython.Py_ssize_t, after=cython.Py_ssize_t)
    cdef void _take(self, Py_ssize_t event) noexcept nogil
    @cython.locals(number=cython.Py_ssize_t, operation=cython.Py_ssize_t, event=cython.Py_ssize_t, following=cython.Py_ssize_t)
    cdef void _take_unused(self, Py_ssize_t begin, Py_ssize_t end, const long long[::1] at, const long long[::1] progress, long long[::1] required, long long[::1] met, long long[::1] brought, long long[::1] served, long long[::1] owner, long long now, bint newest, bint add) noexcept nogil
