# C types for manual.py: the same source runs interpreted without them.
cimport cython
from abeyance.timer.base cimport Timer


cdef class ManualTimer(Timer):
    cdef long long _time

    cdef long long _now(self) except *
