# C types for hashed_wheel.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from lab.rivals.rival cimport Rival


cdef class HashedWheel(Rival):
    cdef long long _tick
    cdef long long _size
    cdef long long _clock
    cdef int _base

    @cython.locals(ticks=cython.longlong)
    cdef void _file(self, int slot, long long deadline) except *
    cdef long long _upcoming(self) except *
    @cython.locals(target=cython.longlong, slab=Slab, sentinel=cython.int, slot=cython.int, after=cython.int)
    cdef void _collect(self) except *
    cpdef list _filed(self)
