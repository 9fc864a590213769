"""The questions of docs/questions.md, each worked out anew: plain loops over the rows, nothing of ours.

Each returns by operation how it ended and when. They know the data that they are for: one event at an instant and key
where that is so, no row twice.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pandas as pd

Ends = dict[str, tuple[str, datetime | None]]
Read = Callable[[str], pd.DataFrame]


def rows(table: pd.DataFrame, *columns: str) -> list[tuple[Any, ...]]:
    """The rows, with None for what is missing."""
    values = [[None if pd.isna(value) else value for value in table[column]] for column in columns]
    return list(zip(*values, strict=True))


def by(pairs: list[tuple[Any, ...]]) -> dict[Any, list[Any]]:
    """The second of each pair by the first, in order."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for key, value in pairs:
        if key is not None and value is not None:
            found[key].append(value)
    return {key: sorted(values) for key, values in found.items()}


def paid(read: Read) -> Ends:
    at = dict(rows(read("shop/payments"), "key", "at"))
    ends: Ends = {}
    for order, start in rows(read("shop/orders"), "op_id", "start"):
        due = start + timedelta(minutes=15)
        when = at.get(order)
        ends[order] = ("expired", due) if when is None or when > due else ("completed", max(when, start))
    return ends


def late(read: Read) -> Ends:
    ends: Ends = {}
    for flight, scheduled, departed in rows(read("flights"), "flight", "scheduled", "departed"):
        if departed is not None and departed - scheduled <= timedelta(minutes=15):
            ends[flight] = ("completed", max(departed, scheduled))
        else:
            ends[flight] = ("expired", scheduled + timedelta(minutes=15))
    return ends


def next_of(starts: list[tuple[Any, ...]], within: timedelta) -> Ends:
    """Each (name, key, start) waits for the next start of its key."""
    times = by([(key, start) for _, key, start in starts])
    ends: Ends = {}
    for name, key, start in starts:
        if key is None or start is None:
            continue
        following = times[key][bisect_right(times[key], start) :]
        in_time = following and following[0] <= start + within
        ends[name] = ("completed", following[0]) if in_time else ("expired", start + within)
    return ends


def leaves_again(read: Read) -> Ends:
    return next_of(rows(read("flights"), "flight", "aircraft", "departed"), timedelta(hours=24))


def heartbeat(read: Read) -> Ends:
    reports = rows(read("weather"), "airport", "reported")
    return next_of([(f"{airport} {at:%F %T}", airport, at) for airport, at in reports], timedelta(hours=1))


def price(read: Read, at_the_end: bool) -> Ends:
    series = by([(share, (date, cost)) for share, date, cost in rows(read("prices"), "share", "date", "price")])
    ends: Ends = {}
    for share, points in series.items():
        for bought, cost in points:
            due = bought + timedelta(weeks=13)
            known = [(date, later) for date, later in points if bought <= date <= due]
            if at_the_end:
                above = [due] if 10 * known[-1][1] >= 11 * cost else []
            else:
                above = [date for date, later in known if 10 * later >= 11 * cost]
            ends[f"{share} {bought:%F}"] = ("completed", above[0]) if above else ("expired", due)
    return ends


def transplanted(read: Read) -> Ends:
    ends: Ends = {}
    columns = ("patient", "accepted", "transplanted", "died")
    for patient, accepted, heart, death in rows(read("patients"), *columns):
        due = accepted + timedelta(days=90)
        if heart is not None and heart <= due:
            ends[patient] = ("completed", heart)
        elif death is not None and death <= due:
            ends[patient] = ("cancelled", death)
        else:
            ends[patient] = ("expired", due)
    return ends


def carriers(read: Read, hours: int, decides: Callable[[list[datetime]], datetime], needed: int) -> Ends:
    ends: Ends = {}
    for order, sent, *brought in rows(read("parcels"), "order", "sent", "road", "rail", "air"):
        due = sent + timedelta(hours=hours)
        there = [at for at in brought if at is not None and at <= due]
        ends[order] = ("completed", decides(there)) if len(there) >= needed else ("expired", due)
    return ends


def last_touch(read: Read) -> Ends:
    clicks = rows(read("clicks"), "click", "user", "event", "at")
    views = [(at, click, user) for click, user, event, at in clicks if event == "product_view"]
    ends: Ends = {click: ("expired", at + timedelta(minutes=30)) for at, click, _ in views}
    served: set[str] = set()
    for _, buyer, event, bought in sorted(clicks, key=lambda row: row[3]):
        if event != "purchase":
            continue
        waiting = [
            (at, click)
            for at, click, user in views
            if user == buyer and click not in served and at < bought <= at + timedelta(minutes=30)
        ]
        if waiting:
            newest = max(at for at, _ in waiting)
            chosen = min(click for at, click in waiting if at == newest)
            served.add(chosen)
            ends[chosen] = ("completed", bought)
    return ends


def first_come(read: Read) -> Ends:
    waiting: dict[str, list[tuple[datetime, str]]] = defaultdict(list)
    cars: dict[str, int] = defaultdict(int)
    ends: Ends = {}
    for zone, who, at, name in sorted(rows(read("rides"), "zone", "who", "at", "name"), key=lambda row: row[2]):
        waiting[zone] = [(asked, rider) for asked, rider in waiting[zone] if at <= asked + timedelta(minutes=5)]
        if who == "rider" and cars[zone]:
            cars[zone] -= 1
            ends[name] = ("completed", at)
        elif who == "rider":
            waiting[zone].append((at, name))
            ends[name] = ("expired", at + timedelta(minutes=5))
        elif waiting[zone]:
            ends[waiting[zone].pop(0)[1]] = ("completed", at)
        else:
            cars[zone] += 1
    return ends


def settled(read: Read) -> Ends:
    ends: Ends = {}
    paid: dict[str, int] = defaultdict(int)
    invoices = sorted(rows(read("invoices"), "sent", "invoice", "customer", "amount"))
    for sent, invoice, _, _ in invoices:
        ends[invoice] = ("expired", sent + timedelta(days=30))
    # The payments of one instant go in order, the greatest first.
    payments = [(at, -amount, payer) for payer, at, amount in rows(read("payments"), "customer", "paid", "amount")]
    for at, negative, payer in sorted(payments):
        if negative > 0:
            continue  # a refund
        for sent, invoice, customer, amount in invoices:
            if customer == payer and paid[invoice] < amount and sent < at <= sent + timedelta(days=30):
                paid[invoice] -= negative
                if paid[invoice] >= amount:
                    ends[invoice] = ("completed", at)
                break
    return ends


def failed_thrice(read: Read) -> Ends:
    logins = rows(read("logins"), "login", "user", "failed")
    times = by([(user, at) for _, user, at in logins])
    ends: Ends = {}
    for login, user, start in logins:
        within = [at for at in times[user] if start <= at <= start + timedelta(minutes=10)]
        ends[login] = ("completed", within[2]) if len(within) > 2 else ("expired", start + timedelta(minutes=10))
    return ends


def paid_in_full(read: Read, at_the_end: bool) -> Ends:
    parts = by([(invoice, (at, amount)) for invoice, at, amount in rows(read("payments"), "invoice", "paid", "amount")])
    ends: Ends = {}
    for invoice, sent, amount in rows(read("invoices"), "invoice", "sent", "amount"):
        due, sums = sent + timedelta(days=30), dict[datetime, int]()
        for at, part in parts.get(invoice, []):
            if sent < at <= due:
                sums[at] = (list(sums.values()) or [0])[-1] + part
        enough = [at for at, total in sums.items() if total >= amount]
        if at_the_end:
            enough = [due] if sums and list(sums.values())[-1] >= amount else []
        ends[invoice] = ("completed", enough[0]) if enough else ("expired", due)
    return ends


def door_to_needle(read: Read) -> Ends:
    ends: Ends = {}
    for patient, door, scan, needle in rows(read("strokes"), "patient", "door", "scan", "needle"):
        due = door + timedelta(hours=1)
        in_order = scan is not None and scan < needle <= due
        ends[patient] = ("completed", needle) if in_order else ("expired", due)
    return ends


def funnel(read: Read) -> Ends:
    times = by([((s, event), at) for s, event, at in rows(read("clicks"), "session", "event", "at")])
    ends: Ends = {}
    for session, event in times:
        if event != "product_view":
            continue
        now, outcome = times[session, event][0], "completed"
        for step in ("add_to_cart", "purchase"):
            later = [at for at in times.get((session, step), []) if now < at <= now + timedelta(minutes=10)]
            if not later:
                now, outcome = now + timedelta(minutes=10), "expired"
                break
            now = later[0]
        ends[session] = (outcome, now)
    return ends


def abandoned(read: Read) -> Ends:
    sessions = by([(s, (at, event)) for s, event, at in rows(read("clicks"), "session", "event", "at")])
    ends: Ends = {}
    for session, clicks in sessions.items():
        start = next((at for at, event in clicks if event == "add_to_cart"), None)
        if start is None:
            continue
        due = start + timedelta(minutes=5)
        ends[session] = ("expired", due)
        for at, event in clicks:
            if not start < at <= due:
                continue
            if event == "purchase":
                ends[session] = ("completed", at)
                break
            due = at + timedelta(minutes=5)
            ends[session] = ("expired", due)
    return ends


def stayed(read: Read) -> Ends:
    ends: Ends = {}
    for user, clicks in by(rows(read("clicks"), "user", "at")).items():
        due = clicks[0] + timedelta(minutes=5)
        for at in clicks:
            due = at + timedelta(minutes=5) if at <= due else due
        ends[user] = ("expired", due)
    return ends


def answered(read: Read) -> Ends:
    """Minute by minute."""
    ends, berlin = Ends(), ZoneInfo("Europe/Berlin")
    columns = ("ticket", "asked", "held", "went_on", "answered")
    for ticket, *stamps in rows(read("tickets"), *columns):
        instants: list[Any] = [None if at is None else at.to_pydatetime() for at in stamps]  # whose sums take less time
        asked, held, went_on, answer = instants
        now, left = asked, 8 * 60
        while left and now != answer:
            local = now.astimezone(berlin)
            paused = held is not None and held <= now < went_on
            works = local.weekday() < 5 and local.date() != date(2026, 4, 3)  # Good Friday
            left -= works and 9 <= local.hour < 17 and not paused
            now += timedelta(minutes=1)
        ends[ticket] = ("completed" if now == answer else "expired", now)
    return ends


ORACLES: dict[str, Callable[[Read], Ends]] = {
    "Which orders were not paid within 15 minutes?": paid,
    "Did each flight leave at most 15 minutes late?": late,
    "Did all three carriers deliver within 48 hours, and which was last?": lambda read: carriers(read, 48, max, 3),
    "Which of the carriers delivered first?": lambda read: carriers(read, 24, min, 1),
    "Does the same aircraft leave again within 24 hours?": leaves_again,
    "Which heartbeat was missed?": heartbeat,
    "Which view of a product led to the purchase? (last touch)": last_touch,
    "Which riders got a car within five minutes? (first come, first served)": first_come,
    "Which invoice did a payment settle?": settled,
    "Three failed logins within ten minutes?": failed_thrice,
    "Was each invoice paid in full within 30 days?": lambda read: paid_in_full(read, at_the_end=False),
    "Was it still paid in full after 30 days, refunds deducted?": lambda read: paid_in_full(read, at_the_end=True),
    "Was the price 10 % higher at some time within 13 weeks?": lambda read: price(read, at_the_end=False),
    "Was it 10 % higher at the end of the 13 weeks?": lambda read: price(read, at_the_end=True),
    "From the door by way of the scan to the needle, within an hour?": door_to_needle,
    "View, cart, purchase, each within ten minutes of the one before?": funnel,
    "Transplanted within 90 days, or died while waiting?": transplanted,
    "Which carts were abandoned: no click for five minutes, and no purchase?": abandoned,
    "How long did a user stay, and with how many clicks?": stayed,
    "Answered within eight business hours, not counting our wait for the customer?": answered,
}
