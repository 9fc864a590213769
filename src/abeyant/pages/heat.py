"""Heat maps as HTML tables, which work in light and dark mode, with screen readers, and without scripts."""

from __future__ import annotations

import math
from collections.abc import Callable

import pandas as pd

from abeyant.pages.formatting import UNKNOWN, escaped

__all__ = ["heat_map"]


def heat_map(title: str, grid: pd.DataFrame, down: str, across: str, show: Callable[[float], str]) -> str:
    """Return a grid as an HTML table, with a stronger background for greater numbers.

    The index and columns of `grid` are the labels; `down` is the title of the rows, `across` the title of the columns.
    """
    most = max((value for row in grid.to_numpy(dtype=float).tolist() for value in row if value == value), default=0.0)
    head = "".join(f'<th scope="col">{escaped(name)}</th>' for name in grid.columns)
    body = "".join(
        f'<tr><th scope="row">{escaped(name)}</th>{"".join(_cell(value, most, show) for value in row)}</tr>'
        for name, row in zip(grid.index, grid.to_numpy(dtype=float).tolist(), strict=True)
    )
    return (
        f'<figure class="heat"><figcaption>{escaped(title)}</figcaption><div class="wide"><table>'
        f'<thead><tr><td></td><th class="across" colspan="{grid.shape[1]}">{escaped(across)}</th></tr>'
        f'<tr><th scope="col">{escaped(down)}</th>{head}</tr></thead><tbody>{body}</tbody></table></div></figure>'
    )


def _cell(value: float, most: float, show: Callable[[float], str]) -> str:
    if math.isnan(value):
        return f"<td>{UNKNOWN}</td>"
    share = value / most if most > 0 else 0.0
    return f'<td style="--share:{share:.3f}">{escaped(show(value))}</td>'
