"""SCRAM credentials, which brokers keep instead of passwords (RFC 5802, section 3), and delegation tokens."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Final, NamedTuple

__all__ = ["SCRAM", "Credential", "Credentials", "DelegationToken"]

SCRAM: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The mechanisms, with Kafka's numbers."""

_ITERATIONS: Final = 4096  # Kafka's default


class Credential(NamedTuple):
    """One user's credential for one mechanism."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int

    @classmethod
    def of_password(cls, mechanism: str, password: str) -> Credential:
        """Hash a password, with a new salt.

        Without SASLprep, as in Kafka and librdkafka: it maps some passwords to others, and refuses some.
        """
        salt = os.urandom(16)
        salted = hashlib.pbkdf2_hmac(_algorithm(mechanism), password.encode(), salt, _ITERATIONS)
        return cls.of_salted(mechanism, salt, salted, _ITERATIONS)

    @classmethod
    def of_salted(cls, mechanism: str, salt: bytes, salted: bytes, iterations: int) -> Credential:
        """Return the credential of a salted password, as administrators send it."""
        algorithm = _algorithm(mechanism)
        stored = hashlib.new(algorithm, hmac.digest(salted, b"Client Key", algorithm)).digest()
        return cls(salt, stored, hmac.digest(salted, b"Server Key", algorithm), iterations)


class DelegationToken(NamedTuple):
    """A token by which a client authenticates for another (KIP-48). Times are in milliseconds since 1970."""

    id: str
    owner: str
    """A principal: "User:alice"."""
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    """Expiry, unless it is renewed."""
    last_ms: int
    """The latest expiry that it may be renewed to."""
    hmac: bytes
    """The HMAC of the id, which in base64 is the client's password."""

    def __repr__(self) -> str:
        return f"<DelegationToken {self.id} of {self.owner}>"  # without the password

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the token has expired."""
        return min(self.expires_ms, self.last_ms) < now_ms

    def is_renewable_by(self, principal: str) -> bool:
        """Return whether a principal owns it or is one of its renewers."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Return whether a principal has requested it, owns it or may renew it."""
        return principal == self.requester or self.is_renewable_by(principal)


class Credentials:
    """All SCRAM credentials and delegation tokens of a cluster. Both change while it runs."""

    def __init__(self) -> None:
        self.tokens: dict[str, DelegationToken] = {}
        """Delegation tokens by token id."""
        self._known: dict[str, dict[str, Credential]] = {mechanism: {} for mechanism in SCRAM}

    def of(self, mechanism: str) -> dict[str, Credential]:
        """Return the credentials for a mechanism by user."""
        return self._known[mechanism]

    def iterations(self) -> dict[str, dict[str, int]]:
        """Return the number of hash iterations by user and mechanism."""
        counts: dict[str, dict[str, int]] = {}
        for mechanism, credentials in self._known.items():
            for user, credential in credentials.items():
                counts.setdefault(user, {})[mechanism] = credential.iterations
        return counts


def _algorithm(mechanism: str) -> str:
    return mechanism.removeprefix("SCRAM-").replace("-", "")
