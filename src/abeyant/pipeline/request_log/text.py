"""Parse the lines of Kafka 2.7 and older: the same fields as the later JSON, printed by Java's `toString`.

    1.0 to 2.7    Completed request:RequestHeader(apiKey=FETCH, apiVersion=11, clientId=c, correlationId=0) --
                  {replica_id=-1,max_wait_time=500,...},response:{...} from connection ...;totalTime:545.2,
                  requestQueueTime:1.5,localTime:26.9,remoteTime:513.6,throttleTime:0,responseQueueTime:0.8,
                  sendTime:2.1,securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT
    0.9 to 0.11   Completed request:{api_key=11,api_version=0,correlation_id=2,client_id=c} -- {...} from connection
                  ...; whole milliseconds until 0.10; no response, no throttleTime until 0.10, no listener until 0.10.1
    0.8 to 0.10   Completed request:Name: FetchRequest; Version: 0; CorrelationId: 0; ClientId: c; ReplicaId: -1;
                  MaxWait: 100 ms; MinBytes: 1 bytes from client /127.0.0.1:56898;totalTime:12,... (a controller's
                  requests have no spaces, and the controller's id and epoch before CorrelationId)

Bodies are converted to the shape of the JSON. Their values are not quoted, so a value with a comma or a bracket may be
unreadable: then the body is dropped and the rest of the line is kept. At DEBUG a PRODUCE has no partitions, and before
0.11 a FETCH has none either; otherwise lines at DEBUG and TRACE do not differ.
Source: `RequestChannel.updateRequestMetrics` of each version, `describe` of its Scala requests, `Struct.toString`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

__all__ = ["is_text", "text_request"]

_HEADER: Final = re.compile(
    r"RequestHeader\(apiKey=(?P<api>\w+), apiVersion=\d+, clientId=(?P<client>.*?), correlationId=-?\d+\) -- "
)
_STRUCT_HEADER: Final = re.compile(
    r"\{api_key=(?P<api>\d+),api_version=\d+,correlation_id=-?\d+,client_id=(?P<client>.*?)\} -- "
)
_SCALA_HEADER: Final = re.compile(
    r"Name: ?(?P<api>\w+); ?Version: ?\d+; ?(?:Controller\w*: ?-?\d+; ?)*CorrelationId: ?-?\d+"
    r"(?:; ?ClientId: ?(?:Some\((?P<some>.*?)\)|(?P<client>.*?)))?(?=; ?[A-Z]\w+: ?| from c)"
)
_HEADERS: Final = {"RequestHeader(": _HEADER, "{api_key=": _STRUCT_HEADER, "Name:": _SCALA_HEADER}
# Java's and, with %f in some countries, a comma
_MS: Final = r"(-?\d+(?:[.,]\d+)?(?:E-?\d+)?)"
_TAIL: Final = re.compile(
    r" from (?:connection|client) \S*;totalTime:" + _MS + ",requestQueueTime:" + _MS + ",localTime:" + _MS
    + ",remoteTime:" + _MS + "(?:,throttleTime:" + _MS + ")?,responseQueueTime:" + _MS + ",sendTime:" + _MS
    + r"(?:,(?:.*,)?listener:(?P<listener>[^,\s\"'\\]*)|(?![\d.]))"
)  # fmt: skip
_TIMES: Final = {"localTimeMs": 3, "remoteTimeMs": 4, "throttleTimeMs": 5, "responseQueueTimeMs": 6, "sendTimeMs": 7}
# Kafka's names of the requests that 0.8 to 0.11 have, by number and by Scala class
_BY_NUMBER: Final = (
    *("PRODUCE", "FETCH", "LIST_OFFSETS", "METADATA", "LEADER_AND_ISR", "STOP_REPLICA", "UPDATE_METADATA"),
    *("CONTROLLED_SHUTDOWN", "OFFSET_COMMIT", "OFFSET_FETCH", "FIND_COORDINATOR", "JOIN_GROUP", "HEARTBEAT"),
    *("LEAVE_GROUP", "SYNC_GROUP", "DESCRIBE_GROUPS", "LIST_GROUPS", "SASL_HANDSHAKE", "API_VERSIONS"),
    *("CREATE_TOPICS", "DELETE_TOPICS", "DELETE_RECORDS", "INIT_PRODUCER_ID", "OFFSET_FOR_LEADER_EPOCH"),
    *("ADD_PARTITIONS_TO_TXN", "ADD_OFFSETS_TO_TXN", "END_TXN", "WRITE_TXN_MARKERS", "TXN_OFFSET_COMMIT"),
    *("DESCRIBE_ACLS", "CREATE_ACLS", "DELETE_ACLS", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
)
_BY_CLASS: Final = {
    "ProducerRequest": "PRODUCE", "OffsetRequest": "LIST_OFFSETS", "TopicMetadataRequest": "METADATA",
    "ConsumerMetadataRequest": "FIND_COORDINATOR", "GroupCoordinatorRequest": "FIND_COORDINATOR",
}  # fmt: skip
_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SCALA_FIELD: Final = re.compile(r"; (\w+): ?(-?\d+)(?= (?:ms|bytes)|;|$)")
_SCALA_FIELDS: Final = {
    "AckTimeoutMs": "timeoutMs",
    "MaxWait": "maxWaitMs",
    "ReplicaId": "replicaId",
    "RequiredAcks": "acks",
}
_SCALA_SIZE: Final = re.compile(r"\[([\w.-]+),(\d+)\] -> \d")
_SCALA_OFFSET: Final = re.compile(r"\[([\w.-]+),(\d+)\](?: -> |,)PartitionFetchInfo\((-?\d+),-?\d+\)")
# Fields that the JSON has under another name
_RENAMED: Final = {
    "timeout": "timeoutMs", "maxWaitTime": "maxWaitMs", "sessionTimeout": "sessionTimeoutMs",
    "rebalanceTimeout": "rebalanceTimeoutMs",
}  # fmt: skip
_NAME: Final = re.compile(r"([A-Za-z_]\w*)=")
_SIMPLE: Final = re.compile(r"[^,{}()\[\]]+")
_INTEGER: Final = re.compile(r"-?\d+")
_PARTITION_SIZE: Final = re.compile(r"(.+)-(\d+)=(-?\d+)")
_DEEPEST: Final = 64


def is_text(text: str, at: int) -> bool:
    """Return whether the request at index `at` is in a form of Kafka 2.7 or older."""
    return _form(text, at) is not None


def _form(text: str, at: int) -> re.Pattern[str] | None:
    return next((form for start, form in _HEADERS.items() if text.startswith(start, at)), None)


def text_request(text: str, at: int) -> dict[str, Any]:
    """Return an old line's request in the shape of the JSON; raise `ValueError` with what is missing."""
    form = _form(text, at)
    header = form.match(text, at) if form is not None else None
    if header is None:
        raise ValueError("no request header")
    # The last one, for a body may hold anything.
    tail = _TAIL.match(text, max(text.rfind(" from connection "), text.rfind(" from client "), 0))
    if tail is None:
        raise ValueError("the line ends before its times")
    if form is _HEADER and tail["listener"] is None:  # the last time may have been cut as well
        raise ValueError("the line ends directly after its times: it may be cut off")
    api, client = header["api"], header["client"]
    body = text[header.end() : tail.start()]
    request: dict[str, Any] | None
    response: dict[str, Any] | None
    if form is _SCALA_HEADER:
        api = _BY_CLASS.get(api) or "_".join(_WORD.split(api.removesuffix("Request"))).upper()
        client = header["some"] or client
        request, response = _scala_body(api, body), None
    else:
        if form is _STRUCT_HEADER:
            api = _BY_NUMBER[int(api)] if int(api) < len(_BY_NUMBER) else f"API_{api}"
        request, response = _bodies(body)
    if request is not None:
        for old in _RENAMED.keys() & request.keys():
            request[_RENAMED[old]] = request.pop(old)
    adapt = _ADAPTED.get(api, _as_it_is)
    try:
        adapt(request or {}, response or {})
    except (AttributeError, TypeError, KeyError):
        request = response = None
    return {
        "requestHeader": {"requestApiKeyName": api, "clientId": client},
        "request": request,
        "response": response,
        "listener": tail["listener"],
        # Until 0.10 they are differences of two readings of the wall clock, which may go back.
        **{name: max(float((tail[group] or "0").replace(",", ".")), 0.0) for name, group in _TIMES.items()},
    }


def _scala_body(api: str, text: str) -> dict[str, Any]:
    """Return the fields in a Scala request's description; at TRACE it also has the partitions."""
    fields = {name: int(value) for name, value in _SCALA_FIELD.findall(text)}
    body: dict[str, Any] = {new: fields[old] for old, new in _SCALA_FIELDS.items() if old in fields}
    if api == "PRODUCE":
        body["partitionSizes"] = [f"{topic}-{partition}=0" for topic, partition in _SCALA_SIZE.findall(text)]
    elif api == "FETCH":
        body["topics"] = [
            {"topic": topic, "partitions": [{"partition": int(partition), "fetchOffset": int(offset)}]}
            for topic, partition, offset in _SCALA_OFFSET.findall(text)
        ]
    elif (group := re.search(r"; GroupId: ?(.*?)(?=; [A-Z]\w+: ?|$)", text)) is not None:
        body["groupId"] = group[1]
    return body


def _bodies(text: str) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    try:
        request, end = _value(text, 0, 0)
        if end == len(text) and isinstance(request, dict):  # until 0.11 there is no response
            return request, None
        if not text.startswith(",response:", end) or not isinstance(request, dict):
            return None, None
        at = end + len(",response:")
        # acks=0 has no response.
        response, _ = _value(text, at, 0) if at < len(text) else (None, at)
    except ValueError:
        return None, None
    return request, response if isinstance(response, dict) else None


def _value(text: str, at: int, depth: int) -> tuple[Any, int]:
    """Read one value: a structure, a list, or plain text; return the value and the index of its end."""
    if depth > _DEEPEST:
        raise ValueError("nested too deeply")
    if text.startswith("{", at):
        fields: dict[str, Any] = {}
        at += 1
        while not text.startswith("}", at):
            name = _NAME.match(text, at)
            if name is None:
                raise ValueError(f"no field name at character {at}")
            fields[_camel(name[1])], at = _value(text, name.end(), depth + 1)
            at = _past_comma(text, at, "}")
        return fields, at + 1
    if text.startswith("[", at):
        items: list[Any] = []
        at += 1
        while not text.startswith("]", at):
            item, at = _value(text, at, depth + 1)
            items.append(item)
            at = _past_comma(text, at, "]")
        return items, at + 1
    return _plain(text, at)


def _past_comma(text: str, at: int, end: str) -> int:
    if text.startswith(",", at):
        return at + 1 + (text.startswith(" ", at + 1))
    if text.startswith(end, at):
        return at
    raise ValueError(f"expected , or {end} at character {at}")


def _plain(text: str, at: int) -> tuple[Any, int]:
    """Read text up to the comma or bracket that ends it. Pairs of brackets are part of the text: buffers print them."""
    start, inside = at, 0
    if simple := _SIMPLE.match(text, at):
        at = simple.end()
    while at < len(text):
        char = text[at]
        if char in "([":
            inside += 1
        elif inside and char in ")]":
            inside -= 1
        elif not inside and char in ",}]":
            break
        at += 1
    else:
        raise ValueError("the text ends inside a value")
    value = text[start:at]
    if value == "null":
        return None, at
    return (int(value) if _INTEGER.fullmatch(value) else value), at


def _camel(name: str) -> str:
    first, *rest = name.split("_") if not name.startswith("_") else [name]
    return first + "".join(part.title() for part in rest)


def _as_it_is(request: dict[str, Any], response: dict[str, Any]) -> None:
    """Do nothing: the fields that are read already match the JSON."""


def _adapt_produce(request: dict[str, Any], response: dict[str, Any]) -> None:
    topics: dict[str, list[Mapping[str, Any]]] = {}
    for size in request.get("partitionSizes", []):
        match = _PARTITION_SIZE.fullmatch(size)
        if match is not None:
            topics.setdefault(match[1], []).append({"index": int(match[2])})
    request["topicData"] = [{"name": name, "partitionData": partitions} for name, partitions in topics.items()]
    for topic in response.get("responses", []):
        for partition in topic["partitionResponses"]:
            if "partition" in partition:
                partition["index"] = partition.pop("partition")
    if not topics and response:
        # At DEBUG only the response names the partitions.
        request["topicData"] = [
            {"name": t["topic"], "partitionData": [{"index": p["index"]} for p in t["partitionResponses"]]}
            for t in response.get("responses", [])
        ]


def _adapt_fetch(request: dict[str, Any], response: dict[str, Any]) -> None:
    for topic in response.get("responses", []):
        # Since 2.7 without the header between.
        partitions = [partition.get("partitionHeader", partition) for partition in topic.pop("partitionResponses")]
        topic["partitions"] = partitions
        for partition in partitions:
            partition["partitionIndex"] = partition.pop("partition")


def _adapt_delete_records(request: dict[str, Any], response: dict[str, Any]) -> None:
    for topic in request.get("topics", []):
        for partition in topic["partitions"]:
            if "partition" in partition:
                partition["partitionIndex"] = partition.pop("partition")


_ADAPTED: Final = {"PRODUCE": _adapt_produce, "FETCH": _adapt_fetch, "DELETE_RECORDS": _adapt_delete_records}
