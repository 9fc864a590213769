"""A function of Python's own in C whose calls go elsewhere, also from where it was bound long ago.

`from time import monotonic`, a default argument, a class attribute: all refer to the one object that Python made. So
it is this object that is changed, not the names by which it is known. It holds two pointers: to its definition in C,
and to what C gets as `self`. Where the definition is one of `PyObject_CallObject(self, NULL)`, and `self` a function of
Python's, a call of the object is a call of that function, whatever it raises included. With one argument it is
`PyObject_GetItem(self, argument)`, and `self` has a `__getitem__`.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from typing import Any

_ONE_ARGUMENT = 8  # METH_O
_ENTRIES = {4: "PyObject_CallObject", _ONE_ARGUMENT: "PyObject_GetItem"}  # 4 is METH_NOARGS


class _Definition(ctypes.Structure):
    """C's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_current: dict[int, Diverted] = {}  # by the function's address


class _ByItem:
    """Calls a function with what is looked up."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __getitem__(self, argument: Any) -> Any:
        return self._function(argument)


class Diverted:
    """A function with no argument or with one, and the one that it calls while it is diverted.

    Made once for a function and kept: a thread may be in the middle of such a call at any time.
    """

    def __init__(self, function: Callable[..., Any], instead: Callable[..., Any]) -> None:
        """Divert nothing yet. Raises RuntimeError where `function` is none of Python's own, or not as expected."""
        if not isinstance(function, types.BuiltinFunctionType):
            raise RuntimeError(f"{function!r} is not Python's own: something has patched it")
        head = id(function) + object.__basicsize__
        self._definition = ctypes.c_void_p.from_address(head)
        self._owner = ctypes.c_void_p.from_address(head + ctypes.sizeof(ctypes.c_void_p))
        self._stock = self._definition.value, self._owner.value
        found = _Definition.from_address(self._stock[0] or 0) if self._stock[1] == id(function.__self__) else None
        if found is None or found.name != function.__name__.encode() or found.flags not in _ENTRIES:
            raise RuntimeError(f"{function!r} is laid out as in no Python that is known: it cannot be diverted")
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
        self.real: Callable[..., Any] = make(self._stock[0], function.__self__, function.__module__)
        call = ctypes.cast(getattr(ctypes.pythonapi, _ENTRIES[found.flags]), ctypes.c_void_p).value
        self._call = _Definition(found.name, call, found.flags, found.doc)
        # Kept: they are referred to in C only.
        self._function, self._instead = function, _ByItem(instead) if found.flags == _ONE_ARGUMENT else instead

    def begin(self) -> None:
        """Call the other one from now on, also where the function is diverted already."""
        _current[id(self._function)] = self
        # In this order, so that a thread between the two sees what works: C's clocks do not look at their `self`.
        self._owner.value = id(self._instead)
        self._definition.value = ctypes.addressof(self._call)

    def end(self) -> None:
        """Call Python's own from now on, unless another has diverted the function since."""
        if _current.get(id(self._function)) is not self:
            return
        del _current[id(self._function)]
        self._definition.value, self._owner.value = self._stock
