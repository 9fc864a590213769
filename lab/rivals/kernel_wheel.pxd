# C types for kernel_wheel.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from lab.rivals.rival cimport Rival

cdef int _BUCKETS
cdef int _SHIFT
cdef unsigned long long _ALL_BITS
cdef long long _FOREVER


cdef class KernelWheel(Rival):
    cdef long long _tick
    cdef int _levels
    cdef long long _clock
    cdef int _base
    cdef unsigned long long[::1] _occupied
    cdef long long[::1] _reach

    cdef void _admit(self, long long deadline) except *
    @cython.locals(ticks=cython.longlong, level=cython.int, bucket=cython.int)
    cdef void _file(self, int slot, long long deadline) except *
    @cython.locals(before=cython.int, number=cython.int)
    cdef void _forget(self, int slot, long long handle) except *
    cdef long long _upcoming(self) except *
    @cython.locals(target=cython.longlong, upcoming=cython.longlong)
    cdef void _collect(self) except *
    @cython.locals(first=cython.longlong, level=cython.int, occupied=cython.ulonglong, ahead=cython.longlong, ticks=cython.longlong)
    cdef long long _next_ticks(self) noexcept
    @cython.locals(slab=Slab, level=cython.int, bucket=cython.int, sentinel=cython.int, slot=cython.int)
    cdef void _empty(self, long long ticks) noexcept
    @cython.locals(one=cython.ulonglong)
    cdef unsigned long long _bit(self, int bucket) noexcept
    @cython.locals(turned=cython.ulonglong, distance=cython.int, width=cython.int)
    cdef int _first_from(self, unsigned long long occupied, int bucket) noexcept
    @cython.locals(number=cython.int)
    cpdef list _filed(self)
