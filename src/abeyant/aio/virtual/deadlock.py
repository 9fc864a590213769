"""Find out what every task of a loop awaits, for the error that reports a deadlock."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import linecache
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, FrameType, GeneratorType
from typing import Any

from abeyant.errors import AbeyantError

_SHOWN = 50  # tasks in a message
_LONGEST = 160  # characters of a repr

# Frames of these show how a task waits; the innermost frame outside of them shows where.
_LIBRARIES = ("asyncio", "anyio", "abeyant.aio")
_OURS = ("abeyant.aio.virtual.run", "pytest_abeyant")  # frames around the user's coroutine


@dataclass(frozen=True, slots=True)
class WaitingTask:
    """A waiting task, as `DeadlockError` lists it, with a description of what it awaits."""

    task: str
    coroutine: str
    place: str
    """File:line of the await."""
    source: str
    """The source line of the await."""
    awaits: str
    on_tasks: tuple[str, ...]
    """Names of the tasks that this task awaits."""

    def __str__(self) -> str:
        """Return a description of at most four lines."""
        lines = [f"{self.task}, {self.coroutine}", f"  at {self.place}: {self.source}", f"  waits for {self.awaits}"]
        if self.on_tasks:
            lines.append(f"  that is, for {', '.join(self.on_tasks)}")
        return "\n".join(lines)


Waiting = WaitingTask  # its former name


class DeadlockError(AbeyantError, RuntimeError):
    """Nothing can run any more in virtual time. `waiting` and the message list what each task awaits."""

    def __init__(self, reason: str, waiting: Iterable[WaitingTask]) -> None:
        """Create the error. Its message begins with `reason`, and lists up to 50 of the tasks in `waiting`."""
        self.reason = reason
        """The reason why nothing can run, a sentence without a full stop."""
        self.waiting = tuple(waiting)
        """The tasks, and what each awaits."""
        listing = "\n".join(map(str, self.waiting[:_SHOWN]))
        hidden = len(self.waiting) - _SHOWN
        suffix = f"\nand {hidden} tasks more" if hidden > 0 else ""
        count = f"{len(self.waiting)} task{'s wait' if len(self.waiting) != 1 else ' waits'}"
        super().__init__(f"{reason}. {count}{':' if self.waiting else ''}\n{listing}{suffix}".rstrip())

    def __reduce__(self) -> tuple[type[DeadlockError], tuple[str, tuple[WaitingTask, ...]]]:
        return type(self), (self.reason, self.waiting)  # test runners send errors between processes


def all_waiting(
    loop: asyncio.AbstractEventLoop,
    first: asyncio.Task[Any] | None = None,
    tasks: Iterable[asyncio.Task[Any]] | None = None,
) -> list[WaitingTask]:
    """Describe every unfinished task of `loop`, or of `tasks` if given: `first` first, then the other tasks by name."""
    tasks = asyncio.all_tasks(loop) if tasks is None else tasks
    return [_waiting(task) for task in sorted(tasks, key=lambda task: (task is not first, _by_number(task.get_name())))]


def _by_number(name: str) -> list[tuple[int, str]]:
    """Return a sort key that puts Task-9 before Task-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _waiting(task: asyncio.Task[Any]) -> WaitingTask:
    frames = list(_frames(task.get_coro()))
    user_depths = [depth for depth, frame in enumerate(frames) if not _is_library(frame)]
    inner = frames[user_depths[-1] + 1 :] if user_depths else frames
    future = getattr(task, "_fut_waiter", None)
    if not frames:  # a coroutine that is not written in Python
        return WaitingTask(task.get_name(), _short(task.get_coro()), "an unknown place", "", _short(future), ())
    user_frame = frames[user_depths[-1] if user_depths else -1]
    return WaitingTask(
        task=task.get_name(),
        coroutine=_function(frames[user_depths[0] if user_depths else 0]),
        place=_place(user_frame),
        source=linecache.getline(user_frame.f_code.co_filename, user_frame.f_lineno).strip(),
        awaits=_awaited(inner, future),
        on_tasks=tuple(sorted({target.get_name() for target in _tasks_in(inner, future)}, key=_by_number)),
    )


def _frames(step: object) -> Iterator[FrameType]:
    """Yield the frames in which a coroutine is suspended, outermost first."""
    while step is not None:
        if isinstance(step, CoroutineType):
            frame, step = step.cr_frame, step.cr_await
        elif isinstance(step, GeneratorType):
            frame, step = step.gi_frame, step.gi_yieldfrom
        elif isinstance(step, AsyncGeneratorType):
            frame, step = step.ag_frame, step.ag_await
        else:  # the object between a coroutine and an async generator only refers to the latter
            links = (CoroutineType, GeneratorType, AsyncGeneratorType)
            frame, step = None, next((link for link in gc.get_referents(step) if isinstance(link, links)), None)
        if frame is not None and frame.f_globals.get("__name__") not in _OURS:
            yield frame


def _is_library(frame: FrameType) -> bool:
    module = str(frame.f_globals.get("__name__", ""))
    return any(module == library or module.startswith(f"{library}.") for library in _LIBRARIES)


def _function(frame: FrameType) -> str:
    return frame.f_code.co_qualname.replace("<locals>.", "")


def _place(frame: FrameType) -> str:
    path = Path(frame.f_code.co_filename)
    with contextlib.suppress(ValueError, OSError):
        path = path.relative_to(Path.cwd())
    return f"{path}:{frame.f_lineno}"


def _awaited(inner: list[FrameType], future: object) -> str:
    """Describe what a task awaits: the library call in `inner` and its object or future; without a call, `future`."""
    if not inner:
        return "a task" if isinstance(future, asyncio.Task) else _short(future)
    variables = inner[0].f_locals
    if "self" in variables:
        owner = variables["self"]
        return f"{type(owner).__qualname__}.{inner[0].f_code.co_name} of {_short(owner)}"
    call = _function(inner[0])
    if call == "sleep" and "delay" in variables:
        return f"sleep({variables['delay']!r})"
    return f"{call}: {_short(future)}"


def _short(value: object) -> str:
    try:
        text = repr(value)
    except Exception as error:  # noqa: BLE001  (a broken repr must not hide the deadlock)
        text = f"<{type(value).__qualname__}, whose repr raised {error!r}>"
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 4]} ..."


def _tasks_in(inner: list[FrameType], future: Any) -> Iterator[asyncio.Task[Any]]:
    """Yield the unfinished tasks behind a future: itself, or the tasks of `gather`, a task group or `asyncio.wait`."""
    candidates: list[Any] = [future, *getattr(future, "_children", ())]
    for frame in inner:
        variables = frame.f_locals
        candidates += [variables.get("fut"), *_collection(variables.get("fs"))]
        candidates += _collection(getattr(variables.get("self"), "_tasks", None))
    for candidate in candidates:
        if isinstance(candidate, asyncio.Task) and not candidate.done():
            yield candidate


def _collection(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (set, frozenset, list, tuple)) else ()
