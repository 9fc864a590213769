# C functions for the compiled timers and purgatories; callbacks.py has the same for the interpreted ones.

cdef extern from *:
    """
    static inline int abeyant_is_async(PyObject *callback) {
        if (PyMethod_Check(callback)) callback = PyMethod_GET_FUNCTION(callback);
        if (!PyFunction_Check(callback)) return 0;
        return (((PyCodeObject *)PyFunction_GET_CODE(callback))->co_flags & (CO_COROUTINE | CO_ASYNC_GENERATOR)) != 0;
    }
    """
    bint is_async "abeyant_is_async" (object callback) noexcept
    bint is_coroutine "PyCoro_CheckExact" (object result) noexcept
