"""Holidays as people have them: each form closes the same days, and what is no date is refused by name."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from abeyant.resolver.calendar import Calendar

DAYS = [date(2026, 4, 3), date(2026, 4, 6)]  # a Friday, a Monday
HOUR = 3_600_000_000


def open_hours(calendar: Calendar) -> int:
    begin, end = (int(datetime(2026, 4, day, tzinfo=UTC).timestamp() * 1e6) for day in (1, 9))
    return (calendar.elapsed_at(end) - calendar.elapsed_at(begin)) // HOUR


class Asked(dict[date, str]):
    """Fills itself when asked, as those of the package `holidays`."""

    def __contains__(self, day: object) -> bool:
        return day in DAYS


class Container:
    def __contains__(self, day: object) -> bool:
        return day in DAYS


@pytest.mark.parametrize(
    "holidays",
    [
        DAYS,
        set(DAYS),
        iter(DAYS),
        (day for day in DAYS),
        dict.fromkeys(DAYS, "Easter"),
        [day.isoformat() for day in DAYS],
        ", ".join(day.isoformat() for day in DAYS),
        [datetime(day.year, day.month, day.day, 12) for day in DAYS],
        pd.to_datetime(DAYS),
        pd.Series(DAYS),
        pd.Series(pd.to_datetime(DAYS)),
        np.array(DAYS, "datetime64[D]"),
        np.array(DAYS, "datetime64[ns]"),
        pa.array(DAYS),
        pl.Series(DAYS),
        Asked(),
        Container(),
    ],
    ids=lambda holidays: f"{type(holidays).__module__}.{type(holidays).__name__}",
)
def test_holidays_are_taken_in_each_form(holidays: Any) -> None:
    calendar = Calendar("Mon-Fri 09:00-17:00", holidays=holidays)
    assert open_hours(calendar) == 4 * 8
    if not hasattr(holidays, "send") and not isinstance(holidays, Asked | Container):
        assert open_hours(pickle.loads(pickle.dumps(calendar))) == 4 * 8


@pytest.mark.parametrize(
    ("holidays", "named"),
    [
        ("holidays.txt", "such as 2026-12-25, not 'holidays.txt'"),
        (None, "must be dates, not None: leave them out"),
        (["06.03.2026"], "such as 2026-12-25, not '06.03.2026'"),
        ([20260403], "not 20260403"),
        (pd.Series([pd.Timestamp("2026-04-03"), pd.NaT]), "not NaT"),
        ([None], "not None"),
    ],
)
def test_what_is_no_date_is_refused_by_name(holidays: Any, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        Calendar("Mon-Fri 09:00-17:00", holidays=holidays)


@pytest.mark.parametrize("form", [list, set, pd.Series])
def test_the_same_holidays_have_one_text_whatever_their_form(form: Callable[[list[date]], Any]) -> None:
    assert repr(Calendar("Mon 09:00-17:00", holidays=form(DAYS))) == (
        "Calendar('Mon 09:00-17:00', zone='UTC', holidays=['2026-04-03', '2026-04-06'])"
    )
