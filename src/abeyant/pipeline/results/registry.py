"""All kinds of sinks. A new one is a module beside these, and its class in `SINKS`."""

from __future__ import annotations

import os
from typing import Final

from abeyant.pipeline.results.local import LocalSink
from abeyant.pipeline.results.sink import Sink
from abeyant.pipeline.results.stored import StoreSink

__all__ = ["SINKS", "sink_of"]

SINKS: Final[tuple[type[Sink], ...]] = (StoreSink, LocalSink)
"""In the order in which they are asked whether a place is theirs."""


def sink_of(place: str | os.PathLike[str]) -> Sink:
    """Return the sink that a path or a URI means."""
    text = os.fspath(place)
    return next(kind for kind in SINKS if kind.takes(text))(text)
