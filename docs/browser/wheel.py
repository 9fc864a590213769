"""What wheel.html runs: one timing wheel, and a view of it for the page to draw."""

import json

from abeyant.engine import TimingWheel

WHEEL_SIZE = 8
wheel = TimingWheel(tick=1, wheel_size=WHEEL_SIZE)
handles: dict[int, int] = {}  # by the number that the page shows
numbers = iter(range(1, 1_000_000))


def start(delay: int) -> int:
    """Start a time-out; its number."""
    number = next(numbers)
    handles[number] = wheel.add(wheel.clock + delay, number)
    return number


def cancel(number: int) -> bool:
    """Whether this prevented it from coming due."""
    return wheel.remove(handles.pop(number)) is not None


def turn(seconds: int) -> str:
    """Turn the clock second by second; what happened, as JSON."""
    happened = []
    for now in range(wheel.clock + 1, wheel.clock + seconds + 1):
        before = wheel.stats().cascaded
        due = wheel.advance(now)
        for number in due:
            del handles[number]
        cascaded = wheel.stats().cascaded - before
        if due or cascaded:
            happened.append({"at": now, "due": due, "cascaded": cascaded})
    return json.dumps(happened)


def view() -> str:
    """The wheel as it stands, as JSON."""
    stats = wheel.stats()
    wheels = []
    for level in range(stats.levels):
        span = WHEEL_SIZE**level
        buckets = [
            {"span": span, "here": wheel.clock // span % WHEEL_SIZE == at, "holds": []} for at in range(WHEEL_SIZE)
        ]
        wheels.append(buckets)
    for bucket in wheel.buckets():
        wheels[bucket.level][bucket.index] |= {"holds": bucket.deadlines, "expiration": bucket.expiration}
    pending = {number: wheel.deadline(handle) for number, handle in handles.items()}
    return json.dumps({"clock": wheel.clock, "wheels": wheels, "pending": pending, "stats": stats._asdict()})
