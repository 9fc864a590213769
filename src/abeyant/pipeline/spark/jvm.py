"""Start the JVM that Spark runs in, without output, and explain how the JVM ended when it no longer responds.

PySpark keeps one JVM for the life of the process: a new session runs in the same JVM as a stopped one.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from abeyant.pipeline.spark.archive import class_list, write_archive

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
    from pyspark import SparkConf, SparkContext

__all__ = [
    "OUT_OF_MEMORY",
    "end_listing",
    "end_quietly",
    "gateway_to_jvm",
    "interrupted_later",
    "jvm_exit",
    "last_error_line",
]

OUT_OF_MEMORY: Final = (
    "a JVM ran out of memory: give it more, as by --conf spark.driver.memory=8g, or spark.executor.memory on a cluster"
)

# File descriptor of the unnamed file that has the JVM's error stream; set before the JVM starts.
_said: int | None = None

_ENDS_SECONDS: Final = 10.0
_LOOKED_AT_BYTES: Final = 1 << 16
_NOTHING: Final = (
    "at ",
    "... ",
    "Picked up ",
    "WARNING: Using incubator",
    "Error: Could not create the Java Virtual Machine.",  # the reason is on the line before
    "Error: A fatal exception has occurred.",
)
_LOG_RECORD: Final = re.compile(r"^\d\d:\d\d:\d\d [A-Z]+ ", re.MULTILINE)
_OUT_OF_MEMORY_STATUS: Final = 52  # Spark's SparkExitCode.OOM
_FATAL: Final = "SparkUncaughtExceptionHandler: "


def gateway_to_jvm(conf: SparkConf, *, silent: bool) -> JavaGateway:
    """Return the gateway to this process's JVM. Start the JVM with `conf` unless it runs.

    With `silent` the JVM does not inherit standard output, which it would keep open if it outlives this process. If
    options in `conf` then let it list its classes, their archive is written when this process ends.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway
    global _said
    # The JVM prints warnings (incubator modules, picked-up options) before any log settings apply. They go to a file
    # that is read only if the JVM ends.
    with tempfile.TemporaryFile() as error_file:
        _said = os.dup(error_file.fileno())
        streams = {"stderr": error_file, "stdout": error_file} if silent else {"stderr": error_file}
        with interrupted_later():
            gateway = launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
    classes = class_list(conf.get("spark.driver.extraJavaOptions", ""))
    if silent and classes is not None:
        atexit.register(end_listing, gateway, classes)
    return gateway


def end_listing(gateway: JavaGateway, listed: Path) -> None:
    """End this process's JVM, which lists its classes, and start to write their archive. Takes half a second."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    try:
        java, class_path = map(gateway.jvm.java.lang.System.getProperty, ("java.home", "java.class.path"))
    except (Py4JError, OSError):
        return  # the JVM has ended already: that of a later command will list the classes
    gateway.proc.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        gateway.proc.wait(_ENDS_SECONDS)  # the list is complete only after the JVM has ended
        write_archive(listed, Path(java), class_path)


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Delay a first Ctrl-C or SIGTERM until the block ends; a second signal acts at once.

    If PySpark is interrupted while it waits for its JVM, it removes the folder in which the JVM would write its port.
    The JVM then fails to write it, never checks whether its parent lives, and runs for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    received: list[int] = []
    handlers: dict[int, Any] = {}

    def as_before() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        received.append(number)
        if len(received) > 1:
            as_before()
            signal.raise_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not None:  # None: not installed by Python, which could not put it back
            handlers[number] = signal.signal(number, note)
    try:
        yield
    finally:
        as_before()
        if len(received) == 1:
            signal.raise_signal(received[0])


def end_quietly(context: SparkContext) -> None:
    """Keep PySpark's accumulator thread from printing a traceback after the JVM ended: the next call reports that."""
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is None:  # a private attribute of PySpark, which may go
        return
    report = server.handle_error

    def handle_error(request: object, client: object) -> None:
        if not server.server_shutdown and not isinstance(sys.exception(), EOFError):
            report(request, client)

    server.handle_error = handle_error


def jvm_exit(seconds: float = 2.0) -> str | None:
    """Return how this process's JVM ended; None if it runs, or if another process started it.

    Call this when the JVM did not respond. It waits up to `seconds` for a JVM that is ending.
    """
    from pyspark import SparkContext

    process: subprocess.Popen[bytes] | None = getattr(SparkContext._gateway, "proc", None)
    if process is None:
        return None
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    if status == _OUT_OF_MEMORY_STATUS:
        return OUT_OF_MEMORY
    if status < 0:
        reason = f"its JVM was killed by signal {-status}"
        return f"{reason}, as when the machine runs out of memory" if status == -signal.SIGKILL else reason
    return f"its JVM ended with status {status}: {last_error_line() or 'it printed no error'}"


def last_error_line() -> str:
    """Return the line of the JVM's error stream that says why the JVM ended, else the last useful line, or ''."""
    if _said is None:
        return ""
    size = os.fstat(_said).st_size
    text = os.pread(_said, _LOOKED_AT_BYTES, max(size - _LOOKED_AT_BYTES, 0)).decode(errors="replace")
    fatal = [record for record in _LOG_RECORD.split(text) if record.startswith(_FATAL)]
    lines = [line.strip() for line in (fatal[0] if fatal else text).split("\n")]
    useful = [line for line in lines if line and not line.startswith(_NOTHING)]
    return useful[-1].removeprefix("Caused by: ") if useful else ""
