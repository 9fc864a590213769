"""SCRAM credentials, which brokers keep instead of passwords (RFC 5802, section 3), and delegation tokens."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Final, NamedTuple

__all__ = ["SCRAM", "Credential", "Credentials", "DelegationToken"]

SCRAM: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The SCRAM mechanisms, and their numbers in Kafka's protocol."""

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

        SASLprep, which would change some passwords and refuse others, is not applied, as in Kafka and librdkafka.
        """
        salt = os.urandom(16)
        salted = hashlib.pbkdf2_hmac(_algorithm(mechanism), password.encode(), salt, _ITERATIONS)
        return cls.of_salted(mechanism, salt, salted, _ITERATIONS)

    @classmethod
    def of_salted(cls, mechanism: str, salt: bytes, salted: bytes, iterations: int) -> Credential:
        """Return the credential for a salted password, which administrators send instead of the password."""
        algorithm = _algorithm(mechanism)
        stored = hashlib.new(algorithm, hmac.digest(salted, b"Client Key", algorithm)).digest()
        return cls(salt, stored, hmac.digest(salted, b"Server Key", algorithm), iterations)


class DelegationToken(NamedTuple):
    """A token with which a client authenticates as its owner (KIP-48). Times are in milliseconds since 1970."""

    id: str
    owner: str
    """The principal as which a client authenticates: "User:alice"."""
    requester: str
    renewers: tuple[str, ...]
    issued_ms: int
    expires_ms: int
    """Expiry, unless the token is renewed."""
    last_ms: int
    """The latest expiry to which the token may be renewed."""
    hmac: bytes
    """The HMAC of the id. In base64 this is the client's password."""

    def __repr__(self) -> str:
        return f"<DelegationToken {self.id} of {self.owner}>"  # without the password

    def is_expired(self, now_ms: int) -> bool:
        """Return whether the token has expired."""
        return min(self.expires_ms, self.last_ms) < now_ms

    def is_renewable_by(self, principal: str) -> bool:
        """Return whether a principal owns the token or is one of its renewers."""
        return principal == self.owner or principal in self.renewers

    def concerns(self, principal: str) -> bool:
        """Return whether a principal has requested the token, owns it or may renew it."""
        return principal == self.requester or self.is_renewable_by(principal)


class Credentials:
    """All SCRAM credentials and delegation tokens of a cluster. Both may change while the cluster runs."""

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
