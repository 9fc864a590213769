# C functions for the compiled timers; clock.py has the same for the interpreted ones.

cdef extern from *:
    """
    #if defined(_WIN32) || defined(__APPLE__) /* Python's own clock: there time.monotonic() reads another than C's */
    static inline long long abeyant_monotonic_ns(void) {
    #if PY_VERSION_HEX >= 0x030D0000
        PyTime_t now = 0;
        (void) PyTime_MonotonicRaw(&now);
        return now;
    #else
        return _PyTime_GetMonotonicClock();
    #endif
    }
    #else
    #include <time.h>
    static inline long long abeyant_monotonic_ns(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return now.tv_sec * 1000000000LL + now.tv_nsec;
    }
    #endif

    #if defined(__GNUC__)
    #define abeyant_bit_length(value) ((value) ? 64 - __builtin_clzll((unsigned long long) (value)) : 0)
    #else
    static inline int abeyant_bit_length(long long value) {
        int bits = 0;
        for (; value > 0; value >>= 1) ++bits;
        return bits;
    }
    #endif
    """
    long long abeyant_monotonic_ns() noexcept nogil
    int abeyant_bit_length(long long value) noexcept nogil


cdef inline long long monotonic_ns() noexcept:
    return abeyant_monotonic_ns()


cdef inline int bit_length(long long value) noexcept:
    return abeyant_bit_length(value)


cdef inline long long whole(double value) noexcept:
    cdef long long cut = <long long> value  # towards zero, in one instruction; `floor` would be a call
    return cut - (cut > value)
