"""Generate the API's OpenAPI 3.1 description from its operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from abeyant.broker.control.operation import Operation
from abeyant.broker.control.schema import Schema, obj, text, whole

PATHS: dict[str, Schema] = {
    "broker": whole("A broker's id."),
    "fault": whole("A fault's id.", 1),
    "topic": text("A topic's name."),
    "group": text("A group's id."),
    "transaction": text("A transactional id."),
}
_ERROR = obj({"error": text("What is wrong, where, and what to do.")})
_REFUSALS = {
    "400": "A value is invalid: the message names it.",
    "401": "A token is required.",
    "403": "The request comes from a page of another site.",
    "404": "The named thing does not exist.",
    "409": "The cluster refuses, or the wait timed out.",
    "413": "The body is too large.",
    "415": "The body's content-type is not application/json.",
}


def parameters_of(path: str) -> list[str]:
    """Return the names in braces in a path: ["topic"] for "/topics/{topic}"."""
    return re.findall(r"\{(\w+)\}", path)


def describe(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Abeyant broker control",
            "version": version,
            "description": "Faults, pauses, the clock and contents of a Kafka-compatible cluster for tests.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _operation(operation: Operation) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": PATHS[name]} for name in parameters_of(operation.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in operation.query.items()]
    success = (
        {"200": _json("Done.", operation.answer)} if operation.answer is not None else {"204": {"description": "Done."}}
    )
    refusals = {code: _json(about, {"$ref": "#/components/schemas/Error"}) for code, about in _REFUSALS.items()}
    description: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.about,
        "tags": [operation.path.split("/")[1]],
        "parameters": parameters,
        "responses": {**success, **refusals},
    }
    if operation.body is not None:
        description["requestBody"] = {"required": bool(_required(operation.body)), "content": _content(operation.body)}
    return description


def _required(body: Schema) -> bool:
    return "oneOf" in body or bool(body.get("required"))


def _json(about: str, schema: Schema) -> dict[str, Any]:
    return {"description": about, "content": _content(schema)}


def _content(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
