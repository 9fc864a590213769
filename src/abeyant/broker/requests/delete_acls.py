"""DeleteAcls (key 31, versions 1-3): answer SECURITY_DISABLED, as Kafka without an authorizer does.

Kafka: `AclApis.handleDeleteAcls`.
Not implemented: ACLs.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.create_acls import NO_AUTHORIZER
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Answer with the error, for each filter of ACLs that are to be deleted."""
    call.answer(_response(call.request, ErrorCode.security_disabled, NO_AUTHORIZER))


def refused(request: Any, error: ErrorCode) -> Message:
    """Return the response that has this error for everything in the request."""
    return _response(request, error, None)


def _response(request: Any, error: ErrorCode, message: str | None) -> Message:
    results = [Message(error_code=error, error_message=message, matching_acls=()) for _ in request.filters]
    return Message(filter_results=results)
