"""SCRAM credentials: what brokers keep of a user instead of the password (RFC 5802, section 3)."""

from __future__ import annotations

import hashlib
import hmac
import os
from typing import Final, NamedTuple

__all__ = ["SCRAM", "Credential", "Credentials"]

SCRAM: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
"""The mechanisms, with Kafka's numbers."""

_ITERATIONS: Final = 4096  # as Kafka's own


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


class Credentials:
    """All SCRAM credentials of a cluster. Administrators change them while it runs."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Credential]] = {mechanism: {} for mechanism in SCRAM}

    def of(self, mechanism: str) -> dict[str, Credential]:
        """Return the credentials for a mechanism by user."""
        return self._known[mechanism]

    def iterations(self) -> dict[str, dict[str, int]]:
        """Return the number of hash iterations by user and mechanism."""
        found: dict[str, dict[str, int]] = {}
        for mechanism, known in self._known.items():
            for user, credential in known.items():
                found.setdefault(user, {})[mechanism] = credential.iterations
        return found


def _algorithm(mechanism: str) -> str:
    return mechanism.removeprefix("SCRAM-").replace("-", "")
