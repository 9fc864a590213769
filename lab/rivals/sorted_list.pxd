# C types for sorted_list.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from lab.rivals.rival cimport Rival


cdef class SortedList(Rival):
    cdef int _list

    @cython.locals(slab=Slab, before=cython.int)
    cdef void _file(self, int slot, long long deadline) except *
    cdef long long _upcoming(self) except *
    @cython.locals(slab=Slab, slot=cython.int)
    cdef void _collect(self) except *
    cpdef list _filed(self)
