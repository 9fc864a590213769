"""ApiVersions: what this broker speaks. Whoever asks in a version that is too new is told in version 0 (KIP-511)."""

from __future__ import annotations

import re
from typing import Any

from abeyance.broker.requests.call import Call
from abeyance.broker.wire.apis import APIS, BY_NAME
from abeyance.broker.wire.schema import NO_TIME, ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "ApiVersionsRequest": {"client_software_name": None, "client_software_version": None},
}
# librdkafka before 2.9 compresses only where it sees version 0 of Produce, so Kafka 4 claims it (KAFKA-18659).
_CLAIMED = {0: 0}
_KEYS = tuple(
    Message(api_key=api.key, min_version=_CLAIMED.get(api.key, api.lowest), max_version=api.highest) for api in APIS
)
_THIS = tuple(key for key in _KEYS if key.api_key == BY_NAME["ApiVersions"].key)
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(call: Call) -> None:
    """Answer."""
    request = call.request
    if request is None:
        call.answer(_response(ErrorCode.unsupported_version, _THIS))
    elif request.client_software_name is not None and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        call.answer(refused(request, ErrorCode.invalid_request))
    else:
        call.answer(_response(ErrorCode.none, _KEYS))


def refused(request: Any, error: ErrorCode) -> Message:
    """The same error for everything."""
    return _response(error, ())


def _response(error: ErrorCode, keys: tuple[Message, ...]) -> Message:
    return Message(
        error_code=error, api_keys=keys, throttle_time=NO_TIME, supported_features=(), finalized_features_epoch=-1,
        finalized_features=(), zk_migration_ready=False,
    )  # fmt: skip
