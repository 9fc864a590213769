"""Change the SCRAM credentials of users. Kafka: `ScramControlManager`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from abeyant.broker.errors import ApiError
from abeyant.broker.security.credentials import SCRAM, Credential
from abeyant.broker.wire.schema import ErrorCode

if TYPE_CHECKING:
    from abeyant.broker.metadata_store import MetadataStore
    from abeyant.broker.security.credentials import Credentials

_LEAST, _MOST = 4096, 16_384  # iterations, as in Kafka
_NAMES: Final = {number: name for name, number in SCRAM.items()}


class ScramUsers:
    """The SCRAM credentials of a cluster, in memory and in the store. Use from the loop's thread only."""

    def __init__(self, credentials: Credentials, store: MetadataStore) -> None:
        """Read the stored credentials into `credentials`."""
        self.credentials = credentials
        self._store = store
        for mechanism, user, credential in store.credentials():
            credentials.of(mechanism)[user] = credential

    def alter(self, deletions: Iterable[Any], upsertions: Iterable[Any]) -> dict[str, ApiError | None]:
        """Delete, add and replace credentials. Return each user's error, or None. Errors do not affect other users."""
        changes: dict[str, tuple[str, Credential | None]] = {}
        errors: dict[str, ApiError | None] = {}
        for alteration, removes in (
            *((alteration, True) for alteration in deletions),
            *((alteration, False) for alteration in upsertions),
        ):
            if alteration.name in errors:
                continue
            try:
                if changes.pop(alteration.name, None) is not None:
                    text = "A user credential cannot be altered twice in the same request"
                    raise ApiError(ErrorCode.duplicate_resource, text)
                changes[alteration.name] = self._deletion(alteration) if removes else self._upsertion(alteration)
            except ApiError as error:
                errors[alteration.name] = error
        for user, (mechanism, credential) in changes.items():
            self._store.put_credential(mechanism, user, credential)
            credentials = self.credentials.of(mechanism)
            if credential is None:
                del credentials[user]
            else:
                credentials[user] = credential
            errors[user] = None
        return errors

    def _deletion(self, deletion: Any) -> tuple[str, None]:
        mechanism = _mechanism(deletion)
        if deletion.name not in self.credentials.of(mechanism):
            text = "Attempt to delete a user credential that does not exist"
            raise ApiError(ErrorCode.resource_not_found, text)
        return mechanism, None

    def _upsertion(self, upsertion: Any) -> tuple[str, Credential]:
        mechanism = _mechanism(upsertion)
        if not _LEAST <= upsertion.iterations <= _MOST:
            text = f"Too {'few' if upsertion.iterations < _LEAST else 'many'} iterations"
            raise ApiError(ErrorCode.unacceptable_credential, text)
        if not upsertion.salted_password:
            raise ApiError(ErrorCode.unknown_server_error)
        return mechanism, Credential.of_salted(
            mechanism, upsertion.salt, upsertion.salted_password, upsertion.iterations
        )


def _mechanism(alteration: Any) -> str:
    """Return the mechanism that a change names. Raises ApiError if it is unknown, or the user name is empty."""
    if not alteration.name:
        raise ApiError(ErrorCode.unacceptable_credential, "Username must not be empty")
    mechanism = _NAMES.get(alteration.mechanism)
    if mechanism is None:
        raise ApiError(ErrorCode.unsupported_sasl_mechanism, "Unknown SCRAM mechanism")
    return mechanism
