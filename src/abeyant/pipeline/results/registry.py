"""Choose the sink for a path or URI. To add a kind, write a module in this folder and add its class to `SINKS`."""

from __future__ import annotations

import os
from typing import Final

from abeyant.pipeline.results.local import LocalSink
from abeyant.pipeline.results.sink import Sink
from abeyant.pipeline.results.stored import StoreSink

__all__ = ["SINKS", "sink_of"]

SINKS: Final[tuple[type[Sink], ...]] = (StoreSink, LocalSink)
"""All kinds of sinks. The first kind whose `takes` accepts a place is used for that place."""


def sink_of(place: str | os.PathLike[str]) -> Sink:
    """Return the sink for a path or a URI."""
    text = os.fspath(place)
    return next(kind for kind in SINKS if kind.takes(text))(text)
