# C types for records.py: the same source runs interpreted without them.
cimport cython
from libc.stdint cimport int64_t


cdef int _LONGEST_INT
cdef int _LONGEST_LONG
cdef unsigned long long _WORD
cdef long long _SMALLEST
cdef long long _GREATEST


@cython.final
cdef class Walker:
    cdef const unsigned char[::1] _data
    cdef Py_ssize_t _position
    cdef Py_ssize_t _end

    @cython.locals(least=cython.longlong, greatest=cython.longlong, time=cython.longlong, in_order=cython.bint, plain=cython.bint, without_key=cython.bint, index=cython.longlong, end=cython.Py_ssize_t)
    cpdef object survey(self, long long count)
    @cython.locals(end=cython.Py_ssize_t, left=cython.longlong)
    cpdef object read(self, long long index, object base_offset, object base_timestamp)
    @cython.locals(size=cython.longlong)
    cdef Py_ssize_t _begin(self, long long index) except -1
    @cython.locals(left=cython.longlong)
    cdef int _skip_headers(self) except -1
    @cython.locals(size=cython.longlong)
    cdef int64_t _skip_nullable(self) except? -1
    @cython.locals(size=cython.longlong, position=cython.Py_ssize_t)
    cdef object _nullable(self)
    cdef int _need(self, long long size) except -1
    cdef int64_t _varint(self) except? -1
    cdef int64_t _varlong(self) except? -1
    @cython.locals(value=cython.ulonglong, shift=cython.int, position=cython.Py_ssize_t, byte=cython.ulonglong)
    cdef int64_t _zigzag(self, int longest) except? -1


cdef long long _signed(unsigned long long value) noexcept
