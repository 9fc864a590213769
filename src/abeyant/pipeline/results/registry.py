"""All kinds of sinks. A new one is a module beside these, and its class in `SINKS`."""

from __future__ import annotations

import os
from typing import Final

from abeyant.pipeline.results.local import LocalSink
from abeyant.pipeline.results.sink import Sink
from abeyant.pipeline.results.stored import StoreSink

__all__ = ["SINKS", "sink_of"]

SINKS: Final[tuple[type[Sink], ...]] = (StoreSink, LocalSink)
"""The first that takes a place is used."""


def sink_of(place: str | os.PathLike[str]) -> Sink:
    """Return the sink for a path or a URI."""
    text = os.fspath(place)
    return next(kind for kind in SINKS if kind.takes(text))(text)
