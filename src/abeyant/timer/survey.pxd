# C types for survey.py: the same source runs interpreted without them.
cimport cython
from abeyant.engine.slab cimport Slab
from abeyant.engine.wheel cimport TimingWheel
from abeyant.timer.base cimport Timer, enter, leave


@cython.locals(wheel=TimingWheel, level=cython.int)
cpdef object shape_of(Timer timer)
@cython.locals(wheel=TimingWheel, slab=Slab, levels=cython.int, slot=cython.longlong, ticks=cython.longlong, level=cython.int, ahead=cython.longlong, place=cython.longlong)
cpdef long long count_slots(Timer timer, long long begin, long long count, long long stride, long long[::1] counts) except -1
@cython.locals(wheel=TimingWheel, slab=Slab, slot=cython.int, sentinel=cython.int, level=cython.int, ahead=cython.int, lists=list, found=list)
cpdef list first_tasks(Timer timer, Py_ssize_t most)
