# C types for handle.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.wheel cimport TimingWheel


@cython.final
cdef class TimerHandle:
    cdef object __weakref__
    cdef readonly object _callback
    cdef readonly tuple _args
    cdef readonly bint _cancelled
    cdef bint _whole
    cdef readonly object _context
    cdef readonly object _loop
    cdef public object _repr
    cdef readonly object _source_traceback
    cdef double _deadline
    cdef TimingWheel _wheel
    cdef long long _ticket

    cpdef object cancel(self)
    cpdef object _run(self)
    cpdef object _report(self, object error)


@cython.locals(copied=TimerHandle)
cdef object _copy_of(TimerHandle handle)
