"""What wheel.html runs: one timing wheel, and a view of it for the page to draw."""

import json
from collections import defaultdict

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
    """The wheel as it stands, as the drawing takes it, and each pending time-out, the next one first; as JSON."""
    stats = wheel.stats()
    spans = [WHEEL_SIZE**level for level in range(stats.levels)]
    buckets = wheel.buckets()
    # Of several with one deadline, those that were started first are on the higher wheels.
    levels = defaultdict(list)
    for bucket in sorted(buckets, key=lambda bucket: bucket.level):
        for deadline in bucket.deadlines:
            levels[deadline].append(bucket.level)
    pending = []
    for number, handle in handles.items():
        at = wheel.deadline(handle)
        pending.append({"number": number, "at": at, "left": at - wheel.clock, "level": levels[at].pop()})
    drawn = {
        "now": wheel.clock,
        "tick": 1,
        "size": WHEEL_SIZE,
        "hands": [wheel.clock // span % WHEEL_SIZE for span in spans],
        "buckets": [[bucket.level, bucket.index, len(bucket.deadlines)] for bucket in buckets],
        "pending": sorted(pending, key=lambda one: one["at"]),
    }
    return json.dumps({**stats._asdict(), **drawn})
