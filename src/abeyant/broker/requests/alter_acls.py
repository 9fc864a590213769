"""CreateAcls and DeleteAcls: there are no access rules here, and nobody who would go by them."""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"CreateAclsRequest": {"filters": ()}, "DeleteAclsRequest": {"creations": ()}}


def handle(call: Call) -> None:
    """Say so of each, in Kafka's words."""
    call.answer(_response(call.request, ErrorCode.security_disabled, "No Authorizer is configured."))


def refused(request: Any, error: ErrorCode) -> Message:
    """The same error for everything."""
    return _response(request, error, None)


def _response(request: Any, error: ErrorCode, message: str | None) -> Message:
    asked = (*request.creations, *request.filters)
    results = [Message(error_code=error, error_message=message, matching_acls=()) for _ in asked]
    return Message(throttle_time=NO_TIME, results=results, filter_results=results)
