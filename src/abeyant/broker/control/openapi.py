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
    """Return the `{names}` in a path."""
    return re.findall(r"\{(\w+)\}", path)


def describe(operations: Iterable[Operation], version: str) -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, dict[str, Any]] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
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


def _operation(one: Operation) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": PATHS[name]} for name in parameters_of(one.path)
    ]
    parameters += [{"name": name, "in": "query", "schema": schema} for name, schema in one.query.items()]
    done = {"200": _json("Done.", one.answer)} if one.answer is not None else {"204": {"description": "Done."}}
    refusals = {code: _json(about, {"$ref": "#/components/schemas/Error"}) for code, about in _REFUSALS.items()}
    found: dict[str, Any] = {
        "operationId": one.id,
        "summary": one.about,
        "tags": [one.path.split("/")[1]],
        "parameters": parameters,
        "responses": {**done, **refusals},
    }
    if one.body is not None:
        found["requestBody"] = {"required": bool(_required(one.body)), "content": _content(one.body)}
    return found


def _required(body: Schema) -> bool:
    return "oneOf" in body or bool(body.get("required"))


def _json(about: str, schema: Schema) -> dict[str, Any]:
    return {"description": about, "content": _content(schema)}


def _content(schema: Schema) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
