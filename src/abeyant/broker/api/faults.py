"""Fault injection: fail, delay, throttle or drop requests, or drop their responses.

Faults change timing and availability only (K11): a request is handled in full or not at all, and no log is modified.
A `Fault` is active until it has fired `times` times, until `end`, or until its `with` block ends.

Faults are applied in the loop's thread. A cluster has a gate, which checks each request, only while faults are active.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from itertools import count
from types import TracebackType
from typing import Any, Self

from abeyant.broker.api.base import BaseCluster
from abeyant.broker.api.target import NearMiss, Target
from abeyant.broker.delayed.operation import BrokerOperation, Waiting
from abeyant.broker.requests.common.named import REPLICA_FETCH, keys_of, name_of
from abeyant.broker.wire.schema import ErrorCode
from abeyant.errors import AbeyantError, did_you_mean

_CENTURY = 100 * 365 * 86_400  # seconds: no timer waits for longer
_LONGEST_THROTTLE = 2_000_000  # seconds: the field has milliseconds in 32 bits
_NEVER_THROTTLED = (REPLICA_FETCH, "SaslAuthenticate", "SaslHandshake", "WriteTxnMarkers")
_MISSES = 16  # kinds of near misses that a fault keeps


class HeldRequest(BrokerOperation):
    """A request that a fault delays, in the Held purgatory of its broker. Its kind is the API's name, as in faults."""

    __slots__ = ("_handle", "_keys", "kind")

    def __init__(
        self,
        kind: str,
        seconds: float,
        keys: tuple[tuple[str, int | str], ...],
        client_id: str,
        since: float,
        handle: Callable[[], object],
    ) -> None:
        """Call `handle` once, `seconds` after `since`. `keys()` returns `keys`."""
        super().__init__(seconds, client_id, since)
        self.kind = kind
        self._keys = keys
        self._handle = handle

    def keys(self) -> Iterable[tuple[str, int | str]]:
        """Return the topics and partitions, or the group and member, that the request names."""
        return self._keys

    def describe(self, broker: int) -> Waiting:
        """Return the request's row in `Cluster.waiting`, with `held_by` "delay"."""
        return super().describe(broker)._replace(held_by="delay")

    def try_complete(self) -> bool:
        """Return False: a delayed request ends at its deadline only."""
        return False

    def on_complete(self) -> None:
        """Handle the request."""
        self._handle()


class Fault:
    """A fault, returned by `Cluster.fail`, `delay`, `throttle`, `drop` or `observe`. Its `with` block ends it.

    The plan of a simulation has `PlannedFault`s instead.
    """

    def __init__(
        self,
        faults: Faults,
        target: Target,
        what: str,
        act: Callable[[Any], None] | None,
        times: int | None,
        nth: int,
    ) -> None:
        """Not for users. `act` is called with each request that the fault hits; None only counts these requests."""
        if times is not None and (type(times) is not int or times < 1):
            raise AbeyantError(f"times must be 1 or more, or None for no limit, not {times!r}")
        if type(nth) is not int or nth < 1:
            raise AbeyantError(f"nth must be 1 or more, not {nth!r}: it is the first matching request to fire for")
        self.target = target
        self.matched = 0
        """The number of requests that have matched so far; the fault hits them from the `nth` on."""
        self.hits = 0
        """The number of requests that the fault has hit so far."""
        self.times = times
        self.nth = nth
        self.what = what
        self.id = next(faults.ids)
        self._faults = faults
        self._act = act
        self._misses: dict[tuple[str, str, str], NearMiss] = {}
        self._awaited: list[tuple[int, Future[int]]] = []

    @property
    def active(self) -> bool:
        """Return whether the fault still applies to requests."""
        return self in self._faults.active

    def near_misses(self) -> list[NearMiss]:
        """Return counts of the requests that matched all selectors but one, by mismatch, most frequent first."""
        return self._faults.cluster._settled(self._ranked)

    def wait(self, hits: int = 1, *, timeout: float = 10.0) -> int:
        """Block until the fault has hit `hits` requests in all, and return the number of hits so far.

        Raises TimeoutError after `timeout` seconds of real time, and AbeyantError at once if the fault ends or has
        ended with fewer hits, if the cluster closes, or if called in an event loop. The messages of these errors name
        the most frequent near miss.
        """
        if type(hits) is not int or hits < 1:
            raise AbeyantError(f"hits must be 1 or more, not {hits!r}")
        if not _is_number(timeout) or not 0 <= timeout < _CENTURY:
            raise AbeyantError(f"timeout must be 0 seconds or more, and finite, not {timeout!r}")
        if asyncio._get_running_loop() is not None:
            raise AbeyantError("wait blocks, so it cannot be called in an event loop: read the fault's hits instead")
        if self.times is not None and hits > self.times:
            raise AbeyantError(f"hits must be {self.times} (the fault's times) or less, not {hits}: raise times")
        future: Future[int] = Future()
        awaited = hits, future
        cluster = self._faults.cluster
        cluster._settled(self._await, awaited)
        try:
            hit = future.result(timeout)
        except FutureTimeoutError:
            raise TimeoutError(
                f"the fault has too few hits after {timeout:g} s: {cluster._settled(self._so_far, hits)}"
            ) from None
        finally:
            if awaited in self._awaited:
                cluster._on_loop(self._remove_awaited, awaited)
        if hit < hits:
            raise AbeyantError(f"the fault has ended with too few hits: {cluster._settled(self._so_far, hits)}")
        return hit

    def _await(self, awaited: tuple[int, Future[int]]) -> None:
        self._awaited.append(awaited)
        self._check_awaited()

    def _remove_awaited(self, awaited: tuple[int, Future[int]]) -> None:
        if awaited in self._awaited:
            self._awaited.remove(awaited)

    def _check_awaited(self) -> None:
        for hits, future in list(self._awaited):
            if self.hits >= hits or not self.active:
                self._awaited.remove((hits, future))
                future.set_result(self.hits)

    def _end_waits(self) -> None:
        """End the blocked calls of `wait` with an AbeyantError, as the cluster closes."""
        awaited, self._awaited = self._awaited, []
        for hits, future in awaited:
            future.set_exception(AbeyantError(f"the cluster was closed: {self._so_far(hits)}"))

    def _so_far(self, hits: int) -> str:
        nearest = "".join(f"; {miss}" for miss in self._ranked()[:1])
        return f"{self.hits} of {hits} hits of {self!r}{nearest}"

    def _ranked(self) -> list[NearMiss]:
        return sorted(self._misses.values(), key=lambda miss: -miss.requests)

    def end(self) -> None:
        """End the fault. A second call does nothing. Requests that it delayed are still handled after their delay."""
        self._faults.cluster._settled(self._end)

    def _end(self) -> None:
        self._faults.remove(self)
        self._check_awaited()

    def _strike(self, call: Any) -> bool:
        """Hit the request if the target selects it. Return whether the fault took it over. In the loop's thread."""
        mismatches = self.target.mismatches(call)
        if mismatches:
            if len(mismatches) == 1:
                self._note(self.target.near_miss(call, mismatches[0]))
            return False
        self.matched += 1
        if self.matched < self.nth:
            return False
        self.hits += 1
        if self.hits == self.times:
            self._faults.remove(self)
        if self._act is not None:
            self._act(call)
        self._check_awaited()
        return self._act is not None

    def _note(self, miss: NearMiss | None) -> None:
        if miss is None:
            return
        kind = miss.selector, miss.found, miss.api
        previous = self._misses.get(kind)
        if previous is not None:
            self._misses[kind] = previous._replace(requests=previous.requests + 1)
        elif len(self._misses) < _MISSES:
            self._misses[kind] = miss

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def __repr__(self) -> str:
        progress = "" if self.times is None else f", {self.hits} of {self.times} times"
        return f"<Fault: {self.what} {self.target!r}{progress}{'' if self.active else ', ended'}>"


class Faults:
    """The active faults of a cluster, and its gate while any are active. The first matching fault handles a request."""

    def __init__(self, cluster: BaseCluster) -> None:
        self.cluster = cluster
        self.active: list[Fault] = []
        self.ids = count(1)

    def __call__(self, call: Any) -> bool:
        """Apply the first matching fault to a request. Return whether the fault took it over; observers never do."""
        for fault in list(self.active):
            if fault._strike(call):
                if self.cluster._awaited:
                    self.cluster._check_awaited()
                return True
        return False

    def fail(self, target: Target, error: str, times: int | None, nth: int) -> Fault:
        """Add a fault that responds to requests with an error and does not handle them."""
        code = error_code(error)
        fault = Fault(self, target, f"{code.name.upper()} for", lambda call: call.refuse(code), times, nth)
        if code is ErrorCode.none:
            raise AbeyantError("NONE is not an error: name an error, or use drop() to lose requests")
        return self._add(fault)

    def delay(self, target: Target, seconds: float, times: int | None, nth: int) -> Fault:
        """Add a fault that handles requests `seconds` later, on the cluster's clock."""
        if not _is_number(seconds) or not 0 < seconds < _CENTURY:
            raise AbeyantError(f"seconds must be more than 0, and less than a century, not {seconds!r}")

        def later(call: Any) -> None:
            broker = call.broker
            request = HeldRequest(
                name_of(call), seconds, keys_of(call), call.client_id, broker.now(), lambda: broker.handle(call)
            )
            broker.held_purgatory.try_complete_else_watch(request, [request])

        return self._add(Fault(self, target, f"delayed by {seconds:g} s:", later, times, nth))

    def throttle(self, target: Target, seconds: float, times: int | None, nth: int) -> Fault:
        """Add a fault that responds as if a quota were exceeded: with a throttle time, and the connection muted."""
        if not _is_number(seconds) or not 0.001 <= seconds <= _LONGEST_THROTTLE:
            raise AbeyantError(f"seconds must be from 0.001 to {_LONGEST_THROTTLE:,}, not {seconds!r}")
        if target.api in _NEVER_THROTTLED:
            raise AbeyantError(f"{target.api} is never throttled: name an API of clients, other than those of SASL")

        def slow(call: Any) -> None:
            call.throttle(seconds, "fault")
            call.broker.handle(call)

        return self._add(Fault(self, target.of_clients(), f"throttled by {seconds:g} s:", slow, times, nth))

    def drop(self, target: Target, response: bool, times: int | None, nth: int) -> Fault:
        """Add a fault that closes the connection, or with `response` handles the request and loses its response."""
        if response and target.api == REPLICA_FETCH:
            raise AbeyantError("a follower's fetch cannot be handled without its response: leave response out")

        def lose(call: Any) -> None:
            if response and name_of(call) != REPLICA_FETCH:
                call.lose_answer()
                call.broker.handle(call)
            else:
                call.drop()

        return self._add(Fault(self, target, "response dropped:" if response else "lost:", lose, times, nth))

    def observe(self, target: Target, times: int | None, nth: int) -> Fault:
        """Add an observer, which counts requests and does not change them."""
        return self._add(Fault(self, target, "counted:", None, times, nth))

    def remove(self, fault: Fault) -> None:
        """End a fault. In the loop's thread."""
        if fault in self.active:
            self.active.remove(fault)
        if not self.active:
            self.cluster._gate = None

    def _add(self, fault: Fault) -> Fault:
        def add() -> None:
            fault.target.check(self.cluster)
            self.active.append(fault)
            self.cluster._gate = self

        self.cluster._settled(add)
        return fault


def error_code(name: str) -> ErrorCode:
    """Return Kafka's error by its name, in upper or lower case. Raises AbeyantError that suggests the nearest name."""
    code = ErrorCode.__members__.get(str(name).lower())
    if code is None:
        names = [error.name.upper() for error in ErrorCode if error is not ErrorCode.none]
        hint = did_you_mean(str(name).upper(), names) or ": take one of Kafka's names, for instance REQUEST_TIMED_OUT"
        raise AbeyantError(f"there is no error {name!r}{hint}")
    return code


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
