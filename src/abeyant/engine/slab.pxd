# C types for slab.py: the same source runs interpreted without them.
cimport cython
from cpython.array cimport array
from libc.stdint cimport int64_t

cdef long long _SLOT_MASK
cdef int _GENERATION_MASK
cdef int _MOST
cdef int _LARGE
cdef int _FIRST_ROOM


@cython.final
cdef class Slab:
    cdef int* links
    cdef long long* deadline
    cdef list items
    cdef array _links
    cdef array _deadlines
    cdef int _born
    cdef int _free
    cdef int _fresh
    cdef int _room

    cdef int64_t take(self, long long deadline, object item) except -1
    @cython.locals(slot=cython.Py_ssize_t, at=cython.Py_ssize_t, reused=cython.bint)
    cdef int take_slot(self, long long deadline, object item) except -1
    @cython.locals(at=cython.Py_ssize_t)
    cdef object release(self, Py_ssize_t slot)
    @cython.locals(first=cython.Py_ssize_t, slot=cython.Py_ssize_t)
    cdef int reserve(self, int count) except -1
    @cython.locals(generation=cython.longlong)
    cdef long long handle(self, Py_ssize_t slot) noexcept
    @cython.locals(slot=cython.longlong, generation=cython.longlong)
    cdef int find(self, long long handle) noexcept
    @cython.locals(slot=cython.longlong)
    cdef void fetch(self, long long handle) noexcept
    @cython.locals(room=cython.longlong)
    cdef void _grow(self, int at_least) except *

    cdef int first(self, Py_ssize_t sentinel) noexcept
    cdef int last(self, Py_ssize_t sentinel) noexcept
    cdef bint is_empty(self, Py_ssize_t sentinel) noexcept
    @cython.locals(after=cython.Py_ssize_t, before=cython.Py_ssize_t)
    cdef void unlink(self, Py_ssize_t slot) noexcept
    @cython.locals(last=cython.Py_ssize_t)
    cdef void push_back(self, Py_ssize_t sentinel, Py_ssize_t slot) noexcept
    cdef void push_front(self, Py_ssize_t sentinel, Py_ssize_t slot) noexcept
    @cython.locals(first=cython.Py_ssize_t, last=cython.Py_ssize_t)
    cdef void move_all(self, Py_ssize_t source, Py_ssize_t target) noexcept

    @cython.locals(slot=cython.int)
    cdef list members(self, int sentinel)
    cdef list live_slots(self)
    cdef bint _is_live(self, Py_ssize_t slot) noexcept
    @cython.locals(slot=cython.int)
    cdef object _check(self)
