"""Correct what `inspect.signature` and `help` show for compiled classes and their properties."""

from __future__ import annotations

from types import WrapperDescriptorType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from inspect import Signature


class ClassSignature:
    """A descriptor for `__signature__` of a compiled class, which returns the parameters of the class's `__init__`.

    Python looks for the parameters of a C class in its docstring, where Cython does not put them. For an interpreted
    class, and a subclass with an `__init__` or `__new__` in Python, Python finds the parameters without this.
    """

    def __get__(self, instance: object, owner: type[Any]) -> Signature:
        """Return the signature of the class `owner`. Raises AttributeError if Python can determine it by itself."""
        if instance is None and isinstance(owner.__init__, WrapperDescriptorType) and _has_new_of_c(owner):
            from inspect import signature  # here: it would take a third of the package's import

            init = signature(owner.__init__)
            _, *parameters = init.parameters.values()
            return init.replace(parameters=parameters)
        raise AttributeError("__signature__")


def _has_new_of_c(owner: type[Any]) -> bool:
    return not any(isinstance(vars(kind).get("__new__"), staticmethod) for kind in owner.__mro__)


CLASS_SIGNATURE = ClassSignature()


def trim_getters(*properties: object) -> None:
    """Remove the line that Cython puts before the docstring of each compiled getter in `properties`: its signature."""
    for one in properties:
        one.__doc__ = (one.__doc__ or "").rpartition("\n")[2]
