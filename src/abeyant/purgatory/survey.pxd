# C types for survey.py: the same source runs interpreted without them.
cimport cython
from abeyant.purgatory.directory cimport Directory
from abeyant.purgatory.operation cimport DelayedOperation
from abeyant.purgatory.room cimport Room
from abeyant.timer.base cimport Timer, enter, leave


cpdef object timer_of(Room purgatory)
cpdef object slots_of(Room purgatory)
@cython.locals(directory=Directory, slot=cython.int, watch=cython.int, operation=DelayedOperation, found=list, keys=list)
cpdef list operations_in(Room purgatory, int begin, int count)
@cython.locals(timer=Timer, handle=cython.longlong)
cpdef object deadline_of(Room purgatory, DelayedOperation operation)
