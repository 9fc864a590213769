# C types for rival.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab

cdef long long _MAX_TIME
cdef long long _FOREVER


cdef class Rival:
    cdef Slab _slab
    cdef int _due
    cdef long long _now
    cdef long long _pending

    @cython.locals(slot=cython.int)
    cpdef long long add(self, long long deadline, object item) except *
    @cython.locals(slot=cython.int)
    cpdef object remove(self, long long handle)
    cpdef object next_expiration(self)
    @cython.locals(left=cython.longlong, slab=Slab, slot=cython.int)
    cpdef list advance(self, long long now, object budget=*)

    cdef void _admit(self, long long deadline) except *
    cdef void _file(self, int slot, long long deadline) except *
    cdef void _forget(self, int slot, long long handle) except *
    cdef long long _upcoming(self) except *
    cdef void _collect(self) except *
    cpdef list _filed(self)
    cpdef object _check(self)
