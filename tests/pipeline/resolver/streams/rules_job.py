"""A stream with rules as a process of its own, to be killed.

`python -m pipeline.resolver.streams.rules_job FOLDER NAME`: which of `RULES`.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

from abeyant import pipeline
from pipeline.resolver.streams.test_rules_on_spark import Stream
from pipeline.resolver.tables.test_rules import World, given_of
from waits import Rules, some_waits

RULES = {
    "sums that serve one": Rules(serves="oldest", combine="sum"),
    "levels, pauses and extensions": Rules(count="from_start", combine="last", deadline="exclusive"),
}


def worlds(name: str) -> list[World]:
    """Return what the stream is about."""
    dice = random.Random(36)
    return [some_waits(dice, RULES[name]) for _ in range(200)]


def settings(name: str) -> dict[str, Any]:
    """Return how it is resolved."""
    return {"lateness": 180.0, "details": True} | given_of(RULES[name])


def main() -> None:
    """Run until all input is there, and resolved."""
    folder, name = Path(sys.argv[1]), sys.argv[2]
    spark = pipeline.spark_session(
        "local[2]", "abeyant rules job", brief=True, config={"spark.sql.shuffle.partitions": "2"}
    )
    print("ready", flush=True)
    stream = Stream(spark, folder, **settings(name))
    stream.run()
    stream.end()
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
