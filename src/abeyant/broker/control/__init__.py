"""Control over HTTP: faults, pauses, the clock, topics, records, groups and transactions, from any language.

    >>> from abeyant.broker import Cluster, control
    >>> with Cluster(brokers=3) as kafka, control.serve(kafka) as server:
    ...     print(server.url)  # its description for client generators is at openapi.json
    http://127.0.0.1:.../

The command `abeyant broker --control` serves the same API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from abeyant.lazy import lazy_names

if TYPE_CHECKING:
    from abeyant.broker.control.serving import serve
    from abeyant.web import Server

__all__ = ["Server", "serve"]

__getattr__, __dir__ = lazy_names(__name__, {"Server": "serving", "serve": "serving"}, "window", ("h11",))
