"""Control clients over HTTP: set their quotas, and list the metrics that they push."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from abeyant.broker.control.operation import ControlRequest, Operation
from abeyant.broker.control.schema import nullable, obj, several, text, whole
from abeyant.broker.quotas.table import CONNECTION, FETCH, MUTATION, PRODUCE, REQUEST

if TYPE_CHECKING:
    from abeyant.broker.control.ordered import Control

_RATES = {
    PRODUCE: "Bytes per second of each client's produces.",
    FETCH: "Bytes per second of each client's fetches.",
    REQUEST: "Percent of a thread's time.",
    MUTATION: "Partitions created and deleted per second.",
    CONNECTION: "Connections per second of an address.",
}
_QUOTAS = obj(
    {
        "quotas": obj(
            {name: nullable({"type": "number", "description": about}) for name, about in _RATES.items()}, (),
            description="null removes a quota.",
        ),
        "user": text("Quotas of this user; with client_id, of that client of this user."),
        "client_id": text("Quotas of this client id; without user, client_id and ip, of every client id."),
        "ip": text("Quotas of this address; by default connection_creation_rate is of every address."),
    },
    ("quotas",),
)  # fmt: skip
_PUSHED = obj(
    {
        "broker": whole("The broker that it pushes to."),
        "client_instance_id": text("Kafka's clientInstanceId."),
        "client_id": {"type": "string"},
        "software": obj({"name": {"type": "string"}, "version": {"type": "string"}}),
        "pushes": whole("Accepted pushes."),
        "size": whole("Bytes of all pushes.", most=(1 << 63) - 1),
        "metrics": several({"type": "string"}, description="Names in its last push."),
        "terminated": {"type": "boolean", "description": "Whether that was its last push for good."},
    }
)


def _set_quotas(control: Control, request: ControlRequest) -> None:
    body = request.body
    control.cluster.set_quotas(
        body["quotas"], user=body.get("user"), client_id=body.get("client_id"), ip=body.get("ip")
    )


def _pushed(control: Control, request: ControlRequest) -> dict[str, Any]:
    rows = [client._asdict() for client in control.cluster.pushed_metrics()]
    for row in rows:
        row["software"] = dict(zip(("name", "version"), row["software"], strict=True))
    return {"clients": rows}


OPERATIONS = (
    Operation("POST", "/quotas", "setQuotas", "Set or remove client quotas.", _set_quotas, body=_QUOTAS),
    Operation(
        "GET", "/pushed-metrics", "listPushedMetrics", "List what clients have pushed of their own metrics.", _pushed,
        obj({"clients": several(_PUSHED)}),
    ),
)  # fmt: skip
