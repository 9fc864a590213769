"""The window: a page on this machine that shows what waits in a running program.

    from abeyant import window

    view = window.serve(timer, purgatory)         # prints nothing; view.url is where
    view = window.serve(cluster, port=8090)       # a broker: with buttons for pauses, faults and a held clock

It runs in a thread of its own, so it lives while the program's loop is blocked, and reads only while a page is open.
Needs the extra `window`: pip install '.[window]'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.window.serving import Window, serve

__all__ = ["Window", "serve"]

__getattr__, __dir__ = lazy_names(__name__, {"Window": "serving", "serve": "serving"}, "window", ("h11",))
