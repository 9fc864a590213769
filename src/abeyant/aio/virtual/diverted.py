"""Redirect a built-in function of `time` to another function, even in code that has imported it already.

`from time import monotonic`, default arguments and class attributes all refer to the one built-in function object. So
this module patches the object, and not the names that refer to it. The object has two pointers: to its C definition,
and to the `self` that the C function gets. With a definition that calls `PyObject_CallObject(self, NULL)`, and a Python
function as `self`, a call of the object calls that Python function. For functions with one argument the definition
calls `PyObject_GetItem(self, argument)`, and `self` has a `__getitem__`.
"""

from __future__ import annotations

import ctypes
import types
from collections.abc import Callable
from typing import Any

_ONE_ARGUMENT = 8  # METH_O
_ENTRIES = {4: "PyObject_CallObject", _ONE_ARGUMENT: "PyObject_GetItem"}  # 4 is METH_NOARGS


class _Definition(ctypes.Structure):
    """The C struct PyMethodDef, which defines a built-in function."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


_current: dict[int, Diverted] = {}  # by the id of the function


class _ByItem:
    """An object whose `[argument]` calls a function with that argument."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __getitem__(self, argument: Any) -> Any:
        return self._function(argument)


class Diverted:
    """A redirection of a built-in function with at most one argument to another function, from `begin` to `end`.

    Never free it: a thread may be in the middle of a redirected call at any time.
    """

    def __init__(self, function: Callable[..., Any], instead: Callable[..., Any]) -> None:
        """Prepare, but do not redirect yet. RuntimeError if `function` is patched, or its memory layout is unknown."""
        if not isinstance(function, types.BuiltinFunctionType):
            raise RuntimeError(f"{function!r} is not a built-in function of Python: something has patched it")
        head = id(function) + object.__basicsize__
        self._definition = ctypes.c_void_p.from_address(head)
        self._owner = ctypes.c_void_p.from_address(head + ctypes.sizeof(ctypes.c_void_p))
        self._stock = self._definition.value, self._owner.value
        definition = _Definition.from_address(self._stock[0] or 0) if self._stock[1] == id(function.__self__) else None
        if definition is None or definition.name != function.__name__.encode() or definition.flags not in _ENTRIES:
            raise RuntimeError(f"{function!r} cannot be redirected: its memory layout in this Python is unknown")
        make = ctypes.pythonapi.PyCFunction_NewEx
        make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.py_object)
        self.real: Callable[..., Any] = make(self._stock[0], function.__self__, function.__module__)
        call = ctypes.cast(getattr(ctypes.pythonapi, _ENTRIES[definition.flags]), ctypes.c_void_p).value
        self._call = _Definition(definition.name, call, definition.flags, definition.doc)
        # kept alive, as only C refers to them
        self._function, self._instead = function, _ByItem(instead) if definition.flags == _ONE_ARGUMENT else instead

    def begin(self) -> None:
        """Redirect calls from now on, even if another object has redirected the function already."""
        _current[id(self._function)] = self
        # In this order, so that calls between the two work: C's clocks ignore their `self`.
        self._owner.value = id(self._instead)
        self._definition.value = ctypes.addressof(self._call)

    def end(self) -> None:
        """Restore the function, unless another object has redirected it since."""
        if _current.get(id(self._function)) is not self:
            return
        del _current[id(self._function)]
        self._definition.value, self._owner.value = self._stock
