# C types for timelines.py: the same source runs interpreted without them.
cimport cython


cdef long long _NEVER
cdef long long _BEFORE
cdef Py_ssize_t _WIDTH
cdef int _SUM
cdef int _EACH
cdef int _ALWAYS
cdef int _FROM_START


@cython.final
cdef class Timelines:
    cdef long long[::1] _at
    cdef long long[::1] _values
    cdef long long[::1] _rows_before
    cdef long long[::1] _places
    cdef long long[::1] _identities
    cdef long long[::1] _begins
    cdef long long[::1] _maxima
    cdef Py_ssize_t _keys
    cdef Py_ssize_t _size
    cdef int _combine

    @cython.locals(row=cython.Py_ssize_t)
    cdef void _turn(self, const long long[::1] given, long long[::1] rows) except *
    cdef Py_ssize_t _spread(self, const long long[::1] rows, long long[::1] target, long long[::1] ends) except -1
    @cython.locals(instants=cython.Py_ssize_t, seen=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t, number=cython.Py_ssize_t, row=cython.Py_ssize_t, place=cython.longlong, identity=cython.longlong, at=cython.longlong, progress=cython.longlong, new_key=cython.bint)
    cdef Py_ssize_t _collect(self, long long[::1] rows, const long long[::1] ends, long long[::1] bucket, long long[::1] fine) except -1
    @cython.locals(place=cython.Py_ssize_t, node=cython.Py_ssize_t, instants=cython.Py_ssize_t)
    cdef void _build_tree(self) except *
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _first_met(self, const long long[::1] places, const long long[::1] identities, const long long[::1] required, const long long[::1] starts, const long long[::1] froms, const long long[::1] lasts, long long[::1] met, int count) except *
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _held_at(self, const long long[::1] places, const long long[::1] identities, const long long[::1] required, const long long[::1] starts, const long long[::1] lasts, long long[::1] met, int count) except *
    @cython.locals(row=cython.Py_ssize_t, key=cython.Py_ssize_t)
    cdef void _since(self, const long long[::1] places, const long long[::1] identities, const long long[::1] required, const long long[::1] starts, long long[::1] times, int count) except *
    @cython.locals(row=cython.Py_ssize_t)
    cdef void _key_numbers(self, const long long[::1] places, const long long[::1] identities, long long[::1] numbers) except *
    @cython.locals(row=cython.Py_ssize_t, key=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cdef void _last_up_to(self, const long long[::1] places, const long long[::1] identities, const long long[::1] times, long long[::1] last) except *
    @cython.locals(row=cython.Py_ssize_t, key=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cdef void _counted(self, const long long[::1] places, const long long[::1] identities, const long long[::1] starts, const long long[::1] lasts, long long[::1] counts, int count) except *
    @cython.locals(row=cython.Py_ssize_t, key=cython.Py_ssize_t, event=cython.Py_ssize_t, reading=cython.longlong, left=cython.longlong, paused=cython.bint)
    cdef void _run(self, const long long[::1] places, const long long[::1] identities, const long long[::1] required, const long long[::1] times, const long long[::1] clock, long long[::1] ends) except *
    @cython.locals(begin=cython.Py_ssize_t, after=cython.Py_ssize_t, found=cython.Py_ssize_t)
    cdef long long _first(self, Py_ssize_t key, long long required, long long start, long long search, long long last, int count) noexcept nogil
    @cython.locals(key=cython.Py_ssize_t, begin=cython.Py_ssize_t, end=cython.Py_ssize_t)
    cdef bint _held(self, long long place, long long identity, long long required, long long start, long long last, int count) noexcept nogil
    @cython.locals(begin=cython.Py_ssize_t, end=cython.Py_ssize_t, found=cython.Py_ssize_t)
    cdef long long _brought(self, Py_ssize_t key, long long required, long long start, long long time, int count) noexcept nogil
    @cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t)
    cdef Py_ssize_t _key(self, long long place, long long identity) noexcept nogil
    cdef long long _running(self, Py_ssize_t key, Py_ssize_t begin, long long required) noexcept nogil
    cdef Py_ssize_t _begin(self, Py_ssize_t key, long long start, int count) noexcept nogil
    @cython.locals(low=cython.Py_ssize_t, high=cython.Py_ssize_t, middle=cython.Py_ssize_t)
    cdef Py_ssize_t _after(self, Py_ssize_t key, long long time) noexcept nogil
    @cython.locals(node=cython.Py_ssize_t)
    cdef Py_ssize_t _first_at_least(self, Py_ssize_t begin, Py_ssize_t end, long long required) noexcept nogil


cdef long long _sum(long long one, long long other) noexcept nogil
