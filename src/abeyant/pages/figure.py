"""A figure for plotly.js: traces and a layout. See https://plotly.com/javascript/reference/.

The Python package plotly would check each option and build an object for it: that takes two seconds for a report, and
57 MB to install. Here options are passed on unchecked, and a test draws each figure in a browser.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["Figure"]

_TYPED: Final = frozenset({"i1", "u1", "i2", "u2", "i4", "u4", "f4", "f8"})
"""NumPy's names of the element types whose arrays plotly.js can read as bytes."""


class Figure:
    """A figure: a list of traces, each drawn over the earlier traces, and the layout around them."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self.layout: dict[str, Any] = {}

    def add_scatter(self, **options: Any) -> None:
        """Add points or a line; `options` are those of Plotly's scatter trace. Data may be NumPy, pandas or lists."""
        self.data.append({"type": "scatter", **options})

    def add_bar(self, **options: Any) -> None:
        """Add bars; `options` are those of Plotly's bar trace."""
        self.data.append({"type": "bar", **options})

    def add_annotation(self, **options: Any) -> None:
        """Add a text in the figure; `options` are those of Plotly's annotations."""
        self.layout.setdefault("annotations", []).append(options)

    def update_layout(self, **options: Any) -> None:
        """Set options of the layout; a new value replaces the whole old value."""
        self.layout.update(options)

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as JSON values. Arrays become base64 of their bytes, half as long as decimal numbers."""
        return {"data": _plain(self.data), "layout": _plain(self.layout)}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(option) for name, option in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if hasattr(value, "to_numpy"):
        value = value.to_numpy()
    if hasattr(value, "dtype"):  # of NumPy, which is not needed for figures without arrays
        return _array(value) if value.ndim else _plain(value.item())
    return None if isinstance(value, float) and value != value else value  # JSON has no NaN


def _array(values: Any) -> Any:
    if values.dtype.kind == "i" and values.dtype.itemsize == 8:  # JavaScript's numbers are floats
        values = values.astype("f8")
    name = values.dtype.str[1:]
    if name not in _TYPED or not values.size:
        return _plain(values.tolist())
    return {"dtype": name, "bdata": base64.b64encode(values.astype(f"<{name}").tobytes()).decode()}
