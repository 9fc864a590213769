"""Run in the program that `python -m abeyant.window PID` attaches to: a window on all timers and purgatories."""

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
    """Open the window, and write its address or the error to the file `answer`, as JSON, by a rename."""
    things = [thing for thing in everything() if isinstance(thing, (Timer, Purgatory, aio.Purgatory))]
    try:
        if not things:
            raise AbeyantError("it has no timer and no purgatory of Abeyant")
        window = serve(*things, port=port)
        _windows.append(window)
        told = {"url": window.url}
    except AbeyantError as error:
        told = {"error": str(error)}
    part = Path(f"{answer}.part")
    part.write_text(json.dumps(told), encoding="utf-8")
    part.rename(answer)
