"""The window: a web page on this machine that shows what waits in a running program.

    >>> from abeyant import SystemTimer, window
    >>> view = window.serve(SystemTimer("rpc"))  # of a broker's cluster it has buttons for faults and the clock
    >>> view.url
    'http://127.0.0.1:.../'
    >>> view.close()

The window runs in a thread of its own, so it works even while the program's event loop is blocked. It reads the
program's state only while a page is open. Needs the extra `window`: pip install '.[window]'.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.window.serving import Window, serve

__all__ = ["Window", "serve"]

__getattr__, __dir__ = lazy_names(__name__, {"Window": "serving", "serve": "serving"}, "window", ("h11",))
