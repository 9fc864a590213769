"""PySpark's own thread that collects accumulators: it ends in silence where the JVM is gone, and at once at a stop.

The thread looks whether it is to end once a second, and so each session that stops would wait half a second on the
average, for nothing. Here what the thread waits for is closed.
"""

from __future__ import annotations

import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark import SparkContext

__all__ = ["end_quietly"]


def end_quietly(context: SparkContext) -> None:
    """Let the thread end without a traceback when the JVM is gone, and without a pause when the context stops.

    Whoever calls the JVM next tells that it is gone, in one line.
    """
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is None:  # nothing is promised of what PySpark keeps there
        return
    tell, serve, shut_down = server.handle_error, server.finish_request, server.shutdown
    served: list[socket.socket] = []

    def handle_error(request: object, client: object) -> None:
        if not server.server_shutdown and not isinstance(sys.exception(), EOFError):
            tell(request, client)

    def finish_request(request: socket.socket, client: object) -> None:
        served.append(request)
        try:
            serve(request, client)
        finally:
            served.remove(request)

    def knock() -> None:
        with suppress(OSError), socket.socket(server.address_family) as connection:
            connection.connect(server.server_address)

    def service_actions() -> None:  # after each request
        if server.server_shutdown:
            knock()  # until the thread has seen that it is to end, which is said to it in a moment

    def shutdown() -> None:
        server.server_shutdown = True
        with suppress(OSError, IndexError):  # the JVM's connection, which it keeps
            served[0].shutdown(socket.SHUT_RDWR)
        knock()  # where there is none yet
        shut_down()

    server.handle_error, server.finish_request = handle_error, finish_request
    server.service_actions, server.shutdown = service_actions, shutdown
