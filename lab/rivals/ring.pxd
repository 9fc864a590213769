# C types for ring.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from lab.rivals.rival cimport Rival


cdef class Ring(Rival):
    cdef long long _tick
    cdef long long _size
    cdef long long _clock
    cdef int _base

    cdef void _admit(self, long long deadline) except *
    @cython.locals(ticks=cython.longlong)
    cdef void _file(self, int slot, long long deadline) except *
    cdef long long _upcoming(self) except *
    @cython.locals(target=cython.longlong, steps=cython.longlong, step=cython.longlong, slab=Slab, sentinel=cython.int, slot=cython.int)
    cdef void _collect(self) except *
    @cython.locals(ticks=cython.longlong)
    cdef long long _ticks(self, long long deadline) noexcept
    @cython.locals(index=cython.int, slot=cython.int, ticks=cython.longlong)
    cpdef list _filed(self)
