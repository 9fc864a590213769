"""Read and change topics, records, groups and transactions over HTTP."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from abeyant.broker.api.contents import NewRecord
from abeyant.broker.api.leading import leader_of
from abeyant.broker.control.operation import ControlRequest, Operation
from abeyant.broker.control.schema import Schema, nullable, obj, several, text, whole
from abeyant.errors import did_you_mean
from abeyant.web import HttpError

if TYPE_CHECKING:
    from abeyant.broker.api.cluster_api import Record
    from abeyant.broker.control.ordered import Control

_OFFSET = {"type": "integer", "minimum": 0, "maximum": (1 << 63) - 1}
_TEXT = {"type": "string"}
_ENCODING: Schema = {
    "type": "string", "enum": ["utf-8", "base64"], "default": "utf-8",
    "description": "Encoding of key, value and headers.",
}  # fmt: skip
_HEADERS: Schema = several(obj({"name": _TEXT, "value": nullable(_TEXT)}), description="In their order.", maxItems=100)
_SEEN_HEADERS = {name: value for name, value in _HEADERS.items() if name != "maxItems"}
_TIMESTAMP = whole("Milliseconds since 1970; default: the cluster's current time.", most=1 << 52)
_SEED = obj(
    {
        "value": nullable({**_TEXT, "description": "null deletes the key, in a compacted topic."}),
        "key": nullable(_TEXT), "headers": _HEADERS, "timestamp": _TIMESTAMP, "encoding": _ENCODING,
    },
    ("value",),
)  # fmt: skip
_SEEDS = obj({"partition": whole("The partition.", default=0), "records": several(_SEED, maxItems=1000)}, ("records",))
_RECORD = obj(
    {
        "partition": whole("Its partition."), "offset": _OFFSET, "timestamp": {"type": "integer"},
        "key": nullable(_TEXT), "value": nullable(_TEXT), "headers": _SEEN_HEADERS, "encoding": _ENCODING,
    }
)  # fmt: skip
_PARTITION = obj(
    {
        "partition": whole("Its number."),
        "leader": nullable(whole("The broker that leads.")),
        "replicas": several(whole("A broker.")),
        "in_sync": several(whole("A broker.")),
        "log_start_offset": nullable({**_OFFSET, "description": "The first record's: retention raises it."}),
        "high_watermark": nullable(_OFFSET),
        "log_end_offset": nullable({**_OFFSET, "description": "null, as the others, without a leader that runs."}),
    }
)
_TOPIC = obj({"name": text("Its name."), "partitions": several(_PARTITION)})
_GROUP = obj(
    {
        "id": _TEXT,
        "protocol": {"type": "string", "enum": ["classic", "consumer", "share", "streams"]},
        "state": text("Kafka's name of the state."),
        "generation": {"type": "integer"},
        "coordinator": whole("The broker that coordinates."),
        "members": several(obj({"id": _TEXT, "instance_id": nullable(_TEXT), "client_id": _TEXT, "host": _TEXT})),
        "offsets": several(
            obj(
                {
                    "topic": _TEXT, "partition": whole("A partition."), "offset": _OFFSET, "metadata": _TEXT,
                    "lag": nullable(_OFFSET),
                }
            )
        ),
    }
)  # fmt: skip
_TRANSACTION = obj(
    {
        "id": _TEXT,
        "state": text("Kafka's name of the state."),
        "producer_id": {"type": "integer"},
        "epoch": {"type": "integer"},
        "coordinator": whole("The broker that coordinates."),
        "timeout": {"type": "number", "description": "Seconds."},
        "left": nullable({"type": "number", "description": "Seconds until an open transaction is aborted."}),
        "partitions": several(obj({"topic": _TEXT, "partition": whole("A partition.")})),
    }
)
_NEW_TOPIC = obj(
    {
        "name": text("Its name."),
        "partitions": whole("How many.", 1, 10_000, default=1),
        "replicas": whole("Replicas of each partition; default: three, or the number of brokers.", 1, 1000),
        "config": {
            "type": "object", "description": "Kafka's settings for topics.",
            "additionalProperties": {"type": ["string", "number", "boolean"]},
        },
    },
    ("name",),
)  # fmt: skip
_NEW_OFFSETS = obj(
    {
        "offsets": several(
            obj({"topic": text("A topic."), "partition": whole("A partition."), "offset": _OFFSET}), minItems=1
        )
    }
)

_LOCKS = obj(
    {
        "topic": text("A topic."),
        "partition": whole("Only locks on this partition."),
        "member": text("Only a member's locks, by its member id or client id."),
    },
    ("topic",),
)


def _topic_of(control: Control, request: ControlRequest) -> str:
    """Return the name of the topic in the path. Raises HttpError 404 if there is no such topic."""
    name, topics = request.path["topic"], control.cluster.topics()
    if name not in topics:
        raise HttpError(404, f"there is no topic {name!r}{did_you_mean(name, topics)}")
    return str(name)


def _topics(control: Control, request: ControlRequest) -> dict[str, Any]:
    return {"topics": control.cluster.topics()}


def _create(control: Control, request: ControlRequest) -> dict[str, Any]:
    body = request.body
    config = {
        name: str(value).lower() if isinstance(value, bool) else value for name, value in body.get("config", {}).items()
    }
    control.cluster.create_topic(body["name"], body.get("partitions", 1), body.get("replicas"), config)
    return _topic(control, request._replace(path={"topic": body["name"]}))


def _topic(control: Control, request: ControlRequest) -> dict[str, Any]:
    name = _topic_of(control, request)
    cluster = control.cluster

    def read() -> list[dict[str, Any]]:
        rows = []
        for state in cluster._topic_named(name).partitions:
            replica = leader_of(cluster, name, state.partition)
            rows.append(
                {
                    "partition": state.partition,
                    "leader": None if state.leader < 0 else state.leader,
                    "replicas": list(state.replicas),
                    "in_sync": list(state.isr),
                    "log_start_offset": None if replica is None else replica.log.start_offset,
                    "high_watermark": None if replica is None else replica.high_watermark,
                    "log_end_offset": None if replica is None else replica.log.end_offset,
                }
            )
        return rows

    return {"name": name, "partitions": cluster._settled(read)}


def _delete(control: Control, request: ControlRequest) -> None:
    control.cluster.delete_topic(_topic_of(control, request))


def _compact(control: Control, request: ControlRequest) -> None:
    control.cluster.compact(_topic_of(control, request))


def _records(control: Control, request: ControlRequest) -> dict[str, Any]:
    query = request.query
    isolation = query.get("isolation", "read_uncommitted")
    records = control.cluster.records(
        _topic_of(control, request), query.get("partition"), isolation=isolation,
        beyond_high_watermark=query.get("beyond_high_watermark", False),
    )  # fmt: skip
    first, limit = query.get("offset", 0), query.get("limit", 1000)
    page = [record for record in records if record.offset >= first][:limit]
    return {"records": [_shown(record) for record in page], "total": len(records)}


def _shown(record: Record) -> dict[str, Any]:
    parts = [record.key, record.value, *(value for _, value in record.headers)]
    encoding = "utf-8" if all(part is None or _is_text(part) for part in parts) else "base64"
    encode = _as_text if encoding == "utf-8" else _as_base64
    return {
        "partition": record.partition, "offset": record.offset, "timestamp": record.timestamp, "encoding": encoding,
        "key": encode(record.key), "value": encode(record.value),
        "headers": [{"name": name, "value": encode(value)} for name, value in record.headers],
    }  # fmt: skip


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _as_text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def _as_base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")


def _seed(control: Control, request: ControlRequest) -> dict[str, Any]:
    records = [_to_seed(f"body.records[{number}]", record) for number, record in enumerate(request.body["records"])]
    topic = _topic_of(control, request)
    return {"offsets": control.cluster.seed(topic, records, request.body.get("partition", 0))}


def _to_seed(where: str, record: dict[str, Any]) -> NewRecord:
    read: Callable[[str, str | None], bytes | None] = _from_base64 if record.get("encoding") == "base64" else _from_text
    headers = tuple(
        (_from_text(f"{where}.headers", header["name"]), read(f"{where}.headers", header["value"]))
        for header in record.get("headers", ())
    )
    pairs = tuple((name.decode(), value) for name, value in headers if name is not None)
    value, key = read(f"{where}.value", record["value"]), read(f"{where}.key", record.get("key"))
    return NewRecord(value, key, pairs, record.get("timestamp"))


def _from_text(where: str, value: str | None) -> bytes | None:
    try:
        return None if value is None else value.encode()
    except UnicodeEncodeError:
        raise HttpError(400, f"{where} has half a surrogate pair, which UTF-8 cannot encode: send base64") from None


def _from_base64(where: str, value: str | None) -> bytes | None:
    try:
        return None if value is None else base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError) as error:
        raise HttpError(400, f"{where} is not base64: {error}") from None


def _groups(control: Control, request: ControlRequest) -> dict[str, Any]:
    return {"groups": control.cluster.groups()}


def _group(control: Control, request: ControlRequest) -> dict[str, Any]:
    group = control.cluster.group(request.path["group"])
    members, offsets = ([row._asdict() for row in rows] for rows in (group.members, group.offsets))
    return {**group._asdict(), "members": members, "offsets": offsets}


def _commit(control: Control, request: ControlRequest) -> dict[str, Any]:
    rows = request.body["offsets"]
    control.cluster.commit(request.path["group"], {(row["topic"], row["partition"]): row["offset"] for row in rows})
    return _group(control, request)


def _expire(control: Control, request: ControlRequest) -> None:
    control.cluster.expire_member(request.path["group"], request.body["member"])


def _expire_locks(control: Control, request: ControlRequest) -> dict[str, Any]:
    cluster, body = control.cluster, request.body
    group = cluster.group(request.path["group"]).id
    return {"expired": cluster.expire_lock(group, body["topic"], body.get("partition"), member=body.get("member"))}


def _transactions(control: Control, request: ControlRequest) -> dict[str, Any]:
    rows = [transaction._asdict() for transaction in control.cluster.transactions()]
    for row in rows:
        row["partitions"] = [{"topic": topic, "partition": partition} for topic, partition in row["partitions"]]
    return {"transactions": rows}


def _fence(control: Control, request: ControlRequest) -> None:
    control.cluster.fence(request.path["transaction"])


OPERATIONS = (
    Operation("GET", "/topics", "listTopics", "List the topics.", _topics, obj({"topics": several(_TEXT)})),
    Operation("POST", "/topics", "createTopic", "Create a topic.", _create, _TOPIC, body=_NEW_TOPIC),
    Operation(
        "GET", "/topics/{topic}", "readTopic", "Read a topic's leaders, in-sync replicas and offsets.", _topic, _TOPIC,
    ),
    Operation("DELETE", "/topics/{topic}", "deleteTopic", "Delete a topic and its records.", _delete),
    Operation("POST", "/topics/{topic}/compact", "compactTopic", "Compact a topic now.", _compact),
    Operation(
        "GET", "/topics/{topic}/records", "readRecords", "Read a topic's records.", _records,
        obj({"records": several(_RECORD), "total": whole("Number of records in all.")}),
        query={
            "partition": whole("Only this partition."),
            "offset": {**_OFFSET, "description": "First offset."},
            "limit": whole("Maximum number of records.", 1, 10_000, default=1000),
            "isolation": {"type": "string", "enum": ["read_uncommitted", "read_committed"]},
            "beyond_high_watermark": {
                "type": "boolean", "default": False,
                "description": "Include what the leader has and some in-sync replica lacks.",
            },
        },
    ),
    Operation(
        "POST", "/topics/{topic}/records", "seedRecords", "Append records to a partition.", _seed,
        obj({"offsets": several(_OFFSET)}),
        body=_SEEDS,
    ),
    Operation("GET", "/groups", "listGroups", "List the groups.", _groups, obj({"groups": several(_TEXT)})),
    Operation(
        "GET", "/groups/{group}", "readGroup", "Read a group: state, members, committed offsets, lag.", _group, _GROUP,
    ),
    Operation(
        "POST", "/groups/{group}/offsets", "commitOffsets", "Commit offsets, for a group without members.",
        _commit, _GROUP,
        body=_NEW_OFFSETS,
    ),
    Operation(
        "POST", "/groups/{group}/expire", "expireMember", "Expire a member's session.", _expire,
        body=obj({"member": text("Its member id, its group.instance.id, or a client id that only it has.")}),
    ),
    Operation(
        "POST", "/groups/{group}/locks/expire", "expireLocks", "Expire a share group's locks on a topic.",
        _expire_locks, obj({"expired": whole("How many.")}),
        body=_LOCKS,
    ),
    Operation(
        "GET", "/transactions", "listTransactions", "List the transactional ids.", _transactions,
        obj({"transactions": several(_TRANSACTION)}),
    ),
    Operation(
        "POST", "/transactions/{transaction}/fence", "fenceProducer", "Fence a transactional id's producer.", _fence,
    ),
)  # fmt: skip
