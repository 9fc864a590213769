# C types for bulk.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.wheel cimport TimingWheel


cdef long long _MAX_TIME
cdef long long _FOREVER
cdef long long _SLOT_MASK


@cython.final
cdef class BulkWheel:
    cdef TimingWheel _wheel
    cdef long long[::1] _payload

    cdef bint _check_initialised(self) except -1
    @cython.locals(position=cython.Py_ssize_t, deadline=cython.longlong)
    cdef Py_ssize_t _first_beyond(self, const long long[::1] deadlines) except *
    @cython.locals(handle=cython.longlong, slot=cython.Py_ssize_t)
    cdef long long _add(self, long long deadline, long long payload) except *
    @cython.locals(position=cython.Py_ssize_t, handle=cython.longlong)
    cdef void _add_all(self, const long long[::1] deadlines, const long long[::1] payloads, bint own, long long[::1] handles) except *
    cdef void _grow(self) except *
    @cython.locals(wheel=TimingWheel, position=cython.Py_ssize_t, handle=cython.longlong, count=cython.Py_ssize_t, pending=cython.bint)
    cdef Py_ssize_t _remove_all(self, const long long[::1] handles, unsigned char[::1] removed) except *
    @cython.locals(wheel=TimingWheel, position=cython.Py_ssize_t, count=cython.Py_ssize_t, pending=cython.bint)
    cdef Py_ssize_t _refresh_all(self, const long long[::1] handles, const long long[::1] deadlines, unsigned char[::1] refreshed) except *
    @cython.locals(wheel=TimingWheel, target=cython.longlong, count=cython.Py_ssize_t, room=cython.Py_ssize_t, slot=cython.int)
    cdef tuple _advance_into(self, long long now, long long[::1] payloads, long long budget)
    cpdef _check(self)
