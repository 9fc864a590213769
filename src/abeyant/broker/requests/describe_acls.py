"""DescribeAcls (key 29, versions 1-3): answer SECURITY_DISABLED, as Kafka without an authorizer does.

Kafka: `AclApis.handleDescribeAcls`.
Not implemented: ACLs.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Answer with the error."""
    call.answer(_response(ErrorCode.security_disabled, "No Authorizer is configured on the broker"))


def refused(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _response(error, None)


def _response(error: ErrorCode, message: str | None) -> Message:
    return Message(error_code=error, error_message=message, resources=())
