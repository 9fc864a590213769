"""CreateAcls (key 30, versions 1-3): add ACLs.

If one rule has ANY or MATCH, Kafka fails all rules with UNKNOWN_SERVER_ERROR; this broker refuses only that rule.
Kafka: `AclApis.handleCreateAcls`, `AclControlManager.createAcls`.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.acls import Acl
from abeyant.broker.errors import NO_AUTHORIZER
from abeyant.broker.requests.common.acls import all_known
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"AclCreation": {"resource_pattern_type": 3}}


def handle(call: Call) -> None:
    """Add the ACLs. Respond with a result for each ACL."""
    acls = call.broker.cluster.controller.acls
    if not acls.enabled:
        call.answer(error_response(call.request, ErrorCode.security_disabled, NO_AUTHORIZER))
        return
    rules = [
        Acl(
            one.resource_type, one.resource_name, one.resource_pattern_type, one.principal, one.host, one.operation,
            one.permission_type,
        )
        for one in call.request.creations
    ]  # fmt: skip
    if not all_known(call, rules):
        return
    errors = acls.create(rules)
    results = [
        Message(error_message="") if error is None else Message(error_code=error.code, error_message=error.message)
        for error in errors
    ]
    call.answer(Message(results=results))


def error_response(request: Any, error: ErrorCode, message: str | None = None) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(results=[Message(error_code=error, error_message=message) for _ in request.creations])
