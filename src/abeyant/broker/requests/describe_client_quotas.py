"""DescribeClientQuotas: nobody is throttled here, so there are none."""

from __future__ import annotations

from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {}


def handle(call: Call) -> None:
    """None."""
    call.answer(Message(throttle_time=NO_TIME, error_code=ErrorCode.none, error_message="", entries=()))


def refused(_: Any, error: ErrorCode) -> Message:
    """The error."""
    return Message(throttle_time=NO_TIME, error_code=error, error_message=None, entries=None)
