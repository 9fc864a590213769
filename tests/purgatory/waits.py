"""An operation for tests: it notes what is called, and does what the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

from abeyant.purgatory import DelayedOperation, Purgatory
from abeyant.purgatory.ports import ReentrantLock

Hook = Callable[["Wait"], object]


class Wait(DelayedOperation):
    """Complete once `ready` is set. `calls` has a word for each call of its code, in order.

    `on_try` and its like run inside the call; a hook that sets `ready` after the look has changed the world
    too late for that look, as another thread may.
    """

    def __init__(
        self,
        timeout: float | timedelta = 10.0,
        *,
        name: str = "wait",
        ready: bool = False,
        lock: ReentrantLock | None = None,
        on_try: Hook | None = None,
        at_completion: Hook | None = None,
        at_expiration: Hook | None = None,
    ) -> None:
        super().__init__(timeout, lock=lock)
        self.name = name
        self.ready = ready
        self.calls: list[str] = []
        self.on_try = on_try
        self.at_completion = at_completion
        self.at_expiration = at_expiration

    def try_complete(self) -> bool:
        self.calls.append("try")
        ready = self.ready
        if self.on_try is not None:
            self.on_try(self)
        return ready and self.force_complete()

    def on_complete(self) -> None:
        self.calls.append("complete")
        if self.at_completion is not None:
            self.at_completion(self)

    def on_expiration(self) -> None:
        self.calls.append("expire")
        if self.at_expiration is not None:
            self.at_expiration(self)

    @property
    def ends(self) -> list[str]:
        """The calls but for the tries."""
        return [call for call in self.calls if call != "try"]


def raising(kind: type[BaseException], *args: object) -> Hook:
    """A hook that raises a new exception at each call."""

    def hook(operation: Wait) -> object:
        raise kind(*args)

    return hook


def in_thread(action: Callable[[], object], seconds: float = 10.0) -> None:
    """Run it in another thread, to its end; fail where it hangs or raises."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            action()
        except BaseException as error:  # noqa: BLE001  raised again below
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), f"still at it after {seconds} s: a lock is held"
    if raised:
        raise raised[0]


def assert_lists_free(purgatory: Purgatory[Wait]) -> None:
    """Nobody holds the purgatory's lock: another thread can use its lists right now."""
    in_thread(purgatory.stats)
