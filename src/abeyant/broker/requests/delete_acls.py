"""DeleteAcls (key 31, versions 1-3): answer SECURITY_DISABLED, as Kafka without an authorizer does.

Kafka: `AclApis.handleDeleteAcls`.
Not implemented: ACLs.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.errors import NO_AUTHORIZER
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Answer with the error for each filter."""
    call.answer(error_response(call.request, ErrorCode.security_disabled, NO_AUTHORIZER))


def error_response(request: Any, error: ErrorCode, message: str | None = None) -> Message:
    """Return the response with this error for everything in the request."""
    return Message(filter_results=[Message(error_code=error, error_message=message) for _ in request.filters])
