"""Load the keys that verify signed tokens: once from a file, or from a server with refreshes.

Kafka: `JwksFileVerificationKeyResolver`, `RefreshingHttpsJwks`. Only the first load blocks. A refresh runs in a thread
of its own; until the refresh ends, tokens are checked with the previous keys.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from abeyant.broker.security.jwk import Key, read_keys
from abeyant.errors import AbeyantError
from abeyant.reporting import logger

__all__ = ["URL", "Keys", "keys_of"]

URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
_PATIENCE: Final = 10.0  # seconds of real time, the time-out of the server
_MOST_BYTES: Final = 1 << 20
_MISSING_MS: Final = 60_000  # after which an unknown key id may cause another refresh, as in Kafka
_MOST_MISSING: Final = 16  # unknown key ids that are remembered
_LONGEST_ID: Final = 1000  # characters

KeySet = dict[str | None, Key]


class Keys:
    """The keys in a file, loaded once."""

    def __init__(self, keys: KeySet) -> None:
        self.keys = keys

    def key(self, number: object, now_ms: int) -> Key | None:
        """Return the key for a token with the key id `number` (None: without an id); None if there is no such key.

        If there is only one key, it also matches if it or the token has no id. `now_ms` is milliseconds since 1970.
        """
        if number is not None and not isinstance(number, str):
            return None
        key = self.keys.get(number)
        if key is None and len(self.keys) == 1 and (number is None or None in self.keys):
            [key] = self.keys.values()
        return key


class _ServedKeys(Keys):
    """The keys that a server has, loaded at the start and again with each refresh."""

    def __init__(self, fetch: Callable[[], KeySet], values: Callable[[str], Any]) -> None:
        super().__init__(fetch())
        self._fetch = fetch
        self._refresh_ms: int = values("sasl.oauthbearer.jwks.endpoint.refresh.ms")
        self._backoff_ms: int = values("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms")
        self._longest_backoff_ms: int = values("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms")
        self._next_ms: int | None = None  # when to refresh
        self._failures = 0
        self._missing: OrderedDict[str, int] = OrderedDict()  # by id, when it may cause a refresh again
        self._thread: threading.Thread | None = None

    def key(self, number: object, now_ms: int) -> Key | None:
        """Return the key as `Keys.key` does. If a refresh is due or the id is unknown, refresh for later tokens."""
        key = super().key(number, now_ms)
        if self._next_ms is None:
            self._next_ms = now_ms + self._refresh_ms
        is_unknown = key is None and isinstance(number, str) and self._is_newly_missing(number, now_ms)
        if (is_unknown or now_ms >= self._next_ms) and (self._thread is None or not self._thread.is_alive()):
            wait = min(self._backoff_ms << min(self._failures, 20), self._longest_backoff_ms)
            self._next_ms = now_ms + (wait if self._failures else self._refresh_ms)
            self._thread = threading.Thread(target=self._refresh, args=(now_ms,), name="abeyant-jwks", daemon=True)
            self._thread.start()
        return key

    def _is_newly_missing(self, number: str, now_ms: int) -> bool:
        if len(number) > _LONGEST_ID or now_ms < self._missing.get(number, now_ms):
            return False
        self._missing[number] = now_ms + _MISSING_MS
        if len(self._missing) > _MOST_MISSING:
            self._missing.popitem(last=False)
        return True

    def _refresh(self, now_ms: int) -> None:
        try:
            self.keys = self._fetch()
        except AbeyantError as error:
            self._failures += 1
            self._next_ms = now_ms + min(self._backoff_ms << min(self._failures, 20), self._longest_backoff_ms)
            logger("broker").warning("%s; tokens are checked with the previous keys", error)
        else:
            self._failures = 0
            self._next_ms = now_ms + self._refresh_ms


def keys_of(url: str, values: Callable[[str], Any], options: Mapping[str, str]) -> Keys:
    """Return the keys at a file, http or https URL. `options` are the login module's options.

    Raises AbeyantError for a URL of another kind, and for keys that cannot be read.
    """
    try:
        parts = urlsplit(url)
        if parts.scheme == "file":
            return Keys(read_keys(Path(unquote(parts.path)).read_text("utf-8")))
    except (OSError, ValueError) as error:
        raise _unusable(url, error) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise AbeyantError(f"{URL}: {url!r} is not valid: give file:///path/of/jwks.json, or an http or https URL")
    return _ServedKeys(lambda: _fetch_keys(url, options.get("ssl.truststore.location")), values)


def _fetch_keys(url: str, authorities: str | None) -> KeySet:
    """Request the keys from a server and return them. Raises AbeyantError."""
    import http.client
    import ssl
    import urllib.request

    try:
        context = ssl.create_default_context(cafile=authorities) if url.startswith("https:") else None
        with urllib.request.urlopen(url, timeout=_PATIENCE, context=context) as response:
            data: bytes = response.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise ValueError(f"the response has more than {_MOST_BYTES} bytes")
        return read_keys(data.decode("utf-8"))
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise _unusable(url, error) from None


def _unusable(url: str, error: Exception) -> AbeyantError:
    return AbeyantError(f"{URL}: cannot use {url}: {error}; the URL must be of a JSON Web Key Set")
