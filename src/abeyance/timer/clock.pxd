# What the compiled timers take from C; clock.py has the same for the interpreted ones.

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int clock_gettime(int clock, timespec* time)
    int CLOCK_MONOTONIC


cdef inline long long monotonic_ns() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec * 1_000_000_000LL + now.tv_nsec


cdef inline long long whole(double value) noexcept:
    cdef long long cut = <long long> value  # towards zero, in one instruction; `floor` would be a call
    return cut - (cut > value)
