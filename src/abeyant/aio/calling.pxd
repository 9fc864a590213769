# Call callbacks in a context, in C; calling.py is the same for the interpreted loop.
from cpython.contextvars cimport PyContext_CheckExact, PyContext_CopyCurrent, PyContext_Enter, PyContext_Exit


cdef inline object current_context():
    return PyContext_CopyCurrent()


cdef inline int call_in(object context, object callback, object args) except -1:
    if not PyContext_CheckExact(context):  # asyncio accepts any object with a `run`
        context.run(callback, *args)
        return 0
    PyContext_Enter(context)
    try:
        callback(*args)
    finally:
        PyContext_Exit(context)
    return 0
