# C functions for the compiled handles; weak.py has the same for the interpreted ones. Calling the reference would do
# the same, with the overhead of a Python call.
from abeyant.timer.task cimport TaskOwner

cdef extern from *:
    """
    #if PY_VERSION_HEX < 0x030D0000
    static int PyWeakref_GetRef(PyObject *reference, PyObject **referent) {
        *referent = PyWeakref_GET_OBJECT(reference);
        if (*referent == Py_None) *referent = NULL;
        Py_XINCREF(*referent);
        return *referent != NULL;
    }
    #endif
    static inline PyObject *abeyant_referent(PyObject *reference) {
        PyObject *referent;
        if (reference == Py_None) Py_RETURN_NONE; /* a handle that no timer has made */
        if (PyWeakref_GetRef(reference, &referent) > 0) return referent;
        Py_RETURN_NONE;
    }
    """
    object abeyant_referent(object reference)


# Unchecked: what a handle refers to is always a timer, or nothing.
cdef inline TaskOwner owner_of(object reference):
    return <TaskOwner> abeyant_referent(reference)
