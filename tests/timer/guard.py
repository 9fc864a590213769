"""Waiting for a thread without waiting for ever, and without timing anything."""

from __future__ import annotations

import threading
from collections.abc import Callable

PATIENCE = 30.0  # seconds: when so long has passed, something hangs


def in_turn(*actions: Callable[[], object]) -> Callable[..., None]:
    """A callback that does one thing after another, whatever it is called with."""

    def callback(*_: object) -> None:
        for action in actions:
            action()

    return callback


def wait_for(event: threading.Event) -> None:
    assert event.wait(PATIENCE), "it did not happen"


def join(thread: threading.Thread) -> None:
    thread.join(PATIENCE)
    assert not thread.is_alive(), "it hangs"


def threads_named(name: str) -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == name]
