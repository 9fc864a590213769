"""Pack counts over time, from which the page's script makes tables and figures for a selected part of the log."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from abeyant.pipeline.report.analysis import Analysis
from abeyant.pipeline.report.small_plots import milliseconds

__all__ = ["CELLS", "by_time"]

CELLS: Final = {"kinds": 7_000, "keys": 6_000, "apis": 2_500}
"""Maximum number of counts by kind, key and API in a page, at 10 to 15 bytes each. Time slices are merged to fit."""

_OUTCOMES: Final = ("completed", "expired", "unknown")
_STEPS: Final = 1_000
"""Number of codes per outcome. Half of it is added to a wait's step, its logarithmic bin; code 0 means no wait."""


def by_time(analysis: Analysis) -> dict[str, Any] | None:
    """Return the packed counts over time of kinds, keys and APIs; None if the log has no request with a time.

    `order` lists the kinds. `kinds`, `keys` and `apis` each have `first`, the start of the first slice, and `width`,
    the length of a slice, in seconds, and `cells`: a flat list with five numbers per row, (instance, what, slice, code,
    count), the first three as differences from the row before. `instance` is a position among the page's scopes; `what`
    is a position in `order`, a key's number in `Analysis.shown_keys`, or a position in `Analysis.apis`. For kinds and
    keys, `code` is 1000 times the outcome's number plus the code of the wait's length (`_STEPS`). For APIs it is 0 if
    `count` counts requests, 1 if it counts requests that waited.
    """
    starts = pd.to_datetime(analysis.tables["requests_by_time"]["at"], utc=True)
    if starts.empty or starts.isna().all():
        return None
    waits, keys, apis = (analysis.tables[f"{name}_by_time"] for name in ("waits", "keys", "requests"))
    kinds = {kind: number for number, kind in enumerate(analysis.kinds)}
    names = {api: number for number, api in enumerate(analysis.apis)}
    key_numbers = analysis.shown_keys.reset_index(names="what")
    requests = apis.assign(what=apis["api"].map(names)).melt(
        id_vars=["instance", "at", "what"], value_vars=["requests", "waited"], var_name="counted", value_name="count"
    )
    return {
        "order": analysis.kinds,
        "kinds": _packed(analysis, _coded(waits.assign(what=waits["kind"].map(kinds))), CELLS["kinds"]),
        "keys": _packed(analysis, _coded(keys.merge(key_numbers, on=["instance", "kind", "key"])), CELLS["keys"]),
        "apis": _packed(analysis, requests.assign(code=(requests["counted"] == "waited").astype(int)), CELLS["apis"]),
    }


def _coded(rows: pd.DataFrame) -> pd.DataFrame:
    outcome = rows["outcome"].map({name: number for number, name in enumerate(_OUTCOMES)})
    step = (rows["step"] + _STEPS // 2).fillna(0)
    return rows.assign(code=(outcome * _STEPS + step), count=rows["operations"])


def _packed(analysis: Analysis, rows: pd.DataFrame, most: int) -> dict[str, Any]:
    rows = rows[rows["what"].notna()]  # drop rows of keys, kinds or APIs that are not in the page
    seconds = milliseconds(rows["at"]).to_numpy() / 1000
    first, width = _slices(analysis)
    places = {name: place for place, name in enumerate(analysis.scopes)}
    cells = pd.DataFrame(
        {
            "instance": rows["instance"].map(places).fillna(0).astype(int),
            "what": rows["what"].astype(int),
            "slice": np.rint((seconds - first) / width).astype(int),
            "code": rows["code"].astype(int),
            "count": rows["count"].astype(int),
        }
    )
    cells = cells[cells["count"] > 0]
    while True:
        group = ["instance", "what", "slice", "code"]
        cells = pd.DataFrame(cells.groupby(group, as_index=False)["count"].sum()).sort_values(group)
        if len(cells) <= most or not cells["slice"].any():
            break
        cells, width = cells.assign(slice=cells["slice"] // 2), width * 2
    packed = cells[["instance", "what", "slice", "code", "count"]].to_numpy(np.int64)
    packed[1:, :3] -= packed[:-1, :3].copy()
    return {"first": first, "width": width, "cells": packed.ravel().tolist()}


def _slices(analysis: Analysis) -> tuple[float, float]:
    """Return the start of the first slice, in seconds since 1970, and the length of a slice, in seconds."""
    parts = [pd.to_datetime(analysis.tables[name]["at"], utc=True) for name in ("waits_by_time", "requests_by_time")]
    begins = np.unique(milliseconds(pd.concat(parts))) / 1000
    gaps = np.diff(begins)
    return float(begins[0]), float(gaps.min()) if len(gaps) else 1.0
