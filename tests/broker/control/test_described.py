"""The API keeps what its own description says, for whatever schemathesis thinks of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from abeyant.broker import Cluster, control
from abeyant.broker.control.serving import OPERATIONS

schemathesis: Any = pytest.importorskip("schemathesis")


@pytest.fixture(scope="module")
def api() -> Iterator[Any]:
    """A cluster with a bit of everything, and its description as it is served."""
    with Cluster(brokers=2, clock="held") as kafka, control.serve(kafka) as server:
        kafka.create_topic("orders", partitions=2)
        kafka.create_topic("kept", config={"cleanup.policy": "compact"})
        kafka.seed("orders", [b"one", b"\xff", None])
        kafka.commit("billing", {("orders", 0): 1})
        kafka.fail("Produce", error="NOT_LEADER_OR_FOLLOWER")
        yield schemathesis.openapi.from_url(f"{server.url}openapi.json")


def shortened(case: Any) -> None:
    """Nothing waits, and little time passes: what the cases have else is sent as it is."""
    if case.path.endswith("/wait") or case.path == "/waiting":
        query = dict(case.query or {})
        if is_number(query.get("timeout", 10)):
            case.query = {**query, "timeout": 0}
    if case.path == "/clock/advance" and isinstance(case.body, dict) and is_number(case.body.get("seconds"), 86_400):
        case.body["seconds"] /= 1e5
    if case.path.endswith("/records") and isinstance(case.body, dict) and isinstance(case.body.get("records"), list):
        for record in case.body["records"]:
            if isinstance(record, dict) and record.get("encoding") == "base64":
                del record["encoding"]  # a schema can say that it is base64, and no more


def is_number(value: object, most: float = 600) -> bool:
    return type(value) in (int, float) and 0 <= value <= most  # type: ignore[operator]


@pytest.mark.parametrize("mode", [one.value for one in schemathesis.GenerationMode])
@pytest.mark.parametrize("name", [one.id for one in OPERATIONS])
def test_every_operation_keeps_its_description(api: Any, name: str, mode: Any) -> None:
    [operation] = [one.ok() for one in api.get_all_operations() if one.ok().definition.raw["operationId"] == name]
    numbered = any(one.definition["schema"]["type"] == "integer" for one in operation.path_parameters)
    if mode == "negative" and not (numbered or operation.query or operation.body):
        pytest.skip("any text is valid in its path")

    @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
    @settings(
        max_examples=5, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def run(case: Any) -> None:
        shortened(case)
        case.call_and_validate()

    run()
