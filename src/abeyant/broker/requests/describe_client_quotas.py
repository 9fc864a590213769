"""DescribeClientQuotas (key 48, versions 0-1): return no quotas, since clients are never throttled.

Kafka: `ClientQuotaControlManager`.
Not implemented: client quotas.
"""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Answer with an empty list."""
    call.answer(Message(error_message=""))


def error_response(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return Message(error_code=error, entries=None)
