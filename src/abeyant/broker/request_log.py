"""Write Kafka's request log: a line per request once its response is sent. `abeyant analyze` and `model` read the log.

The format is the output of Kafka's `RequestChannel.updateRequestMetrics`, whose logger is `kafka.request.logger` at
DEBUG. Each broker writes its own file, since a line does not name the broker.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from abeyant.broker.definitions import Scope, definitions
from abeyant.broker.delayed.operation import follower_name
from abeyant.broker.wire.json_form import json_form
from abeyant.broker.wire.schema import Codec, Message
from abeyant.errors import AbeyantError
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.partition_state import PartitionState
    from abeyant.broker.replica.messages import ReplicaFetch, ReplicaResponse
    from abeyant.broker.requests.common.call import Call
    from abeyant.broker.requests.common.ports import Broker
    from abeyant.broker.wire.connection import Connection

# Requests between brokers: key, name, version
_FETCH: Final = 1, "Fetch", 18
_ALTER_PARTITION: Final = 56, "AlterPartition", 3
# Shown instead of a client's connection, as brokers of one process have none to each other
_IN_PROCESS: Final = ("127.0.0.1:0", "ANONYMOUS", ("unknown", "unknown"), "PLAINTEXT")
_CONFIGURING: Final = ("AlterConfigs", "IncrementalAlterConfigs")
_SCOPES: Final[dict[int, Scope]] = {
    2: "topic",
    4: "broker",
    16: "client-metrics",
    32: "group",
}  # by the type of a resource
_LOGGER: Final = 8
_SECRETS: Final = ("hmac", "salt", "saltedPassword")  # of delegation tokens and SCRAM users
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class RequestLog:
    """The writer of each broker's `broker-N/kafka-request.log` below a directory. Use from the loop's thread only."""

    def __init__(self, directory: Path) -> None:
        """Create the directory. Raises AbeyantError if it is not writable."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AbeyantError(f"cannot write a request log to {directory}: {error.strerror}") from error
        if not os.access(directory, os.W_OK):
            raise AbeyantError(f"cannot write a request log to {directory}: it is not writable")
        self._directory = directory
        self._files: dict[int, IO[str]] = {}
        self._numbers: dict[int, int] = {}  # of the last fetch, by follower
        self._broken = False

    def log_response(self, call: Call, response: Any) -> None:
        """Write a line for a client's request; `response` is None if no response is sent."""
        request = call.sent
        if call.connection.login is not None or call.api.name == "SaslAuthenticate":
            return  # Kafka logs no requests of the authentication, which have the password
        request_form = None if request is None else json_form(call.codec.request_entity, request)
        if request_form is not None and call.api.name in _CONFIGURING:
            _redact_settings(request_form)
        response_form = None if response is None else json_form(call.codec.response_entity, response)
        if "DelegationToken" in call.api.name or call.api.name == "AlterUserScramCredentials":
            _redact_secrets(request_form)
            _redact_secrets(response_form)
        header = _header(call.api.key, call.api.name, call.version, call.correlation_id, call.client_id)
        throttled = call.throttle_seconds
        self._write(
            call.broker, header, request_form, response_form, call.since, call.local, call.connection, throttled
        )

    def log_replica_fetch(self, broker: Broker, fetch: ReplicaFetch, answer: ReplicaResponse, since: float) -> None:
        """Write a line for a follower's fetch, as if it had arrived over the wire in a fetch session."""
        topics = broker.cluster.controller.topics
        positions, results = defaultdict(list), defaultdict(list)
        for entry in fetch.positions:
            position = Message(
                partition=entry.partition, current_leader_epoch=entry.leader_epoch, fetch_offset=entry.offset,
                last_fetched_epoch=entry.last_epoch, log_start_offset=entry.start,
                partition_max_bytes=broker.replica_partition_bytes,
            )  # fmt: skip
            positions[entry.topic].append(position)
        for part in answer.partitions:
            size = sum(batch.size for batch in part.records or ())
            result = Message(
                partition_index=part.partition, error_code=part.error or 0, high_watermark=part.high_watermark,
                last_stable_offset=part.high_watermark, log_start_offset=part.start, aborted_transactions=None,
                records=range(size),  # only its length is written
            )  # fmt: skip
            results[part.topic].append(result)

        def by_topic(rows: Mapping[str, list[Message]]) -> list[Message]:
            return [
                Message(topic_id=topics[name].id if name in topics else None, partitions=partitions)
                for name, partitions in rows.items()
            ]

        self._numbers[fetch.follower] = number = self._numbers.get(fetch.follower, -1) + 1
        request = Message(
            replica_state=Message(replica_id=fetch.follower, replica_epoch=0), min_bytes=1,
            max_wait=timedelta(seconds=broker.replica_fetch_wait), max_bytes=broker.replica_fetch_bytes,
            session_id=fetch.number, session_epoch=number, topics=by_topic(positions),
        )  # fmt: skip
        response = Message(session_id=fetch.number, responses=by_topic(results))
        header = _header(*_FETCH, number, follower_name(fetch.follower))
        self._write(broker, header, *_forms(_FETCH, request, response), since, 0.0)

    def log_isr_change(self, broker: Broker, before: PartitionState, after: PartitionState) -> None:
        """Write a line for a leader's request to the controller to change the in-sync set."""
        request = Message(
            partition_index=after.partition, leader_epoch=before.leader_epoch, partition_epoch=before.partition_epoch,
            new_isr_with_epochs=[Message(broker_id=replica) for replica in after.isr],
        )  # fmt: skip
        response = Message(
            partition_index=after.partition, leader_id=after.leader, leader_epoch=after.leader_epoch, isr=after.isr,
            partition_epoch=after.partition_epoch,
        )  # fmt: skip
        topics, results = ([Message(topic_id=after.topic_id, partitions=[message])] for message in (request, response))
        forms = _forms(_ALTER_PARTITION, Message(broker_id=broker.id, topics=topics), Message(topics=results))
        self._write(broker, _header(*_ALTER_PARTITION, 0, str(broker.id)), *forms, broker.now(), None)

    def close(self) -> None:
        """Close the files."""
        files, self._files = self._files, {}
        for file in files.values():
            with suppress(OSError):  # a full disk has been logged already
                file.close()

    def _write(
        self,
        broker: Broker,
        header: dict[str, Any],
        request: dict[str, Any] | None,
        response: dict[str, Any] | None,
        since: float,
        local: float | None,
        client: Connection | None = None,
        throttled: float = 0.0,
    ) -> None:
        if self._broken:
            return
        peer, user, software, protocol = _IN_PROCESS
        if client is not None:
            peer, user, software = client.peer, client.user, client.software
            protocol = broker.cluster.security.protocol
        total = broker.now() - since
        local = total if local is None else min(local, total)
        line = {
            "isForwarded": False,
            "requestHeader": header,
            "request": request,
            "response": response or "",
            "connection": f"{broker.host}:{broker.port}-{peer}-0-0",
            "totalTimeMs": _ms(total),
            "requestQueueTimeMs": 0.0,
            "localTimeMs": _ms(local),
            "remoteTimeMs": _ms(total - local),
            "throttleTimeMs": round(throttled * 1000),
            "responseQueueTimeMs": 0.0,
            "sendTimeMs": 0.0,
            "securityProtocol": protocol,
            "principal": f"User:{user}",
            "listener": protocol,
            "clientInformation": {"softwareName": software[0], "softwareVersion": software[1]},
        }
        at = datetime.fromtimestamp(broker.now_ms() / 1000, UTC)
        text = json.dumps(line, separators=(",", ":"))
        stamp = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03}"
        try:
            self._file(broker.id).write(f"[{stamp}] DEBUG Completed request:{text} (kafka.request.logger)\n")
        except OSError as error:  # for instance a full disk; keep serving clients
            self._broken = True
            logger("broker").error("the request log in %s ends here: %s", self._directory, error.strerror or error)

    def _file(self, broker: int) -> IO[str]:
        file = self._files.get(broker)
        if file is None:
            path = self._directory / f"broker-{broker}" / "kafka-request.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            file = self._files[broker] = path.open("a", encoding="utf-8", buffering=1 << 16)
        return file


def _forms(api: tuple[int, str, int], request: Message, response: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    codec = _codec(api[0], api[2])
    return json_form(codec.request_entity, request), json_form(codec.response_entity, response)


@cache
def _codec(key: int, version: int) -> Codec:
    return Codec(key, version, {})


def _redact_secrets(form: Any) -> None:
    """Redact HMACs, salts and salted passwords in `form`, as they are credentials. Kafka logs their values."""
    if isinstance(form, list):
        for item in form:
            _redact_secrets(item)
    elif isinstance(form, dict):
        for name, value in form.items():
            if name in _SECRETS:
                form[name] = "[hidden]"
            else:
                _redact_secrets(value)


def _redact_settings(request_form: dict[str, Any]) -> None:
    """Redact the values of secret and of unknown settings in `request_form`. Kafka: `KafkaConfig.loggableValue`."""
    for resource in request_form["resources"]:
        kind = resource["resourceType"]
        settings = definitions(_SCOPES[kind]) if kind in _SCOPES else {}
        for config in resource["configs"]:
            if kind != _LOGGER and (config["name"] not in settings or settings[config["name"]].sensitive):
                config["value"] = "[hidden]"


def _header(key: int, name: str, version: int, number: int, client: str) -> dict[str, Any]:
    return {
        "requestApiKey": key,
        "requestApiVersion": version,
        "correlationId": number,
        "clientId": client,
        "requestApiKeyName": _WORDS.sub("_", name).upper(),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
