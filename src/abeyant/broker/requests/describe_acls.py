"""DescribeAcls: there are no access rules here, and nobody who would go by them."""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {}


def handle(call: Call) -> None:
    """Say so, in Kafka's words."""
    call.answer(_response(ErrorCode.security_disabled, "No Authorizer is configured on the broker"))


def refused(_: Any, error: ErrorCode) -> Message:
    """The error."""
    return _response(error, None)


def _response(error: ErrorCode, message: str | None) -> Message:
    return Message(throttle_time=NO_TIME, error_code=error, error_message=message, resources=())
