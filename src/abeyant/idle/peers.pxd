# C types for peers.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from abeyant.engine.wheel cimport TimingWheel

cdef bint _LOCKED
cdef long long _SLOT_MASK
cdef unsigned long long _GOLDEN
cdef unsigned long long _WORD


@cython.final
cdef class Peers:
    cdef TimingWheel wheel
    cdef readonly bint closed
    cdef object _lock
    cdef long long[::1] _hash
    cdef int[::1] _chain
    cdef int _bits
    cdef int[::1] _first

    cdef bint lock(self) except -1
    cdef bint unlock(self) except -1

    @cython.locals(slab=Slab, started=cython.longlong, slot=cython.int, handle=cython.longlong, same=cython.bint)
    cdef int find(self, object peer, long long hashed) except? -2
    @cython.locals(handle=cython.longlong, slot=cython.int, bucket=cython.int)
    cdef void add(self, object peer, long long hashed, long long deadline) except *
    @cython.locals(filed=cython.longlong)
    cdef bint refresh(self, int slot, long long deadline) except -1
    cdef object remove(self, int slot)
    @cython.locals(slot=cython.int)
    cdef int next_idle(self, long long now) except? -2
    cdef object take(self, int slot)
    @cython.locals(bucket=cython.int)
    cdef list close(self)

    cdef int _bucket(self, long long hashed) noexcept
    @cython.locals(bucket=cython.int, before=cython.int)
    cdef void _unchain(self, int slot) noexcept
    cdef void _grow(self) except *
    @cython.locals(slot=cython.int, bucket=cython.int)
    cdef void _widen(self) except *
    @cython.locals(slab=Slab, bucket=cython.int, slot=cython.int)
    cdef object check(self)
