"""Kafka's request log: a line for each request once its response is sent, as `abeyant analyze` and `model` read it.

The format is that of Kafka's `RequestChannel.updateRequestMetrics` and its logger `kafka.request.logger` at DEBUG. Each
broker writes a file of its own, since a line does not say which broker it is of.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from abeyant.broker.definitions import Scope, definitions
from abeyant.broker.delayed.operation import follower_name
from abeyant.broker.wire.json_form import id_form, json_form
from abeyant.errors import AbeyantError
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.partition_state import PartitionState, Topic
    from abeyant.broker.replica.messages import ReplicaFetch, ReplicaResponse
    from abeyant.broker.requests.common.call import Call
    from abeyant.broker.requests.common.ports import Broker
    from abeyant.broker.wire.connection import Connection

_FETCH: Final = 1
_ALTER_PARTITION: Final = 56
# Brokers of one process have no connections with one another: this stands in place of a client's
_IN_PROCESS: Final = ("127.0.0.1:0", "ANONYMOUS", ("unknown", "unknown"), "PLAINTEXT")
_CONFIGURING: Final = ("AlterConfigs", "IncrementalAlterConfigs")
_SCOPES: Final[dict[int, Scope]] = {2: "topic", 4: "broker", 32: "group"}  # by the type of a resource
_LOGGER: Final = 8
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class RequestLog:
    """Writes `broker-N/kafka-request.log` below a directory, for the brokers of a cluster. In the loop's thread."""

    def __init__(self, directory: Path) -> None:
        """Raises AbeyantError where nothing can be written there."""
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AbeyantError(f"cannot write a request log to {directory}: {error.strerror}") from error
        if not os.access(directory, os.W_OK):
            raise AbeyantError(f"cannot write a request log to {directory}: it is not writable")
        self._directory = directory
        self._files: dict[int, IO[str]] = {}
        self._numbers: dict[int, int] = {}  # of followers' fetches
        self._broken = False

    def log_response(self, call: Call, response: Any) -> None:
        """Write a line for a client's request; `response` is None where none is sent."""
        request = call.request
        name = getattr(request, "client_software_name", "")
        if name:
            call.connection.software = (name, request.client_software_version)
        if call.connection.login is not None or call.api.name == "SaslAuthenticate":
            return  # Kafka's authenticator answers these, and writes no line: one would have the password
        request_form = None if request is None else json_form(call.codec.request_entity, request)
        if request_form is not None and call.api.name in _CONFIGURING:
            _hide_secrets(request_form)
        self._write(
            call.broker,
            _header(
                call.api.key, call.version, call.correlation_id, call.client_id, _WORDS.sub("_", call.api.name).upper()
            ),
            request_form,
            None if response is None else json_form(call.codec.response_entity, response),
            call.since,
            call.local,
            call.connection,
        )

    def log_replica_fetch(self, broker: Broker, fetch: ReplicaFetch, answer: ReplicaResponse, since: float) -> None:
        """Write a line for a follower's fetch, as if it had come over the wire in a fetch session."""
        topics = broker.cluster.controller.topics
        positions, results = _Grouped(topics), _Grouped(topics)
        for position in fetch.positions:
            positions.add(
                position.topic,
                {
                    "partition": position.partition,
                    "currentLeaderEpoch": position.leader_epoch,
                    "fetchOffset": position.offset,
                    "lastFetchedEpoch": position.last_epoch,
                    "logStartOffset": position.start,
                    "partitionMaxBytes": broker.replica_partition_bytes,
                },
            )
        for partition in answer.partitions:
            results.add(
                partition.topic,
                {
                    "partitionIndex": partition.partition,
                    "errorCode": 0 if partition.error is None else int(partition.error),
                    "highWatermark": partition.high_watermark,
                    "lastStableOffset": partition.high_watermark,
                    "logStartOffset": partition.start,
                    "abortedTransactions": None,
                    "preferredReadReplica": -1,
                    "recordsSizeInBytes": sum(batch.size for batch in partition.records or ()),
                },
            )
        self._numbers[fetch.follower] = number = self._numbers.get(fetch.follower, -1) + 1
        self._write(
            broker,
            _header(_FETCH, 18, number, follower_name(fetch.follower), "FETCH"),
            {
                "replicaState": {"replicaId": fetch.follower, "replicaEpoch": 0},
                "maxWaitMs": round(broker.replica_fetch_wait * 1000),
                "minBytes": 1,
                "maxBytes": broker.replica_fetch_bytes,
                "isolationLevel": 0,
                "sessionId": fetch.number,
                "sessionEpoch": number,
                "topics": positions.topics,
                "forgottenTopicsData": [],
                "rackId": "",
            },
            {"throttleTimeMs": 0, "errorCode": 0, "sessionId": fetch.number, "responses": results.topics},
            since,
            0.0,
        )

    def log_isr_change(self, broker: Broker, before: PartitionState, after: PartitionState) -> None:
        """Write a line for a leader's change of the in-sync set, which it asks the controller for."""
        topic_id = id_form(after.topic_id)
        request = {
            "partitionIndex": after.partition,
            "leaderEpoch": before.leader_epoch,
            "newIsrWithEpochs": [{"brokerId": replica, "brokerEpoch": -1} for replica in after.isr],
            "leaderRecoveryState": 0,
            "partitionEpoch": before.partition_epoch,
        }
        response = {
            "partitionIndex": after.partition,
            "errorCode": 0,
            "leaderId": after.leader,
            "leaderEpoch": after.leader_epoch,
            "isr": list(after.isr),
            "leaderRecoveryState": 0,
            "partitionEpoch": after.partition_epoch,
        }
        self._write(
            broker,
            _header(_ALTER_PARTITION, 3, 0, str(broker.id), "ALTER_PARTITION"),
            {"brokerId": broker.id, "brokerEpoch": -1, "topics": [{"topicId": topic_id, "partitions": [request]}]},
            {"throttleTimeMs": 0, "errorCode": 0, "topics": [{"topicId": topic_id, "partitions": [response]}]},
            broker.now(),
            None,
        )

    def close(self) -> None:
        """Close the files."""
        files, self._files = self._files, {}
        for file in files.values():
            with suppress(OSError):  # a full disk was logged before, or a line or two are missing
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
            "throttleTimeMs": 0,
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
        except OSError as error:  # the disk is full, say: clients are served all the same
            self._broken = True
            logger("broker").error("the request log in %s ends here: %s", self._directory, error.strerror or error)

    def _file(self, broker: int) -> IO[str]:
        found = self._files.get(broker)
        if found is None:
            path = self._directory / f"broker-{broker}" / "kafka-request.log"
            path.parent.mkdir(parents=True, exist_ok=True)
            found = self._files[broker] = path.open("a", encoding="utf-8", buffering=1 << 16)
        return found


class _Grouped:
    """Partitions grouped as Kafka's messages have them."""

    def __init__(self, known: Mapping[str, Topic]) -> None:
        self.topics: list[dict[str, Any]] = []
        self._known = known
        self._found: dict[str, list[dict[str, Any]]] = {}

    def add(self, topic: str, partition: dict[str, Any]) -> None:
        partitions = self._found.get(topic)
        if partitions is None:
            partitions = self._found[topic] = []
            known = self._known.get(topic)
            self.topics.append({"topicId": id_form(None if known is None else known.id), "partitions": partitions})
        partitions.append(partition)


def _hide_secrets(request_form: dict[str, Any]) -> None:
    """Write no value of a setting that is secret, or that nobody knows. Kafka: `KafkaConfig.loggableValue`."""
    for resource in request_form["resources"]:
        kind = resource["resourceType"]
        known = definitions(_SCOPES[kind]) if kind in _SCOPES else {}
        for one in resource["configs"]:
            if kind != _LOGGER and (one["name"] not in known or known[one["name"]].sensitive):
                one["value"] = "[hidden]"


def _header(key: int, version: int, number: int, client: str, name: str) -> dict[str, Any]:
    return {
        "requestApiKey": key,
        "requestApiVersion": version,
        "correlationId": number,
        "clientId": client,
        "requestApiKeyName": name,
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
