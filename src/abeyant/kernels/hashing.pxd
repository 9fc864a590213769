# C types for hashing.py: the same source runs interpreted without them.
cimport cython


cdef unsigned long long _FIRST
cdef unsigned long long _SECOND
cdef unsigned long long _THIRD
cdef unsigned long long _FOURTH
cdef Py_ssize_t _LAST


@cython.locals(is_narrow=cython.bint, begin=cython.longlong, end=cython.longlong, number=cython.Py_ssize_t)
cdef bint _hash(const int[::1] narrow, const long long[::1] wide, const unsigned char[::1] text, Py_ssize_t size, const unsigned long long[::1] seed, unsigned long long[::1] out) except -1
@cython.locals(every=cython.ulonglong, one=cython.ulonglong, two=cython.ulonglong, three=cython.ulonglong, four=cython.ulonglong, first=cython.ulonglong, second=cython.ulonglong, third=cython.ulonglong, fourth=cython.ulonglong, last=cython.ulonglong, word=cython.ulonglong, words=cython.longlong, number=cython.longlong)
cdef void _sip(const unsigned char[::1] text, long long begin, long long end, const unsigned long long[::1] seed, unsigned long long[::1] out, Py_ssize_t to) noexcept nogil
@cython.locals(word=cython.ulonglong, byte=cython.ulonglong, place=cython.longlong)
cdef unsigned long long _word(const unsigned char[::1] text, long long begin) noexcept nogil
@cython.locals(word=cython.ulonglong, byte=cython.ulonglong, place=cython.longlong)
cdef unsigned long long _last_word(const unsigned char[::1] text, long long begin, long long end) noexcept nogil
