"""Open a window on all timers and purgatories of a program: `python -m abeyant.window PID` calls `attached` in it."""

from __future__ import annotations

import json
from pathlib import Path

from abeyant import aio
from abeyant.errors import AbeyantError
from abeyant.forking import everything
from abeyant.purgatory import Purgatory
from abeyant.timer.base import Timer
from abeyant.window.serving import Window, serve

_windows: list[Window] = []


def attached(answer: str, port: int) -> None:
    """Open the window, and atomically write its address or the error as JSON to the file `answer`."""
    things = [thing for thing in everything() if isinstance(thing, (Timer, Purgatory, aio.Purgatory))]
    try:
        if not things:
            raise AbeyantError("the program has no timer and no purgatory of Abeyant, so there is nothing to show")
        window = serve(*things, port=port)
        _windows.append(window)
        told = {"url": window.url}
    except AbeyantError as error:
        told = {"error": str(error)}
    part = Path(f"{answer}.part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.rename(answer)
