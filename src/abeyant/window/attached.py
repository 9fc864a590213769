"""What `python -m abeyant.window PID` runs in the program: a window on every timer and purgatory that there is."""

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
    """Open the window, and write its address, or why there is none, to the file `answer`, whole or not at all."""
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
