# C types for timelines.py: the same source runs interpreted without them.
cimport cython


cdef long long _NEVER
cdef long long _BEFORE
cdef Py_ssize_t _WIDTH
cdef int _SUM
cdef int _EACH
cdef int _ALWAYS
cdef int _FROM_START
cdef Py_ssize_t _SPAN
cdef int _BLOCK


@cython.final
cdef class Keys:
    cdef const long long[::1] _places
    cdef const long long[::1] _identities
    cdef const long long[::1] _begins
    cdef long long[::1] _directory
    cdef long long _low
    cdef int _shift
    cdef Py_ssize_t _count

    @cython.locals(row=cython.Py_ssize_t, key=cython.Py_ssize_t, number=cython.longlong, beyond=cython.Py_ssize_t)
    cdef bint _find(self, const long long[::1] rows, long long[::1] spans) except -1
    @cython.locals(width=cython.longlong, entry=cython.Py_ssize_t, key=cython.Py_ssize_t, own=cython.Py_ssize_t)
    cdef void _fill_directory(self) except *
    @cython.locals(half=cython.longlong, entry=cython.longlong, low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t)
    cdef Py_ssize_t _key(self, long long place, long long identity) noexcept nogil


@cython.final
cdef class Timelines:
    cdef long long[::1] _at
    cdef long long[::1] _values
    cdef long long[::1] _rows_before
    cdef long long[::1] _maxima
    cdef Py_ssize_t _size
    cdef int _combine

    cdef Py_ssize_t _spread(self, const long long[::1] rows, long long[::1] target, long long[::1] ends) except -1
    @cython.locals(begin=cython.Py_ssize_t, end=cython.Py_ssize_t, number=cython.Py_ssize_t)
    cdef void _sort(self, long long[::1] rows, long long[::1] target, const long long[::1] ends, long long[::1] fine) except *
    @cython.locals(keys=cython.Py_ssize_t, row=cython.Py_ssize_t)
    cdef Py_ssize_t _count_keys(self, const long long[::1] rows) except -1
    @cython.locals(key=cython.Py_ssize_t, instants=cython.Py_ssize_t, row=cython.Py_ssize_t, end=cython.Py_ssize_t, number=cython.Py_ssize_t, value=cython.longlong, new_key=cython.bint)
    cdef void _collect(self, const long long[::1] rows, Py_ssize_t begin, long long[::1] places, long long[::1] identities, long long[::1] begins) except *
    @cython.locals(place=cython.Py_ssize_t, node=cython.Py_ssize_t)
    cdef void _build_tree(self) except *
    @cython.locals(row=cython.Py_ssize_t, beyond=cython.Py_ssize_t, begin=cython.longlong, end=cython.longlong)
    cdef bint _has(self, const long long[::1] spans) except -1
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _first_met(self, const long long[::1] spans, const long long[::1] required, const long long[::1] starts, const long long[::1] froms, const long long[::1] lasts, long long[::1] met, int count) except *
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _held_at(self, const long long[::1] spans, const long long[::1] required, const long long[::1] starts, const long long[::1] lasts, long long[::1] met, int count) except *
    @cython.locals(row=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cdef void _since(self, const long long[::1] spans, const long long[::1] required, const long long[::1] starts, long long[::1] times, int count) except *
    @cython.locals(row=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cdef void _last_up_to(self, const long long[::1] spans, const long long[::1] times, long long[::1] last) except *
    @cython.locals(row=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t, first=cython.Py_ssize_t)
    cdef void _counted(self, const long long[::1] spans, const long long[::1] starts, const long long[::1] lasts, long long[::1] counts, int count) except *
    @cython.locals(row=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t, event=cython.Py_ssize_t, reading=cython.longlong, left=cython.longlong, paused=cython.bint)
    cdef void _run(self, const long long[::1] spans, const long long[::1] required, const long long[::1] times, const long long[::1] amounts, const long long[::1] clock, long long[::1] readings) except *
    @cython.locals(begin=cython.Py_ssize_t, after=cython.Py_ssize_t, found=cython.Py_ssize_t)
    cdef long long _first(self, Py_ssize_t first, Py_ssize_t stop, long long required, long long start, long long search, long long last, int count) noexcept nogil
    @cython.locals(begin=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cdef bint _held(self, Py_ssize_t first, Py_ssize_t stop, long long required, long long start, long long last, int count) noexcept nogil
    @cython.locals(begin=cython.Py_ssize_t, end=cython.Py_ssize_t, found=cython.Py_ssize_t)
    cdef long long _brought(self, Py_ssize_t first, Py_ssize_t stop, long long required, long long start, long long time, int count) noexcept nogil
    cdef long long _running(self, Py_ssize_t first, Py_ssize_t begin, long long required) noexcept nogil
    cdef Py_ssize_t _begin(self, Py_ssize_t first, Py_ssize_t stop, long long start, int count) noexcept nogil
    @cython.locals(middle=cython.Py_ssize_t)
    cdef Py_ssize_t _after(self, Py_ssize_t low, Py_ssize_t high, long long time) noexcept nogil
    @cython.locals(node=cython.Py_ssize_t, stop=cython.Py_ssize_t)
    cdef Py_ssize_t _first_at_least(self, Py_ssize_t begin, Py_ssize_t end, long long required) noexcept nogil


cdef long long _sum(long long one, long long other) noexcept nogil
cdef bint _same_key(const long long[::1] rows, Py_ssize_t one, Py_ssize_t other) noexcept nogil
