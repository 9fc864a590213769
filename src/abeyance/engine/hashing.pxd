# C types for hashing.py: the same source runs interpreted without them.
cimport cython


cdef unsigned long long _FIRST
cdef unsigned long long _SECOND
cdef unsigned long long _THIRD
cdef unsigned long long _FOURTH
cdef unsigned long long _ALL
cdef Py_ssize_t _LAST


@cython.locals(last=cython.longlong, position=cython.Py_ssize_t)
cdef bint _within(const long long[::1] ends, Py_ssize_t size) except -1
@cython.locals(number=cython.Py_ssize_t)
cdef void _hash(const long long[::1] ends, const unsigned char[::1] text, const unsigned long long[::1] seed, unsigned long long[::1] out) except *
@cython.locals(first=cython.ulonglong, second=cython.ulonglong, third=cython.ulonglong, fourth=cython.ulonglong, word=cython.ulonglong, words=cython.longlong, number=cython.longlong)
cdef unsigned long long _sip(const unsigned char[::1] text, long long begin, long long end, unsigned long long seed, unsigned long long further_seed) noexcept nogil
@cython.locals(word=cython.ulonglong, byte=cython.ulonglong, place=cython.longlong)
cdef unsigned long long _word(const unsigned char[::1] text, long long begin, long long end) noexcept nogil
