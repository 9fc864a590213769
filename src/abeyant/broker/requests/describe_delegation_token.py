"""DescribeDelegationToken (key 41, versions 1-3): list the delegation tokens of some owners, or all (KIP-48).

Kafka: `KafkaApis.handleDescribeTokensRequest`, `DelegationTokenManager.filterToken`.
"""

from __future__ import annotations

from abeyant.broker.acls import DELEGATION_TOKEN, DESCRIBE, DESCRIBE_TOKENS, USER
from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.allowed import client_of, may
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.tokens import principal, principal_fields, require_identity
from abeyant.broker.security.credentials import DelegationToken
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """List the tokens that the client may describe."""
    require_identity(call)
    tokens = call.broker.cluster.controller.tokens
    if not tokens.enabled:
        raise ApiError(ErrorCode.delegation_token_auth_disabled)
    owners = call.request.owners
    principals = None if owners is None else [principal(owner.principal_type, owner.principal_name) for owner in owners]
    call.answer(Message(tokens=[_describe(token) for token in tokens.all() if _is_shown(call, token, principals)]))


def _is_shown(call: Call, token: DelegationToken, principals: list[str] | None) -> bool:
    if principals is not None and not any(map(token.concerns, principals)):
        return False
    if token.concerns(client_of(call).principal):
        return True
    return may(call, DESCRIBE, DELEGATION_TOKEN, token.id) or may(call, DESCRIBE_TOKENS, USER, token.owner)


def _describe(token: DelegationToken) -> Message:
    return Message(
        **principal_fields(token.owner), **principal_fields(token.requester, "token_requester_"),
        issue_timestamp=token.issued_ms, expiry_timestamp=token.expires_ms, max_timestamp=token.last_ms,
        token_id=token.id, hmac=token.hmac,
        renewers=[Message(**principal_fields(renewer)) for renewer in token.renewers],
    )  # fmt: skip
