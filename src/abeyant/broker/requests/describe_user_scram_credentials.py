"""DescribeUserScramCredentials (key 50, versions 0-0): list users' SCRAM mechanisms and iterations.

Kafka: `KafkaApis.handleDescribeUserScramCredentialsRequest`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from abeyant.broker.errors import ApiError
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.results import results
from abeyant.broker.security.credentials import SCRAM
from abeyant.broker.wire.schema import ErrorCode, Message


def handle(call: Call) -> None:
    """Describe the requested users, or all users."""
    iterations = call.broker.cluster.security.credentials.iterations()
    names = Counter(user.name for user in call.request.users or ())

    def describe(name: str) -> Message:
        if names[name] > 1:
            text = f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            raise ApiError(ErrorCode.duplicate_resource, text)
        if name not in iterations:
            text = f"Attempt to describe a user credential that does not exist: {name}"
            raise ApiError(ErrorCode.resource_not_found, text)
        infos = [Message(mechanism=SCRAM[mechanism], iterations=count) for mechanism, count in iterations[name].items()]
        return Message(user=name, error_message="", credential_infos=infos)

    call.answer(Message(error_message="", results=results(names or iterations, describe, _failed)))


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for each requested user. It does not name the users, as in Kafka."""
    return Message(error_code=error, results=[Message(user="", error_code=error) for _ in request.users or ()])


def _failed(name: str, error: ErrorCode) -> Message:
    return Message(user=name, error_code=error)
