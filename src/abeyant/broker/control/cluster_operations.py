"""Control brokers and the clock over HTTP: pause, stop, start, close connections, advance the clock."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from abeyant.broker.api.contents import leaders
from abeyant.broker.control.operation import ControlRequest, Operation
from abeyant.broker.control.schema import nullable, obj, seconds, several, text, whole
from abeyant.web import HttpError

if TYPE_CHECKING:
    from abeyant.broker.control.ordered import Control

_DAY = 86_400  # seconds: the longest step, since everything that happens in it is processed at once

_BROKER = obj(
    {
        "id": whole("Its node.id."),
        "address": text("Host and port."),
        "state": {"type": "string", "enum": ["running", "paused", "stopped"]},
        "connections": whole("Open connections of clients."),
        "leads": whole("Partitions that it leads."),
    }
)
_CLOCK = obj(
    {
        "held": {"type": "boolean", "description": "Whether time stands still until advanced."},
        "runs": {"type": "boolean", "description": "Whether time passes by itself."},
        "now": {"type": "number", "description": "Seconds on the cluster's clock, as in /waiting."},
        "now_ms": whole("Milliseconds since 1970, as in timestamps of records.", most=1 << 62),
        "next": nullable({"type": "number", "description": "Seconds until the next deadline; null if there is none."}),
    }
)
_CONNECTIONS = obj(
    {
        "broker": whole("Only connections to this broker."),
        "client_id": {"type": "string", "description": "Only connections of this client."},
    },
    (),
)
_CLUSTER = obj(
    {
        "bootstrap": text("For bootstrap.servers."),
        "ca_file": nullable(text("PEM file of the generated certificate authority; null if none was generated.")),
        "brokers": several(_BROKER),
        "clock": _CLOCK,
    }
)
_PASSED = obj({"passed": nullable({"type": "number", "description": "Seconds that passed; null without a deadline."})})


def _cluster(control: Control, request: ControlRequest) -> dict[str, Any]:
    cluster = control.cluster
    return {
        "bootstrap": cluster.bootstrap,
        "ca_file": None if cluster.ca_file is None else str(cluster.ca_file),
        "brokers": _brokers(control),
        "clock": _clock(control, request),
    }


def _brokers(control: Control) -> list[dict[str, Any]]:
    cluster = control.cluster

    def read() -> list[dict[str, Any]]:
        counts = leaders(cluster)
        return [
            {
                "id": number,
                "address": broker.address,
                "state": "stopped" if broker.stopped else "paused" if broker.paused else "running",
                "connections": len(broker.connections),
                "leads": counts[number],
            }
            for number, broker in cluster.brokers.items()
        ]

    return cluster._settled(read)


def _broker(control: Control, request: ControlRequest) -> dict[str, Any]:
    brokers = _brokers(control)
    for broker in brokers:
        if broker["id"] == request.path["broker"]:
            return broker
    raise HttpError(
        404, f"there is no broker {request.path['broker']}: there are {[broker['id'] for broker in brokers]}"
    )


def _change(change: str, control: Control, request: ControlRequest) -> dict[str, Any]:
    _broker(control, request)
    getattr(control.cluster, change)(request.path["broker"])
    return _broker(control, request)


def _drop(control: Control, request: ControlRequest) -> dict[str, Any]:
    body = request.body or {}
    if "broker" in body:
        _broker(control, request._replace(path={"broker": body["broker"]}))
    return {"closed": control.cluster.drop_connections(broker=body.get("broker"), client_id=body.get("client_id"))}


def _clock(control: Control, request: ControlRequest) -> dict[str, Any]:
    clock = control.cluster.clock

    def read() -> dict[str, Any]:
        upcoming = clock.timer.next_expiration()
        now = clock.now()
        remaining = None if upcoming is None else max(upcoming - now, 0.0)
        return {"held": clock.held, "runs": clock.runs, "now": now, "now_ms": clock.now_ms(), "next": remaining}

    return control.cluster._settled(read)


def _advance(control: Control, request: ControlRequest) -> dict[str, Any]:
    control.cluster.clock.advance(request.body["seconds"])
    return _clock(control, request)


def _run_clock(control: Control, request: ControlRequest) -> dict[str, Any]:
    control.cluster.clock.run()
    return _clock(control, request)


def _hold(control: Control, request: ControlRequest) -> dict[str, Any]:
    control.cluster.clock.hold()
    return _clock(control, request)


def _next(control: Control, request: ControlRequest) -> dict[str, Any]:
    return {"passed": control.cluster.clock.advance_to_next()}


_ABOUT = {
    "pause": "Pause a broker, as under SIGSTOP: connections stay open, and it does nothing.",
    "resume": "Resume a paused broker.",
    "stop": "Stop a broker: its connections close, others become leaders; records in memory are lost.",
    "start": "Start a stopped broker again, at the same port.",
}

OPERATIONS = (
    Operation(
        "GET", "/cluster", "readCluster", "Read where clients connect, the brokers and the clock.", _cluster,
        _CLUSTER,
    ),
    Operation("GET", "/brokers/{broker}", "readBroker", "Read a broker's state.", _broker, _BROKER),
    *(
        Operation(
            "POST", f"/brokers/{{broker}}/{change}", f"{change}Broker", about,
            partial(_change, change), _BROKER,
        )
        for change, about in _ABOUT.items()
    ),
    Operation(
        "POST", "/connections/drop", "dropConnections", "Close the connections open now; without a body, all.",
        _drop, obj({"closed": whole("How many.")}),
        body=_CONNECTIONS,
    ),
    Operation("GET", "/clock", "readClock", "Read the clock.", _clock, _CLOCK),
    Operation(
        "POST", "/clock/advance", "advanceClock", "Advance a held clock.", _advance, _CLOCK,
        body=obj({"seconds": seconds("How long.", _DAY)}),
    ),
    Operation("POST", "/clock/run", "runClock", "Let a held clock run in real time.", _run_clock, _CLOCK),
    Operation("POST", "/clock/hold", "holdClock", "Hold the clock again.", _hold, _CLOCK),
    Operation(
        "POST", "/clock/next", "advanceClockToNext", "Advance a held clock to the next deadline.", _next, _PASSED,
    ),
)  # fmt: skip
