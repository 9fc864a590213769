"""View any buffer as a column of 64-bit integers: `array`, NumPy, Arrow, shared memory. Does not need NumPy."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_INTEGERS = ("q", "l")  # signed, 8 bytes: NumPy's int64 calls itself `l` where a C long has 8 bytes
_RAW = ("B", "b", "c")


def integers(buffer: ReadableBuffer, name: str) -> memoryview:
    """Return a view of `buffer` as signed 64-bit integers in the machine's order. Nothing is copied.

    Takes a one-dimensional, contiguous buffer of such integers, or of raw bytes (`pyarrow.Array.buffers()[1]`, for
    an array without offset). Pass NumPy's dates as `values.view("int64")`. Raises TypeError for any other kind of
    element, and ValueError for any other shape; the messages call the argument `name`.
    """
    try:
        view = memoryview(buffer)
    except TypeError:
        raise TypeError(
            f"{name} must be a buffer of 64-bit integers (array('q'), NumPy int64, ...), not {type(buffer).__name__}"
        ) from None
    if view.ndim != 1 or not view.contiguous:
        raise ValueError(f"{name} must be one-dimensional and contiguous")
    kind = view.format
    if kind in _INTEGERS and view.itemsize == 8:
        return view
    if kind not in _RAW:
        raise TypeError(f"{name} must hold signed 64-bit integers, not {view.itemsize}-byte {kind!r}")
    if view.nbytes % 8:
        raise ValueError(f"{name} is {view.nbytes} bytes long, which is not a multiple of 8, an integer's size")
    if not view.nbytes:
        return memoryview(array("q"))  # an empty view cannot be cast
    return view.cast("B").cast("q")


def writable_integers(buffer: WriteableBuffer, name: str) -> memoryview:
    """Return a writable view as `integers` does. Raises ValueError for a read-only buffer."""
    view = integers(buffer, name)
    if view.readonly:
        raise ValueError(f"{name} is read-only")
    return view


def flags(buffer: WriteableBuffer, name: str, length: int) -> memoryview:
    """Return a writable view, as unsigned bytes, of a buffer of `length` one-byte elements."""
    view = memoryview(buffer)
    if view.itemsize != 1 or view.ndim != 1 or not view.contiguous or len(view) != length:
        raise ValueError(f"{name} must be one-dimensional and contiguous, with {length} elements of one byte")
    if view.readonly:
        raise ValueError(f"{name} is read-only")
    return view.cast("B") if length else memoryview(bytearray())


def same_length(name: str, view: memoryview, other: str, length: int) -> None:
    """Raise ValueError unless `view` has `length` elements, as many as `other`."""
    if len(view) != length:
        raise ValueError(f"{name} has {len(view)} elements, expected {length}, as many as {other}")


def zeros(typecode: str, length: int) -> array[int]:
    """Return an array of `length` zeros."""
    return array(typecode, [0]) * length
