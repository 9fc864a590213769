# C types for slab.py: the same source runs interpreted without them.
cimport cython

cdef long long _SLOT_MASK
cdef int _GENERATION_MASK


@cython.final
cdef class Slab:
    cdef int[::1] next_slot
    cdef int[::1] prev_slot
    cdef int[::1] generation
    cdef long long[::1] deadline
    cdef list items
    cdef int _free
    cdef int _fresh
    cdef int _room

    @cython.locals(slot=cython.int, reused=cython.bint)
    cdef int take_slot(self, long long deadline, object item) except -1
    cdef object release(self, int slot)
    @cython.locals(first=cython.int, slot=cython.int)
    cdef int reserve(self, int count) except -1
    @cython.locals(generation=cython.longlong)
    cdef long long handle(self, int slot) noexcept
    @cython.locals(slot=cython.longlong, generation=cython.longlong)
    cdef int find(self, long long handle) noexcept
    cdef void _grow(self, int at_least) except *

    cdef bint is_empty(self, int sentinel) noexcept
    @cython.locals(after=cython.int, before=cython.int)
    cdef void unlink(self, int slot) noexcept
    @cython.locals(last=cython.int)
    cdef void push_back(self, int sentinel, int slot) noexcept
    cdef void push_front(self, int sentinel, int slot) noexcept
    @cython.locals(first=cython.int, last=cython.int)
    cdef void move_all(self, int source, int target) noexcept

    @cython.locals(slot=cython.int)
    cpdef list members(self, int sentinel)
    cpdef list live_slots(self)
    @cython.locals(slot=cython.int, after=cython.int, before=cython.int)
    cpdef _check(self)
