# Compiled, an array's elements are a pointer, and no buffer that would keep the array from growing in place. It is
# good until the array grows. memory.py has the same for the interpreted engine.
from cpython.array cimport array

cdef enum:
    NEXT = 0
    PREV = 1
    GENERATION = 2
    STRIDE = 3


cdef inline int* ints(array values) noexcept:
    return values.data.as_ints


cdef inline long long* longs(array values) noexcept:
    return values.data.as_longlongs


cdef extern from *:
    """
    #if defined(__GNUC__)
    #define abeyant_fetch(address) __builtin_prefetch(address)
    #else
    #define abeyant_fetch(address) ((void) (address))
    #endif
    """
    void abeyant_fetch(const void* address) noexcept


cdef inline void fetch_int(int* values, Py_ssize_t index) noexcept:
    abeyant_fetch(values + index)


cdef inline void fetch_long(long long* values, Py_ssize_t index) noexcept:
    abeyant_fetch(values + index)
