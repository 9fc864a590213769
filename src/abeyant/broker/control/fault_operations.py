"""Inject, list, await and end faults over HTTP, and list the requests that are pending in brokers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from abeyant.broker.api.faults import Fault
from abeyant.broker.control.operation import ControlRequest, Operation
from abeyant.broker.control.schema import Schema, nullable, obj, seconds, several, text, whole
from abeyant.broker.delayed.operation import Waiting
from abeyant.broker.requests.common.named import REPLICA_FETCH
from abeyant.broker.wire.apis import BY_NAME
from abeyant.broker.wire.schema import ErrorCode
from abeyant.web import HttpError

if TYPE_CHECKING:
    from abeyant.broker.control.ordered import Control

_WHERE = ("topic", "partition", "broker", "client_id", "group", "transactional_id")
_OWN: dict[str, tuple[str, ...]] = {
    "fail": ("error",), "delay": ("seconds",), "throttle": ("seconds",), "drop": ("response",), "observe": (),
}  # fmt: skip
_PATIENCE = 600  # seconds: the longest `timeout` of a waiting request
_TIMEOUT = seconds("Seconds of real time to wait; then 409.", _PATIENCE, default=10)

_API: Schema = {
    "type": "string",
    "enum": sorted([*BY_NAME, REPLICA_FETCH]),
    "description": "Kafka's name of the API; ReplicaFetch is a follower's fetch. Default: all.",
}
_ERRORS = sorted(name.upper() for name in ErrorCode.__members__ if name != "none")
_SELECTORS: dict[str, Schema] = {
    "api": _API,
    "topic": text("Requests that name this topic."),
    "partition": whole("Of that topic."),
    "broker": whole("Requests that this broker receives."),
    "client_id": {"type": "string", "description": "Requests of this client."},
    "group": text("Requests that name this group."),
    "transactional_id": text("Requests that name this transactional id."),
}
_COUNTS: dict[str, Schema] = {
    "times": whole("How many requests to hit; default: no limit.", 1),
    "nth": whole("The first matching request to hit.", 1, default=1),
}


def _fault(action: str, about: str, **fields: Schema) -> Schema:
    properties = {"action": {"type": "string", "const": action}, **fields, **_SELECTORS, **_COUNTS}
    required = ("action", *(name for name in fields if name != "response"))
    return obj(properties, required, title=action, description=about)


_NEW_FAULT: Schema = {
    "oneOf": [
        _fault(
            "fail", "Answer with an error and do nothing else.",
            error={"type": "string", "enum": _ERRORS, "description": "Kafka's name of the error."},
        ),
        _fault(
            "delay", "Handle the requests later, on the cluster's clock.",
            seconds={"type": "number", "exclusiveMinimum": 0, "maximum": 3_000_000_000, "description": "Seconds."},
        ),
        _fault(
            "throttle", "Answer with a throttle time, and read nothing more of the connection until it is over.",
            seconds={"type": "number", "minimum": 0.001, "maximum": 2_000_000, "description": "Seconds."},
        ),
        _fault(
            "drop", "Lose the requests: close the connection.",
            response={"type": "boolean", "description": "Handle the request, lose its response.", "default": False},
        ),
        _fault("observe", "Count the requests, and handle them as usual."),
    ],
    "discriminator": {"propertyName": "action"},
}  # fmt: skip

_MISS = obj(
    {
        "selector": text("Which selector did not match."),
        "wanted": {"type": ["string", "integer"], "description": "What the fault selects."},
        "found": {"type": "string", "description": "What the requests had."},
        "api": text("Their API."),
        "requests": whole("How many."),
    }
)
_FAULT = obj(
    {
        "id": whole("Identifies it in other operations."),
        "what": text("What it does, for people to read."),
        "selects": obj(_SELECTORS, (), description="Selectors of requests."),
        "times": nullable(_COUNTS["times"]),
        "nth": _COUNTS["nth"],
        "matched": whole("Requests that have matched."),
        "hits": whole("Requests that it has hit."),
        "active": {"type": "boolean", "description": "Whether it can still fire."},
        "near_misses": several(_MISS, description="Requests that matched all selectors but one, most frequent first."),
    }
)
_WAITING = obj(
    {
        "broker": whole("Where it waits."),
        "kind": text("The purgatory; of a held request, its API."),
        "keys": several(
            several({"type": ["string", "integer"]}), description="Topic and partition, or group and member."
        ),
        "client_id": {"type": "string", "description": "The client's id."},
        "since": {"type": "number", "description": "Seconds on the cluster's clock."},
        "left": nullable({"type": "number", "description": "Seconds until it expires; null for never."}),
        "held_by": {"type": "string", "description": "delay, throttle, pause, or empty."},
    }
)


def _shown(fault: Fault) -> dict[str, Any]:
    return {
        "id": fault.id, "what": repr(fault)[8:-1], "selects": fault.target.chosen(), "times": fault.times,
        "nth": fault.nth, "matched": fault.matched, "hits": fault.hits, "active": fault.active,
        "near_misses": [miss._asdict() for miss in fault.near_misses()],
    }  # fmt: skip


def _order(control: Control, request: ControlRequest) -> dict[str, Any]:
    body = request.body
    selectors = {name: body[name] for name in (*_WHERE, "times", "nth", *_OWN[body["action"]]) if name in body}
    order: Callable[..., Fault] = getattr(control.cluster, body["action"])
    fault = order(body.get("api"), **selectors)
    control.keep(fault)
    return _shown(fault)


def _list(control: Control, request: ControlRequest) -> dict[str, Any]:
    return {"faults": [_shown(fault) for fault in control.faults().values()]}


def _read(control: Control, request: ControlRequest) -> dict[str, Any]:
    return _shown(_named(control, request))


def _named(control: Control, request: ControlRequest) -> Fault:
    faults = control.faults()
    fault = faults.get(request.path["fault"])
    if fault is None:
        raise HttpError(404, f"there is no fault {request.path['fault']}; there are {sorted(faults) or 'none'}")
    return fault


def _end(control: Control, request: ControlRequest) -> dict[str, Any]:
    fault = _named(control, request)
    fault.end()
    return _shown(fault)


def _end_all(control: Control, request: ControlRequest) -> dict[str, Any]:
    faults = control.cluster.faults()
    for fault in faults:
        fault.end()
    return {"ended": len(faults)}


def _wait(control: Control, request: ControlRequest) -> dict[str, Any]:
    fault = _named(control, request)
    fault.wait(request.query.get("hits", 1), timeout=request.query.get("timeout", 10.0))
    return _shown(fault)


def _waiting(control: Control, request: ControlRequest) -> dict[str, Any]:
    kind, client, count = (request.query.get(name) for name in ("kind", "client_id", "count"))
    cluster = control.cluster
    if count is None:
        operations = cluster.waiting(kind, client_id=client)
    elif kind is None:
        raise HttpError(409, "query.count needs query.kind: add kind=Produce, for instance")
    else:
        operations = cluster.until_waiting(kind, count, client_id=client, timeout=request.query.get("timeout", 10.0))
    now = cluster.clock.now()
    return {"waiting": [_row(operation, now) for operation in operations]}


def _row(operation: Waiting, now: float) -> dict[str, Any]:
    remaining = None if math.isinf(operation.deadline) else round(operation.deadline - now, 9)
    return {
        "broker": operation.broker, "kind": operation.kind, "keys": [list(key) for key in operation.keys],
        "client_id": operation.client_id, "since": operation.since, "left": remaining, "held_by": operation.held_by,
    }  # fmt: skip


OPERATIONS = (
    Operation(
        "GET", "/faults", "listFaults", "List the faults: those that are active, and those ordered here.",
        _list, obj({"faults": several(_FAULT)}),
    ),
    Operation("POST", "/faults", "orderFault", "Order a fault.", _order, _FAULT, body=_NEW_FAULT),
    Operation("DELETE", "/faults", "endFaults", "End all faults.", _end_all, obj({"ended": whole("How many.")})),
    Operation("GET", "/faults/{fault}", "readFault", "Read a fault: its hits, and what nearly matched.", _read, _FAULT),
    Operation("DELETE", "/faults/{fault}", "endFault", "End a fault.", _end, _FAULT),
    Operation(
        "GET", "/faults/{fault}/wait", "awaitFault", "Wait until a fault has fired; 409 at once if it has ended.",
        _wait, _FAULT,
        query={"hits": whole("How often, in all.", 1, default=1), "timeout": _TIMEOUT},
    ),
    Operation(
        "GET", "/waiting", "listWaiting", "List waiting requests; with count, wait until there are so many.",
        _waiting, obj({"waiting": several(_WAITING)}),
        query={
            "kind": text("A purgatory, Produce for instance, or an API."),
            "client_id": text("A client's id."),
            "count": whole("Wait until so many wait; needs kind.", 1),
            "timeout": _TIMEOUT,
        },
    ),
)  # fmt: skip
