"""The public purgatory. Its compiled implementation is in room.py."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, Self

from abeyant.purgatory.operation import DelayedOperation
from abeyant.purgatory.room import Room

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # for type checkers, which bring it: one with a default came with Python 3.13

    from abeyant.purgatory.ports import Timer

    OperationT = TypeVar("OperationT", bound=DelayedOperation, default=DelayedOperation)
else:
    from typing import TypeVar

    OperationT = TypeVar("OperationT", bound=DelayedOperation)


class Purgatory(Room, Generic[OperationT]):
    """Keeps delayed operations until they complete or expire, like Kafka's `DelayedOperationPurgatory`.

    Submit with `try_complete_else_watch`. After a change that may complete operations on a key, call
    `check_and_complete(key)`. Both are safe from any thread and from inside operations. A purgatory has no thread:
    expiry runs where the timer runs its callbacks, and one timer serves any number of purgatories.

    Hold no locks of your own when you call `check_and_complete`, except the operations' own shared lock. The call
    waits for the lock of each operation on the key, whose `try_complete` may be waiting for a lock of yours.

    Errors of an operation's code that occur in the submitter's own call reach the submitter. All other errors are
    passed to `on_error(error, operation)`, or else logged ("abeyant.purgatory"). An operation whose `try_complete`
    raises stays watched and timed.

    Close the purgatory before its timer: once the timer is closed, nothing expires.

    Examples:
        >>> class Delivery(DelayedOperation):
        ...     def try_complete(self):
        ...         return "parcel" in arrived and self.force_complete()
        ...     def on_complete(self):
        ...         print(self.outcome)
        >>> arrived, timer = set(), ManualTimer()
        >>> purgatory = Purgatory("deliveries", timer)
        >>> purgatory.try_complete_else_watch(Delivery(timeout=60.0), ["parcel"])
        False
        >>> arrived.add("parcel")
        >>> purgatory.check_and_complete("parcel")
        completed
        1
    """

    if TYPE_CHECKING:  # signatures only: Room has the implementation

        def __init__(
            self,
            name: str,
            timer: Timer,
            *,
            on_error: Callable[[Exception, OperationT], object] | None = None,
        ) -> None: ...

        def try_complete_else_watch(self, operation: OperationT, keys: Iterable[Hashable]) -> bool:  # noqa: D102
            ...

        def pending(self) -> list[OperationT]:  # noqa: D102
            ...

    def cancel(self, operation: OperationT) -> bool:
        """Cancel `operation`. Return True exactly when it was pending here. O(its keys).

        The operation leaves its keys and the timer. None of its code runs. It is not completed: the caller may
        complete it with `force_complete`, once.
        """
        return self._cancel(operation)

    def cancel_for_key(self, key: Hashable) -> list[OperationT]:
        """Cancel the operations that wait on `key`, and return them in order of arrival.

        For when the key goes away, such as a partition that moves to another broker: complete each with
        `force_complete()`, or drop it. The operations leave their other keys and the timer too. (Kafka:
        `cancelForKey`.)
        """
        return self._cancel_for_key(key)

    def close(self, how: Literal["expire", "cancel"] = "expire") -> list[OperationT]:
        """Refuse new operations and end the pending ones. Return the operations that this call ended. O(pending).

        "expire" ends each operation as if its deadline had passed, `on_complete` and `on_expiration` included,
        in this call: no client is left waiting for a response. "cancel" cancels each as `cancel` does, and none
        of their code runs. A second call returns an empty list. The timer stays open.
        """
        if how not in ("expire", "cancel"):
            raise ValueError(f'how must be "expire" or "cancel", not {how!r}')
        return self._close(how == "expire")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
