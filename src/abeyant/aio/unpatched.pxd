# Detect patches of the clock that asyncio reads, in C; unpatched.py is for the interpreted loop.
#
# asyncio's loop calls `BaseEventLoop.time`, which looks up `monotonic` in what `asyncio.base_events` calls `time`, at
# each call. freezegun, mock and others put something else in one of the three places. The first is watched by the
# version of the loop's class, which Python changes whenever an attribute of the class or of one of its bases is set.

cdef extern from *:
    """
    static PyObject *abeyant_time = NULL;
    static PyObject *abeyant_time_names, *abeyant_events_names;  /* the two modules' dictionaries */
    static PyObject *abeyant_time_key, *abeyant_monotonic_key;
    static PyObject *abeyant_monotonic = NULL;  /* Python's own; unknown while patched since before this was imported */

    static int abeyant_find_modules(void) {
        PyObject *events = PyImport_ImportModule("asyncio.base_events");
        if (events == NULL) return -1;
        abeyant_events_names = PyModule_GetDict(events);
        abeyant_time_key = PyUnicode_InternFromString("time");
        abeyant_monotonic_key = PyUnicode_InternFromString("monotonic");
        PyObject *found = PyImport_ImportModule("time");
        if (found == NULL || abeyant_time_key == NULL || abeyant_monotonic_key == NULL) return -1;
        abeyant_time_names = PyModule_GetDict(found);
        abeyant_time = found;
        return 0;
    }

    static int abeyant_is_pythons(PyObject *clock) {
        if (clock == NULL || !PyCFunction_CheckExact(clock)) return 0;
        PyObject *owner = PyCFunction_GET_SELF(clock);
        if (owner != abeyant_time || strcmp(((PyCFunctionObject *) clock)->m_ml->ml_name, "monotonic") != 0) return 0;
        abeyant_monotonic = clock;
        Py_INCREF(clock);
        return 1;
    }

    static int abeyant_is_unpatched(void) {
        if (abeyant_time == NULL && abeyant_find_modules() < 0) {
            PyErr_Clear();
            return 0;
        }
        if (PyDict_GetItem(abeyant_events_names, abeyant_time_key) != abeyant_time) return 0;
        PyObject *clock = PyDict_GetItem(abeyant_time_names, abeyant_monotonic_key);
        if (clock == abeyant_monotonic && clock != NULL) return 1;
        return abeyant_monotonic == NULL && abeyant_is_pythons(clock);
    }

    static unsigned int abeyant_version_of(PyObject *loop) {
        return Py_TYPE(loop)->tp_version_tag;
    }
    """
    bint abeyant_is_unpatched() noexcept
    unsigned int abeyant_version_of(object loop) noexcept


cdef inline unsigned int version_of(object loop) noexcept:
    return abeyant_version_of(loop)


cdef inline bint is_unpatched() noexcept:
    return abeyant_is_unpatched()
