"""The plan of a stream's run: its options and tables. It is checked before Spark starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pyspark.sql import SparkSession

from abeyant.errors import AbeyantError
from abeyant.pipeline.commands.rules import DEFAULTS
from abeyant.pipeline.commands.stream_run.description import check
from abeyant.pipeline.results.sink import Folder, Out, Sink
from abeyant.pipeline.sources.source import Kafka, Source
from abeyant.pipeline.spark.connect import is_connect
from abeyant.pipeline.spark.location import is_uri
from abeyant.pipeline.spark.store import Store

__all__ = ["ENDING", "Plan"]

ENDING: Final = "input-ended"
"""The directory below --out in which a file signals the end of the input to the stream."""


@dataclass(frozen=True)
class Plan:
    """The options and tables of a stream's run. Durations are in seconds."""

    operations: Source
    events: Source
    out: Sink
    checkpoint: str
    deadline: Literal["inclusive", "exclusive"]
    time: Literal["event", "processing"]
    lateness: float
    tick: float | None
    forget_after: float | None
    trigger: float | None
    """Seconds between the starts of batches; None: process what is there now, then stop."""
    drain: bool
    rules: Mapping[str, Any] = field(default_factory=dict)
    """Further keyword arguments of `resolve_stream`, such as `count` and `combine`."""
    topics: tuple[str, ...] = ()
    """Names of the Kafka topics that are read."""
    one_batch: bool = False
    """Whether the first batch reads the whole input."""
    kafka: Kafka | None = None
    to_topic: str | None = None
    aside_topic: str | None = None
    title: str | None = None
    """The report's title, if the user gave one."""

    @property
    def ending(self) -> Out:
        """Return the directory in which a file signals the end of the input to the stream."""
        return self.out.below(ENDING).place

    def check(self) -> None:
        """Raise `AbeyantError` if this stream may not write to its result, as far as is known without Spark."""
        folder = self.out.describe()
        if folder is not None:
            self.check_in(folder, begun=self.begun(None))

    def check_in(self, folder: Folder, *, begun: bool) -> bool:
        """Check the result in `folder` as `check` does; return whether an earlier run drained the stream."""
        check(folder, self.out.place, self.checkpoint, self.identity(), begun=begun)
        drained = any(not name.startswith(".") for name in folder.names(ENDING))
        if drained and not self.drain:
            raise AbeyantError(f"{self.out.place} was drained: its input has ended; begin anew with another --out")
        return drained

    def begun(self, spark: SparkSession | None) -> bool:
        """Return whether the checkpoint has been used. For a URI, return False without `spark` or on Spark Connect."""
        if not is_uri(self.checkpoint):
            return (Path(self.checkpoint) / "metadata").exists()
        return spark is not None and not is_connect(spark) and Store(spark, self.checkpoint).exists("metadata")

    def identity(self) -> dict[str, Any]:
        """Return the options that must not change while a checkpoint is in use."""
        return {
            "operations": self.operations.given.name,
            "events": self.events.given.name,
            "operation columns": dict(self.operations.given.columns),
            "event columns": dict(self.events.given.columns),
            **self._queries(),
            "deadline": self.deadline,
            **self._changed_rules(),
            "time": self.time,
            "ticks": self.tick is not None,
            "to topic": self.to_topic,
            "aside topic": self.aside_topic,
        }

    def _queries(self) -> dict[str, str]:
        """Return the SQL queries that were given. Earlier releases wrote none, so a query that is None is omitted."""
        queries = {"operation query": self.operations.given.query, "event query": self.events.given.query}
        return {name: query for name, query in queries.items() if query is not None}

    def _changed_rules(self) -> dict[str, Any]:
        """Return the rules whose values differ from the defaults. Omit defaults, as earlier releases wrote none."""
        rules = {name: value for name, value in self.rules.items() if value != DEFAULTS[name]}
        if (calendar := self.rules.get("calendar")) is not None:
            rules["calendar"] = repr(calendar)
        return rules
