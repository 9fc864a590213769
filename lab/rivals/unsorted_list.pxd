# C types for unsorted_list.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from lab.rivals.rival cimport Rival

cdef long long _FOREVER


cdef class UnsortedList(Rival):
    cdef int _list

    cdef void _file(self, int slot, long long deadline) except *
    @cython.locals(slab=Slab, first=cython.longlong, slot=cython.int)
    cdef long long _upcoming(self) except *
    @cython.locals(slab=Slab, slot=cython.int, after=cython.int)
    cdef void _collect(self) except *
    cpdef list _filed(self)
