"""ApiVersions (key 18, versions 0-4): list the APIs, versions and features of this broker.

A request in a version that is too new is answered in version 0 (KIP-511).
Kafka: `KafkaApis.handleApiVersionsRequest`.
"""

from __future__ import annotations

import re

from abeyant.broker.errors import ApiError
from abeyant.broker.features import FEATURES
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.apis import APIS, BY_NAME
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "ApiVersionsRequest": {"client_software_name": None, "client_software_version": None},
}
# librdkafka before 2.9 compresses only if Produce has version 0, so Kafka 4 lists it (KAFKA-18659).
_LISTED_FROM = {0: 0}
_KEYS = tuple(
    Message(api_key=api.key, min_version=_LISTED_FROM.get(api.key, api.lowest), max_version=api.highest) for api in APIS
)
# Kafka lists them only with a metrics plugin. Clients that see them send one every five minutes; librdkafka logs it.
_OF_METRICS = tuple(BY_NAME[name].key for name in ("GetTelemetrySubscriptions", "PushTelemetry"))
_WITHOUT_METRICS = tuple(key for key in _KEYS if key.api_key not in _OF_METRICS)
_THIS = tuple(key for key in _KEYS if key.api_key == BY_NAME["ApiVersions"].key)

_FROM_ZERO_SINCE = 4  # older clients fail on a feature whose lowest level is 0, so they do not get it (KIP-1022)
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(call: Call) -> None:
    """List the APIs and features. If the request's version is too new, list only ApiVersions."""
    request = call.request
    if request is None:
        call.answer(Message(error_code=ErrorCode.unsupported_version, api_keys=_THIS))
    elif request.client_software_name is not None and not (
        _SOFTWARE.fullmatch(request.client_software_name) and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        raise ApiError(ErrorCode.invalid_request)
    else:
        if request.client_software_name is not None:
            call.connection.software = request.client_software_name, request.client_software_version
        supported = [
            Message(name=name, min_version=least, max_version=greatest)
            for name, least, greatest, _ in FEATURES
            if least or call.version >= _FROM_ZERO_SINCE
        ]
        controller = call.broker.cluster.controller
        features = controller.features
        finalized = [
            Message(name=name, min_version_level=level, max_version_level=level) for name, level in features.finalized()
        ]
        call.answer(
            Message(
                api_keys=_KEYS if controller.client_metrics.names() else _WITHOUT_METRICS,
                supported_features=supported,
                finalized_features_epoch=features.epoch,
                finalized_features=finalized,
            )
        )
