"""Titles of the designs, and one colour for each in every figure."""

from __future__ import annotations

from typing import Any, Final

from abeyant.pages.style import PALETTE
from lab import purgatories, rivals

OURS: Final = PALETTE[0]
_TITLES: Final = (
    {name: design.title for name, design in rivals.DESIGNS.items()}
    | {name: design.title for name, design in purgatories.DESIGNS.items()}
    | {"kafka-jvm": "genuine Kafka (JVM)", "kafka": "Kafka's design, in Python"}
    | {"scan-all": "scan all", "ring-of-sets": "ring of sets", "add-again": "remove, add again", "refresh": "refresh"}
)
_COLOURS: Final = {
    "ours": OURS, "kafka": PALETTE[1], "kafka-jvm": PALETTE[2], "old": "#d8433c",
    "wheel": OURS, "delay-queue": "#d8433c", "indexed-heap": PALETTE[1], "lazy-heap": PALETTE[4],
    "hashed-wheel": PALETTE[2], "kernel-wheel": PALETTE[3], "ring": PALETTE[5], "sorted-list": PALETTE[6],
    "unsorted-list": PALETTE[7],
    "refresh": OURS, "add-again": PALETTE[1], "ring-of-sets": PALETTE[5], "scan-all": PALETTE[7],
}  # fmt: skip
_IDLE: Final = ("refresh", "add-again", "ring-of-sets", "scan-all")  # detectors of idle connections
ORDER: Final = ("ours", "kafka-jvm", "kafka", "old", *rivals.DESIGNS, *_IDLE)


def title(design: str) -> str:
    """Return a design's title for legends and texts."""
    return _TITLES.get(design, design)


def line(design: str, **more: Any) -> dict[str, Any]:
    """Return plotly's options for a design's line."""
    return {"color": colour(design), "width": 2.5 if design in ("ours", "wheel", "refresh") else 1.5, **more}


def colour(design: str) -> str:
    """Return a design's colour."""
    return _COLOURS.get(design, PALETTE[7])
