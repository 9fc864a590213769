"""Create, renew and expire delegation tokens (KIP-48). Kafka: `DelegationTokenControlManager`."""

from __future__ import annotations

import hmac
import uuid
from base64 import urlsafe_b64encode
from typing import TYPE_CHECKING, Final

from abeyant.broker.clock import until_scan
from abeyant.broker.errors import ApiError
from abeyant.broker.security.credentials import DelegationToken
from abeyant.broker.wire.schema import ErrorCode
from abeyant.timer import TimerTask

if TYPE_CHECKING:
    from abeyant.broker.clock import Clock
    from abeyant.broker.metadata_store import MetadataStore
    from abeyant.broker.security.credentials import Credentials
    from abeyant.broker.settings import Settings

_LATEST_MS: Final = 253_402_300_799_000  # the end of the year 9999, the last that all clients know


class DelegationTokens:
    """The delegation tokens of a cluster. Use from the loop's thread only.

    HMACs are not stored, but computed from `delegation.token.secret.key`. So tokens become invalid if brokers get
    another secret or none, as in Kafka.
    """

    def __init__(self, credentials: Credentials, settings: Settings, store: MetadataStore, clock: Clock) -> None:
        """Read the stored tokens into `credentials`."""
        secret: str | None = settings["delegation.token.secret.key"]
        self._secret = secret.encode() if secret else None  # an empty one is none, as in Kafka
        self._known = credentials.tokens
        self._store = store
        self._clock = clock
        self._longest_ms: int = settings["delegation.token.max.lifetime.ms"]
        self._renewal_ms: int = settings["delegation.token.expiry.time.ms"]
        self._scan_ms: int = settings["delegation.token.expiry.check.interval.ms"]
        self._started_ms = clock.now_ms()
        self._task: TimerTask | None = None
        if self._secret is not None:
            for token in store.tokens():
                self._known[token.id] = token._replace(hmac=_hmac(self._secret, token.id))
        self._schedule()

    @property
    def enabled(self) -> bool:
        """Return whether tokens can be used, which needs `delegation.token.secret.key`."""
        return self._secret is not None

    def all(self) -> list[DelegationToken]:
        """Return all tokens, including tokens that have expired since the last scan."""
        return list(self._known.values())

    def create(self, requester: str, owner: str, renewers: tuple[str, ...], longest_ms: int) -> DelegationToken:
        """Create a token that can be renewed for `longest_ms` (0 or less: the default). Raises ApiError."""
        if self._secret is None:
            raise ApiError(ErrorCode.delegation_token_auth_disabled)
        now_ms = self._clock.now_ms()
        longest_ms = min(longest_ms, self._longest_ms) if longest_ms > 0 else self._longest_ms
        last_ms = min(now_ms + longest_ms, _LATEST_MS)
        number = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")  # in Kafka's form of ids
        token = DelegationToken(
            number, owner, requester, renewers, now_ms, min(last_ms, now_ms + self._renewal_ms), last_ms,
            _hmac(self._secret, number),
        )  # fmt: skip
        self._put(token)
        return token

    def renew(self, requester: str, key: bytes, period_ms: int) -> int:
        """Renew a token for `period_ms` (0 or less: the default). `key` is the token's HMAC. Raises ApiError.

        Return the new expiry in ms since 1970.
        """
        token = self._usable(requester, key)
        period_ms = min(period_ms, self._renewal_ms) if period_ms > 0 else self._renewal_ms
        return self._set_expiry(token, period_ms)

    def expire(self, requester: str, key: bytes, period_ms: int) -> int:
        """Make a token expire in `period_ms`; if negative, remove the token now. Raises ApiError.

        Return the expiry in ms since 1970.
        """
        token = self._usable(requester, key)
        if period_ms >= 0:
            return self._set_expiry(token, period_ms)
        self._remove(token)
        self._schedule()
        return self._clock.now_ms()

    def close(self) -> None:
        """Cancel the next scan for expired tokens."""
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _usable(self, requester: str, key: bytes) -> DelegationToken:
        """Return the token with the HMAC `key`. Raises ApiError unless it exists and the requester may change it."""
        if self._secret is None:
            raise ApiError(ErrorCode.delegation_token_auth_disabled)
        token = next((one for one in self._known.values() if hmac.compare_digest(one.hmac, key)), None)
        if token is None:
            raise ApiError(ErrorCode.delegation_token_not_found)
        if token.is_expired(self._clock.now_ms()):
            raise ApiError(ErrorCode.delegation_token_expired)
        if not token.is_renewable_by(requester):
            raise ApiError(ErrorCode.delegation_token_owner_mismatch)
        return token

    def _set_expiry(self, token: DelegationToken, period_ms: int) -> int:
        token = token._replace(expires_ms=min(token.last_ms, self._clock.now_ms() + period_ms))
        self._put(token)
        return token.expires_ms

    def _put(self, token: DelegationToken) -> None:
        self._store.put_token(token.id, token)
        self._known[token.id] = token
        self._schedule()

    def _remove(self, token: DelegationToken) -> None:
        self._store.put_token(token.id, None)
        del self._known[token.id]

    def _schedule(self) -> None:
        """Schedule `_remove_expired` at the first of Kafka's scans that would find an expired token."""
        self.close()
        if self._known:
            due_ms = min(min(one.expires_ms, one.last_ms) for one in self._known.values())
            delay = until_scan(self._started_ms, self._scan_ms, due_ms, self._clock.now_ms())
            self._task = self._clock.timer.call_later(delay, self._remove_expired)

    def _remove_expired(self) -> None:
        self._task = None
        now_ms = self._clock.now_ms()
        try:
            for token in self.all():
                if token.is_expired(now_ms):
                    self._remove(token)
        finally:  # a disk may be full; the next scan tries again
            self._schedule()


def _hmac(secret: bytes, number: str) -> bytes:
    return hmac.digest(secret, number.encode(), "sha512")
