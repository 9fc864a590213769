"""Draw what the pages explain: docs/images/{wheel,purgatory,high-watermark,shards}.svg.

    python -m scripts.draw_explanations

Each brings its own background, light or dark as the reader's system is, and loads nothing. The wheel turns; it stands
still for readers who want less motion.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
STYLE = """\
text { font: 14px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif; fill: #1f2328 }
.card { fill: #ffffff; stroke: #d0d7de } .box { fill: #eef1f4; stroke: #8c959f } .line { stroke: #59636e; fill: none }
.head { fill: #59636e } .name { font-weight: 600 } .note { font-size: 13px; fill: #59636e }
.mono { font-family: monospace }
.a, .told { fill: #c62828 } .b { fill: #1a66b8 } .c { fill: #6f7d12 } .ink { fill: #ffffff; font-weight: 600 }
.far { stroke: #c62828; stroke-width: 2; stroke-dasharray: 5 4 } .soft { fill: #f6d9d6; stroke: #c62828 }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3 } .card { fill: #0d1117; stroke: #3d444d } .box { fill: #1c232b; stroke: #6e7681 }
  .line { stroke: #9198a1 } .head, .note { fill: #9198a1 }
  .a, .told { fill: #ff7b72 } .b { fill: #6cb0ff } .c { fill: #c3d04a }
  .ink { fill: #0d1117 } .far { stroke: #ff7b72 } .soft { fill: #4d2622; stroke: #ff7b72 }
}"""


def picture(width: int, height: int, says: str, lines: Iterator[str], style: str = "") -> str:
    """Return the SVG: a card of this size with these elements; `says` is for who cannot see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            f'role="img" aria-label="{escape(says)}">',
            f"<style>\n{STYLE}\n{style}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path class="head" d="M0 0 8 4 0 8z"/></marker></defs>',
            f'<rect class="card" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *lines,
            "</svg>\n",
        ]
    )


def text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    """Return a line of text with its baseline at `y`."""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(words)}</text>'


def box(x: float, y: float, wide: float, high: float, kind: str = "box") -> str:
    """Return a rectangle."""
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{wide:g}" height="{high:g}" rx="4"/>'


def arrow(x: float, y: float, to_x: float, to_y: float) -> str:
    """Return a straight arrow."""
    return f'<line class="line" x1="{x:g}" y1="{y:g}" x2="{to_x:g}" y2="{to_y:g}" marker-end="url(#tip)"/>'


# The wheel: two rings of twelve buckets. One of the first is a tick, one of the second a turn of the first.
BUCKETS, TICK, TURNS = 12, 0.75, 2  # buckets of a ring, seconds of the film for a tick, turns of the first ring
FIRST, SECOND, MIDDLE = (145.0, 210.0), (455.0, 210.0), 92.0  # centres of the rings; how far out their buckets are
TASKS = {"A": ("a", 5), "B": ("b", 16), "C": ("c", 22)}  # the tick at which each is due


def _bucket(ring: tuple[float, float], bucket: float, far: float = MIDDLE) -> tuple[float, float]:
    angle = 2 * math.pi * (bucket + 0.5) / BUCKETS
    return ring[0] + far * math.sin(angle), ring[1] - far * math.cos(angle)


def _wheel_style() -> str:
    """The film: 24 ticks, then again. Without it, as for readers who want less motion, tick 0 is shown."""
    ticks = TURNS * BUCKETS
    long = f"{ticks * TICK:g}s"
    moves = [
        "text, .note { font-size: 17px }",  # letters of 10 pixels on a screen of 400
        "@media (prefers-reduced-motion: no-preference) {",
        f".first {{ animation: first {BUCKETS * TICK:g}s steps({BUCKETS}) infinite }}",
        f".second {{ animation: second {long} steps({TURNS}) infinite }}",
        "@keyframes first { to { transform: rotate(360deg) } }",
        f"@keyframes second {{ to {{ transform: rotate({360 * TURNS // BUCKETS}deg) }} }}",
    ]
    for name, (_, due) in TASKS.items():
        moves.append(f".task{name} {{ animation: task{name} {long} infinite }}")
        frames = ["0% { opacity: 1; transform: none }"]
        if due >= BUCKETS:  # it cascades when its bucket of the second ring comes up
            began, ended = (100 * (BUCKETS + shift) / ticks for shift in (0, 0.6))
            x, y = _bucket(SECOND, due // BUCKETS)
            to_x, to_y = _bucket(FIRST, due % BUCKETS)
            moved = f"transform: translate({to_x - x:.1f}px, {to_y - y:.1f}px)"
            frames += [f"{began:.2f}% {{ transform: none }}", f"{ended:.2f}% {{ {moved} }}"]
        else:
            moved = "transform: none"
        start, end = (100 * (due + shift) / ticks for shift in (0.05, 0.9))
        frames += [f"{start:.2f}% {{ opacity: 1; {moved} }}", f"{end:.2f}%, 100% {{ opacity: 0; {moved} }}"]
        moves.append(f"@keyframes task{name} {{ {' '.join(frames)} }}")
    for number, (begin, end, _) in enumerate(_captions()):
        first, shown, last = int(begin == 0), 100 * begin / ticks, 100 * end / ticks
        moves += [
            f".said{number} {{ animation: said{number} {long} step-end infinite; opacity: 0 }}",
            f"@keyframes said{number} {{ 0% {{ opacity: {first} }} {shown:.2f}% {{ opacity: 1 }} "
            f"{last:.2f}%, 100% {{ opacity: 0 }} }}",
        ]
    return "\n".join([*moves, "}", ""])


def _captions() -> list[tuple[int, int, str]]:
    """From which tick to which a line stands below the rings."""
    return [
        (0, 5, "The hand of the first wheel passes a bucket each tick. A is due at tick 5, B at 16, C at 22."),
        (5, 7, "Tick 5: the hand is at A's bucket, and A runs. It never runs early."),
        (7, 12, "B and C are too far ahead for the first wheel. They wait in one bucket of the second."),
        (12, 16, "Tick 12: that bucket comes up. B and C cascade to the first wheel, each to its own tick."),
        (16, 22, "Tick 16: B runs. Starting or stopping it was a few steps, however many others wait."),
        (22, 24, "Tick 22: C runs."),
    ]


def _ring(centre: tuple[float, float], first: int, step: int, hand: str) -> Iterator[str]:
    x, y = centre
    for bucket in range(BUCKETS):
        points = [(bucket - 0.5, MIDDLE - 26), (bucket - 0.5, MIDDLE + 26), (bucket + 0.5, MIDDLE + 26)]
        points.append((bucket + 0.5, MIDDLE - 26))
        corners = " ".join("{:.1f},{:.1f}".format(*_bucket(centre, *point)) for point in points)
        yield f'<polygon class="box" points="{corners}"/>'
        at_x, at_y = _bucket(centre, bucket, MIDDLE + 41)
        yield text(round(at_x, 1), round(at_y + 5, 1), str(first + step * bucket), "note", "middle")
    at_x, at_y = _bucket(centre, 0, MIDDLE - 30)
    yield (
        f'<g style="transform-origin: {x:g}px {y:g}px" class="{hand}"><line class="line" x1="{x:g}" y1="{y:g}" '
        f'x2="{at_x:.1f}" y2="{at_y:.1f}" stroke-width="3" marker-end="url(#tip)"/></g>'
    )
    yield f'<circle class="head" cx="{x:g}" cy="{y:g}" r="5"/>'


def wheel() -> str:
    """Two wheels: three tasks wait, one cascade, each runs at its tick."""

    def lines() -> Iterator[str]:
        for (x, _), name, says in (FIRST, "First wheel", "1 tick"), (SECOND, "Second wheel", "12 ticks"):
            yield text(x, 32, name, "name", "middle") + text(x, 54, f"a bucket is {says}", "", "middle")
        yield from _ring(FIRST, 0, 1, "first")
        yield from _ring(SECOND, 0, BUCKETS, "second")
        beside = {"B": -12, "C": 12}  # two in one bucket
        for name, (kind, due) in TASKS.items():
            x, y = _bucket(FIRST, due) if due < BUCKETS else _bucket(SECOND, due // BUCKETS)
            x, y = round(x + beside.get(name, 0), 1), round(y, 1)
            yield f'<g class="task{name}"><circle class="{kind}" cx="{x:g}" cy="{y:g}" r="12"/>'
            yield text(x, y + 6, name, "ink", "middle") + "</g>"
        for number, (begin, _, words) in enumerate(_captions()):
            hidden = ' opacity="0"' if begin else ""
            first, _, second = words.partition(". ")
            both = text(305, 386, f"{first}." if second else words, "", "middle")
            both += " " + text(305, 410, second, "", "middle") if second else ""
            yield f'<g class="said{number}"{hidden}>{both}</g>'

    says = (
        "A timing wheel of two levels. A task that is due within twelve ticks waits in the bucket of its tick. One "
        "that is due later waits in the second wheel, cascades to the first when its bucket comes up, and runs on time."
    )
    return picture(610, 430, says, lines(), _wheel_style())


def purgatory() -> str:
    """Operations on the lists of their keys, and on the wheel; an event looks at one list."""

    def lines() -> Iterator[str]:
        yield text(24, 36, "what happens", "name")
        yield text(210, 36, "keys, each with a list", "name")
        yield text(418, 36, "operations", "name")
        yield text(712, 36, "the wheel", "name", "middle")
        keys = {"orders-0": ("A", "B"), "orders-1": ("A",), "orders-2": ("C",)}
        places = {"A": 86.0, "B": 166.0, "C": 246.0}
        words = {
            "A": ("acks=all to two partitions", "30 s left"),
            "B": ("acks=all to orders-0", "28 s left"),
            "C": ("a fetch of 10 kB", "0.4 s left"),
        }
        for row, (key, watched) in enumerate(keys.items()):
            y = 76.0 + 80 * row
            yield box(210, y - 16, 84, 32)
            yield text(252, y + 5, key, "mono", "middle")
            for place, name in enumerate(watched):
                x = 318.0 + 38 * place
                yield arrow(x - 22, y, x - 3, y)
                yield f'<circle class="{TASKS[name][0]}" cx="{x + 10:g}" cy="{y:g}" r="12"/>'
                yield text(x + 10, y + 5, name, "ink", "middle")
        for name, y in places.items():
            yield box(418, y - 28, 214, 56)
            yield f'<circle class="{TASKS[name][0]}" cx="438" cy="{y - 8:g}" r="12"/>'
            yield text(438, y - 3, name, "ink", "middle")
            yield text(456, y - 3, words[name][0], "note")
            yield text(456, y + 17, words[name][1], "note")
            yield arrow(632, y, 668 + (16 if name == "B" else 4), 166 + (y - 166) * 0.28)
        yield '<circle class="box" cx="712" cy="166" r="30"/><circle class="card" cx="712" cy="166" r="15"/>'
        for bucket in range(12):
            angle = 2 * math.pi * bucket / 12
            x, y = math.sin(angle), -math.cos(angle)
            yield (
                f'<line class="line" x1="{712 + 15 * x:.1f}" y1="{166 + 15 * y:.1f}" '
                f'x2="{712 + 30 * x:.1f}" y2="{166 + 30 * y:.1f}"/>'
            )
        yield box(24, 52, 142, 48, "soft")
        yield text(95, 72, "the high watermark", "note", "middle")
        yield text(95, 90, "of orders-0 rises", "note", "middle")
        yield arrow(166, 76, 206, 76)
        yield text(
            24, 300, "The event tries A and B only: they watch its key. B completes, and leaves its list and the wheel."
        )
        yield text(
            24, 322, "A still waits for orders-1. C is not looked at. What is still here at its deadline expires."
        )

    says = (
        "A purgatory. Three operations are on the lists of the keys that they watch, and on the timing wheel. An event "
        "on one key tries the operations of that key only. What completes leaves all lists and the wheel."
    )
    return picture(770, 344, says, lines())


def high_watermark() -> str:
    """Three replicas of a partition: two have all, one lags; the produce waits for it."""

    def lines() -> Iterator[str]:
        logs = {"broker 1, leads": 8, "broker 2, follows": 8, "broker 3, stalls": 5}
        left, wide = 190, 46
        yield text(24, 36, "orders-0, in sync: 1, 2, 3", "name")
        for offset in range(8):
            yield text(left + wide * offset + 23, 62, str(offset), "note", "middle")
        for row, (name, count) in enumerate(logs.items()):
            y = 74 + 58 * row
            yield text(24, y + 25, name)
            for offset in range(count):
                yield box(left + wide * offset + 2, y, wide - 4, 38, "soft" if offset >= 5 else "box")
            yield text(left + wide * count + 12, y + 25, f"log end offset {count}", "note")
        x = left + wide * 5
        yield f'<line class="far" x1="{x}" y1="48" x2="{x}" y2="252"/>'
        yield text(x, 274, "high watermark 5: the least of the in-sync replicas' log ends", "told", "middle")
        yield text(
            24, 310, "Consumers read up to offset 4. A produce of 5 to 7 with acks=all waits until the watermark is 8:"
        )
        yield text(
            24, 332, "broker 3 copies them, or leaves the in-sync set, or the time is up and it is REQUEST_TIMED_OUT."
        )

    says = (
        "Three replicas. The leader and one follower have eight records, the third has five. The high watermark is 5, "
        "so a produce with acks=all of records 5 to 7 waits until the third has them, or has left the in-sync set."
    )
    return picture(730, 352, says, lines())


def shards() -> str:
    """From tables to outcomes: rows are packed by shard, shuffled, and resolved a shard at a time."""

    def lines() -> Iterator[str]:
        columns = {
            "1 read": 100, "2 hash the key, pack": 294, "3 shuffle by shard": 474, "4 resolve": 646,
        }  # fmt: skip
        for name, x in columns.items():
            yield text(x, 34, name, "name", "middle")
        inputs = [("operations", "what waits, until when"), ("events", "what happened")]
        kinds = ["a", "b", "c"]
        for row, (name, what) in enumerate(inputs):
            y = 62 + 112 * row
            yield box(22, y, 156, 82)
            yield text(100, y + 34, name, "name", "middle")
            yield text(100, y + 56, what, "note", "middle")
            yield arrow(178, y + 41, 222, y + 41)
            yield box(226, y, 136, 82)
            for shard, kind in enumerate(kinds):
                yield f'<rect class="{kind}" x="{240 + 38 * shard}" y="{y + 24}" width="32" height="34" rx="3"/>'
                yield text(256 + 38 * shard, y + 46, "OE"[row], "ink", "middle")
                yield arrow(362, y + 24 + 17 * shard, 430, 80 + 66 * shard + 12 * row)
        for shard, kind in enumerate(kinds):
            y = 62 + 66 * shard
            yield box(434, y, 84, 48)
            for row in range(2):
                yield f'<rect class="{kind}" x="{442 + 36 * row}" y="{y + 7}" width="32" height="34" rx="3"/>'
                yield text(458 + 36 * row, y + 29, "OE"[row], "ink", "middle")
            yield arrow(518, y + 24, 572, y + 24)
            yield box(576, y, 140, 48)
            yield text(646, y + 21, f"shard {shard + 1} of 1,024", "note", "middle")
            yield text(646, y + 39, "its outcomes", "note", "middle")
        yield text(
            22,
            296,
            "All rows of a key are in one shard, so a task resolves its shard alone. Rows travel packed: a value",
        )
        yield text(22, 318, "for a shard of each chunk, not one a row. A key with very many events is cut into pieces.")

    says = (
        "Operations and events are read, hashed by key, packed by shard and shuffled. Then each shard is resolved by "
        "itself, since all rows of a key are in one shard."
    )
    return picture(738, 340, says, lines())


PICTURES: dict[str, Callable[[], str]] = {
    "wheel": wheel, "purgatory": purgatory, "high-watermark": high_watermark, "shards": shards,
}  # fmt: skip

if __name__ == "__main__":
    for name, draw in PICTURES.items():
        path = IMAGES / f"{name}.svg"
        path.write_text(draw(), encoding="utf-8")
        print(path)
