"""Measure what clients use of their quotas: a broker's bandwidth and request time, and the controller's mutations.

Kafka: `ClientQuotaManager`, `ClientRequestQuotaManager`, `ControllerMutationQuotaManager`.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from abeyant.broker.errors import ApiError
from abeyant.broker.quotas.rates import Rate, TokenBucket
from abeyant.broker.quotas.table import MUTATION, REQUEST, Limit, QuotaTable
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.settings import Settings

Record = Callable[[int], object]
"""A function that charges a quota for creating or deleting this number of partitions. See `Mutations.record`."""

_IDLE = 3600.0  # seconds after which an unused measure is dropped, as in Kafka

T = TypeVar("T")


class _Recent(Generic[T]):
    """Measures (rates or token buckets) by quota key. A measure that is not used for an hour is dropped."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._known: OrderedDict[tuple[str, ...], tuple[float, T]] = OrderedDict()  # with the last use, oldest first

    def get(self, key: tuple[str, ...], now: float) -> T:
        """Return the measure of `key`, created on first use. O(1), amortized."""
        entry = self._known.pop(key, None)
        while self._known and now - next(iter(self._known.values()))[0] > _IDLE:
            self._known.popitem(last=False)
        measure = self._make() if entry is None else entry[1]
        self._known[key] = now, measure
        return measure


class ClientQuotas:
    """The rates at which one broker's clients use their quotas. Use from the loop's thread only."""

    def __init__(self, table: QuotaTable, settings: Settings, now: Callable[[], float]) -> None:
        self.table = table
        self._now = now
        self._windows: int = settings["quota.window.num"]
        self._window: float = settings["quota.window.size.seconds"]
        self._rates = _Recent(lambda: Rate(self._windows, self._window))

    def charge(self, quota: str, user: str, client_id: str, amount: float) -> float:
        """Record that a client used `amount` of a quota. Return its throttle time in seconds, or 0. O(windows)."""
        limit = self.table.limit(quota, user, client_id)
        if limit is None:
            return 0.0
        now = self._now()
        rate = self._rates.get((quota, *limit.key), now)
        rate.record(now, amount)
        seconds = rate.excess(now, limit.value)
        return min(seconds, self._window) if quota == REQUEST else seconds

    def refund(self, quota: str, user: str, client_id: str, amount: float) -> None:
        """Subtract an `amount` that was recorded for a response which was then not sent."""
        limit = self.table.limit(quota, user, client_id)
        if limit is not None:
            now = self._now()
            self._rates.get((quota, *limit.key), now).record(now, -amount)

    def most(self, quota: str, user: str, client_id: str) -> float:
        """Return the amount above which a single request exceeds the quota; infinity if no quota applies."""
        limit = self.table.limit(quota, user, client_id)
        return math.inf if limit is None else limit.value * (self._windows - 1) * self._window


class MutationQuotas:
    """Token buckets, in the controller, for the partitions that clients create and delete.

    Use from the loop's thread only.
    """

    def __init__(self, table: QuotaTable, settings: Settings, now: Callable[[], float]) -> None:
        self.table = table
        self.now = now
        windows, window = settings["controller.quota.window.num"], settings["controller.quota.window.size.seconds"]
        self._seconds: float = windows * window
        self._buckets = _Recent(TokenBucket)

    def of(self, user: str, client_id: str, *, strict: bool) -> Mutations:
        """Return a `Mutations` for one request. If the quota is exhausted, its `record` raises only if `strict`."""
        return Mutations(self, self.table.limit(MUTATION, user, client_id), strict=strict)

    def bucket(self, limit: Limit) -> tuple[TokenBucket, float]:
        """Return the token bucket of a quota, and its burst in partitions."""
        return self._buckets.get(limit.key, self.now()), limit.value * self._seconds


class Mutations:
    """The partition creations and deletions of one request, charged to its client's quota."""

    def __init__(self, quotas: MutationQuotas, limit: Limit | None, *, strict: bool) -> None:
        self._quotas = quotas
        self._limit = limit
        self._strict = strict
        self.seconds = 0.0
        """Throttle time for the client, in seconds."""

    def record(self, partitions: int) -> None:
        """Charge creating or deleting `partitions` partitions. Raises ApiError if strict and the quota is exhausted."""
        limit = self._limit
        if limit is None:
            return
        bucket, burst = self._quotas.bucket(limit)
        now = self._quotas.now()
        if not self._strict:
            bucket.take(now, limit.value, burst, partitions)
        debt = bucket.debt(now, limit.value, burst)
        if debt:
            self.seconds = debt
            if self._strict:
                raise ApiError(ErrorCode.throttling_quota_exceeded)
        elif self._strict:
            bucket.take(now, limit.value, burst, partitions)
