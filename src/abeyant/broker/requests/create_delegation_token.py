"""CreateDelegationToken (key 38, versions 1-3): create a token by which others authenticate as its owner (KIP-48).

Kafka: `KafkaApis.handleCreateTokenRequest`, `DelegationTokenControlManager.createDelegationToken`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.acls import CREATE_TOKENS, USER
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.allowed import client_of, may
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.tokens import NO_TIME_MS, principal, principal_fields, require_identity
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "CreateDelegationTokenRequest": {"owner_principal_type": None, "owner_principal_name": None},
}


def handle(call: Call) -> None:
    """Create the token."""
    request = call.request
    requester = owner = client_of(call).principal
    if request.owner_principal_name:
        owner = principal(request.owner_principal_type, request.owner_principal_name)
    people = {**principal_fields(owner), **principal_fields(requester, "token_requester_")}
    never = dict.fromkeys(("issue_timestamp", "expiry_timestamp", "max_timestamp"), NO_TIME_MS)
    try:
        require_identity(call)
        if owner != requester and not may(call, CREATE_TOKENS, USER, owner):
            raise ApiError(ErrorCode.delegation_token_authorization_failed)
        if any(one.principal_type != "User" for one in request.renewers):
            raise ApiError(ErrorCode.invalid_principal_type)
        if not call.broker.cluster.controller.tokens.enabled:
            never = dict.fromkeys(never, 0)  # Kafka's controller refuses this, and sends 0
        renewers = tuple(principal(one.principal_type, one.principal_name) for one in request.renewers)
        longest_ms = round(request.max_lifetime.total_seconds() * 1000)
        token = call.broker.cluster.controller.tokens.create(requester, owner, renewers, longest_ms)
    except ApiError as error:
        call.answer(Message(error_code=error.code, **people, **never))
        return
    call.answer(
        Message(
            **people, issue_timestamp=token.issued_ms, expiry_timestamp=token.expires_ms, max_timestamp=token.last_ms,
            token_id=token.id, hmac=token.hmac,
        )
    )  # fmt: skip


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    never = dict.fromkeys(("issue_timestamp", "expiry_timestamp", "max_timestamp"), NO_TIME_MS)
    return Message(error_code=error, **never)
