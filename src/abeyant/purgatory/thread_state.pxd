# What the compiled nesting.py takes from C; thread_state.py has the same for the interpreted one.
# The two integers are of each module that includes this: only nesting.py does.

cdef extern from *:
    """
    #if defined(_MSC_VER)
    static __declspec(thread) int abeyant_depth, abeyant_owed;
    #elif defined(__GLIBC__) /* a load instead of a call; glibc keeps room for so little in what is loaded late */
    static __thread __attribute__((tls_model("initial-exec"))) int abeyant_depth, abeyant_owed;
    #else
    static __thread int abeyant_depth, abeyant_owed;
    #endif
    """
    int abeyant_depth
    int abeyant_owed

cdef extern from "pythread.h":
    unsigned long get_ident "PyThread_get_thread_ident" () noexcept


cdef inline int depth() noexcept:
    return abeyant_depth


cdef inline void set_depth(int count) noexcept:
    global abeyant_depth
    abeyant_depth = count


cdef inline int owed() noexcept:
    return abeyant_owed


cdef inline void set_owed(int count) noexcept:
    global abeyant_owed
    abeyant_owed = count
