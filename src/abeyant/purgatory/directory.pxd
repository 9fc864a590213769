# C types for directory.py: the same source runs interpreted without them.
cimport cython
from abeyant.purgatory.operation cimport DelayedOperation

cdef int _PENDING
cdef bint _LOCKED
cdef long long _SCATTER
cdef long long _LOW


@cython.final
cdef class Directory:
    cdef readonly bint closed
    cdef readonly long long keys
    cdef readonly long long watches
    cdef object _lock
    cdef int[::1] _next
    cdef int[::1] _previous
    cdef int[::1] _also
    cdef int[::1] _list
    cdef long long[::1] _hash
    cdef long long[::1] _number
    cdef list _objects
    cdef int[::1] _table
    cdef int _bits
    cdef int _free
    cdef int _fresh
    cdef int _room
    cdef long long _issued

    cdef bint lock(self) except -1
    cdef bint unlock(self) except -1
    cdef bint close(self) except -1

    @cython.locals(hashed=cython.longlong, first=cython.int, last=cython.int, slot=cython.int)
    cdef int prepare(self, tuple keys) except -1
    @cython.locals(after=cython.int)
    cdef void discard(self, int first) noexcept
    @cython.locals(began=cython.longlong, position=cython.Py_ssize_t, watch=cython.int, sentinel=cython.int)
    cdef bint join(self, DelayedOperation operation, tuple keys) except -1
    @cython.locals(hashed=cython.longlong, several=list, sentinel=cython.int, watch=cython.int)
    cdef object on(self, object key)
    @cython.locals(watch=cython.int, after=cython.int, sentinel=cython.int)
    cdef object leave(self, DelayedOperation operation, list spent)

    @cython.locals(sentinel=cython.int, bucket=cython.int, head=cython.int, bits=cython.int, first=cython.longlong, number=cython.longlong, same=cython.bint)
    cdef int _find(self, object key, long long hashed) except -2
    cdef int _bucket(self, long long hashed) noexcept
    @cython.locals(sentinel=cython.int, bucket=cython.int)
    cdef int _open(self, object key, long long hashed) except -1
    @cython.locals(bucket=cython.int, before=cython.int)
    cdef object _retire(self, int sentinel)
    @cython.locals(last=cython.int)
    cdef void _append(self, int sentinel, int watch, DelayedOperation operation) noexcept
    @cython.locals(watch=cython.int)
    cdef bint _is_on(self, int sentinel, DelayedOperation operation, long long began) except -1
    @cython.locals(slot=cython.int)
    cdef int _take(self, long long hashed) except -1
    cdef void _release(self, int slot) noexcept
    cdef object _grow(self)
    @cython.locals(bucket=cython.int, sentinel=cython.int, sentinels=list)
    cdef object _widen(self)

    @cython.locals(bucket=cython.int, sentinel=cython.int)
    cdef list _sentinels(self)
    @cython.locals(sentinel=cython.int, watch=cython.int, member=DelayedOperation)
    cdef list operations(self)
    cdef list everyone(self)
    @cython.locals(sentinel=cython.int, watch=cython.int, before=cython.int, operation=DelayedOperation)
    cdef object check(self)
