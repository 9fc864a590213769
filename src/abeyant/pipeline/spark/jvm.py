"""The JVM that Spark runs in: one a process, started quietly, and asked how it ended when it answers no more.

PySpark keeps its JVM for as long as the process lives: stop a session, and the next one runs in the same.
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
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from py4j.java_gateway import JavaGateway  # type: ignore[import-untyped]
    from pyspark import SparkConf, SparkContext

__all__ = [
    "CLASS_ARCHIVE",
    "OUT_OF_MEMORY",
    "end_quietly",
    "gateway_to_jvm",
    "how_it_ended",
    "interrupted_later",
    "last_words",
    "step_aside",
    "wait_for_end",
]

CLASS_ARCHIVE: Final = "ABEYANT_CLASS_ARCHIVE"
"""The variable that says `off`: no archive of classes; or `wait`: a command waits until its JVM has written it."""

OUT_OF_MEMORY: Final = (
    "a JVM ran out of memory: give it more, as by --conf spark.driver.memory=8g, or spark.executor.memory on a cluster"
)

# The JVM's error stream, a file without a name; set by whoever starts the JVM, before anybody can ask.
_said: int | None = None

_LOWEST: Final = 19  # of priorities: the most nice
_LOOKED_AT_BYTES: Final = 1 << 16
_NOTHING: Final = (
    "at ",
    "... ",
    "Picked up ",
    "WARNING: Using incubator",
    "Error: Could not create the Java Virtual Machine.",  # what is wrong stands before it
    "Error: A fatal exception has occurred.",
)
_LOG_RECORD: Final = re.compile(r"^\d\d:\d\d:\d\d [A-Z]+ ", re.MULTILINE)
_OUT_OF_MEMORY_STATUS: Final = 52  # Spark's SparkExitCode.OOM
_FATAL: Final = "SparkUncaughtExceptionHandler: "


def gateway_to_jvm(conf: SparkConf, *, silent: bool) -> JavaGateway:
    """Return the gateway to this process's JVM, started with `conf` if there is none yet.

    A `silent` one is to be in nobody's way as it ends: it has no standard output, for whose end a reader of this
    process's would wait, and when this process has ended it takes only the time that nobody else wants; unless the
    environment says that this process is to wait for its end, and for the archive of classes that it writes.
    """
    from pyspark import SparkContext
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:
        return SparkContext._gateway
    global _said
    # The JVM greets with warnings of its own (incubator modules, picked-up options) before any log settings
    # apply. They go to a file that nobody sees, unless the JVM ends.
    with tempfile.TemporaryFile() as said:
        _said = os.dup(said.fileno())
        streams = {"stderr": said, "stdout": said} if silent else {"stderr": said}
        with interrupted_later():
            gateway = launch_gateway(conf, popen_kwargs=streams)  # type: ignore[no-untyped-call]
    if silent and os.environ.get(CLASS_ARCHIVE) == "wait":
        atexit.register(wait_for_end, gateway.proc)
    elif silent:
        atexit.register(step_aside, gateway.proc.pid)
    return gateway


@contextmanager
def interrupted_later() -> Iterator[None]:
    """Let a first Ctrl-C or SIGTERM wait for the end of the block; a second does not.

    PySpark, interrupted while it waits for its JVM, removes the folder in which the JVM would say where it listens. The
    JVM then fails to say so, never comes to look whether its parent lives, and stays for ever.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are the main thread's
        return
    asked: list[int] = []
    before: dict[int, Any] = {}

    def as_before() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def note(number: int, frame: object) -> None:
        asked.append(number)
        if len(asked) > 1:
            as_before()
            signal.raise_signal(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not None:  # None: not installed by Python, which could not put it back
            before[number] = signal.signal(number, note)
    try:
        yield
    finally:
        as_before()
        if len(asked) == 1:
            signal.raise_signal(asked[0])


def end_quietly(context: SparkContext) -> None:
    """Let PySpark's thread for accumulators end without a traceback when the JVM is gone: the next call says so."""
    server: Any = getattr(context, "_accumulatorServer", None)
    if server is None:  # PySpark promises nothing of what it keeps there
        return
    report = server.handle_error

    def handle_error(request: object, client: object) -> None:
        if not server.server_shutdown and not isinstance(sys.exception(), EOFError):
            report(request, client)

    server.handle_error = handle_error


def wait_for_end(process: subprocess.Popen[bytes]) -> None:
    """Close what the process reads, at which PySpark's JVM ends, and wait for it: half a minute where it writes."""
    if process.stdin is not None:
        process.stdin.close()
    process.wait()


def step_aside(process: int) -> None:
    """Give a process the lowest priority, all threads of it; on Linux, where a thread has its own."""
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            os.setpriority(os.PRIO_PROCESS, int(thread), _LOWEST)


def how_it_ended(seconds: float = 2.0) -> str | None:
    """Say how this process's JVM ended; None while it runs, and where another started it.

    To be asked when it did not answer: waits so long for the end of a process that is just ending.
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
        by = f"its JVM was killed by signal {-status}"
        return f"{by}, as when the machine runs out of memory" if status == -signal.SIGKILL else by
    return f"its JVM ended with status {status}: {last_words() or 'it said nothing'}"


def last_words() -> str:
    """Return the line that says why the JVM ended, of what it wrote on its error stream; or its last line."""
    if _said is None:
        return ""
    size = os.fstat(_said).st_size
    text = os.pread(_said, _LOOKED_AT_BYTES, max(size - _LOOKED_AT_BYTES, 0)).decode(errors="replace")
    fatal = [record for record in _LOG_RECORD.split(text) if record.startswith(_FATAL)]
    lines = [line.strip() for line in (fatal[0] if fatal else text).split("\n")]
    told = [line for line in lines if line and not line.startswith(_NOTHING)]
    return told[-1].removeprefix("Caused by: ") if told else ""
