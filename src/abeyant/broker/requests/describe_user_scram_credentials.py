"""DescribeUserScramCredentials (key 50, versions 0-0): list users' SCRAM mechanisms and iterations.

Kafka: `KafkaApis.handleDescribeUserScramCredentialsRequest`.
Not implemented: altering them.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

_MECHANISMS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}  # Kafka's numbers


def handle(call: Call) -> None:
    """Describe the users of the request, or all of them."""
    known = call.broker.cluster.security.scram_iterations()
    names = Counter(user.name for user in call.request.users or ())
    call.answer(_response(ErrorCode.none, "", [_result(name, names[name], known.get(name)) for name in names or known]))


def refused(_: Any, error: ErrorCode) -> Message:
    """Return the response with this error."""
    return _response(error, None, [])


def _result(name: str, times: int, credentials: dict[str, int] | None) -> Message:
    error, message = ErrorCode.none, None
    if times > 1:
        error = ErrorCode.duplicate_resource
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
    elif credentials is None:
        error = ErrorCode.resource_not_found
        message = f"Attempt to describe a user credential that does not exist: {name}"
    infos = [] if error is not ErrorCode.none or credentials is None else [
        Message(mechanism=_MECHANISMS[mechanism], iterations=count) for mechanism, count in credentials.items()
    ]  # fmt: skip
    return Message(user=name, error_code=error, error_message=message, credential_infos=infos)


def _response(error: ErrorCode, message: str | None, results: list[Message]) -> Message:
    return Message(error_code=error, error_message=message, results=results)
