"""DescribeClientQuotas (key 48, versions 0-1): answer with no quotas, since clients are never throttled.

Kafka: `ClientQuotaControlManager`.
Not implemented: client quotas.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {}


def handle(call: Call) -> None:
    """Answer with an empty list."""
    call.answer(Message(throttle_time=NO_TIME, error_code=ErrorCode.none, error_message="", entries=()))


def refused(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return Message(throttle_time=NO_TIME, error_code=error, error_message=None, entries=None)
