"""Build the JSON Schemas of the API, and check requests against them."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from abeyant.errors import did_you_mean
from abeyant.web import HttpError

Schema = Mapping[str, Any]

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "object": (dict,),
    "array": (list,),
}
_LONG: Final = 200  # maximum characters of a value in a message
_SHOWN_CHOICES: Final = 8  # maximum valid values in a message


def text(about: str, **more: Any) -> Schema:
    """Return the schema of a non-empty text."""
    return {"type": "string", "minLength": 1, "description": about, **more}


def whole(about: str, least: int = 0, most: int = (1 << 31) - 1, **more: Any) -> Schema:
    """Return the schema of a whole number."""
    return {"type": "integer", "minimum": least, "maximum": most, "description": about, **more}


def seconds(about: str, most: float, **more: Any) -> Schema:
    """Return the schema of a time in seconds."""
    return {"type": "number", "minimum": 0, "maximum": most, "description": about, **more}


def obj(properties: Mapping[str, Schema], required: tuple[str, ...] | None = None, **more: Any) -> Schema:
    """Return the schema of an object with exactly these properties; by default all are required."""
    required_names = list(properties) if required is None else list(required)
    schema = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return {**schema, "required": required_names} if required_names else schema


def several(items: Schema, **more: Any) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **more}


def nullable(schema: Schema) -> Schema:
    """Return a schema that also allows null."""
    return {**schema, "type": [schema["type"], "null"]}


def check(schema: Schema, value: Any, where: str) -> None:
    """Raise HttpError 400 unless `value` matches `schema`; the message names the value, the place and the fix."""
    if "oneOf" in schema:
        schema = _variant(schema, value, where)
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if not any(_is(value, name) for name in types):
        raise HttpError(400, f"{where} must be {' or '.join(types)}, not {_shown(value)}")
    if "const" in schema and value != schema["const"]:
        raise HttpError(400, f"{where} must be {schema['const']!r}, not {_shown(value)}")
    if "enum" in schema and value not in schema["enum"]:
        choices = [choice for choice in schema["enum"] if isinstance(choice, str)]
        suffix = f", ... ({len(choices)} in all: GET /openapi.json)" if len(choices) > _SHOWN_CHOICES else ""
        hint = did_you_mean(str(value), choices) or f": one of {', '.join(choices[:_SHOWN_CHOICES])}{suffix}"
        raise HttpError(400, f"{where} cannot be {_shown(value)}{hint}")
    if isinstance(value, str) and len(value) < schema.get("minLength", 0):
        raise HttpError(400, f"{where} must not be empty")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        _check_range(schema, value, where)
    if isinstance(value, list):
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", math.inf):
            raise HttpError(
                400, f"{where} has {len(value)} entries, but must have {_range(schema, 'minItems', 'maxItems')}"
            )
        for number, item in enumerate(value):
            check(schema["items"], item, f"{where}[{number}]")
    if isinstance(value, dict):
        _check_object(schema, value, where)


def _variant(schema: Schema, value: Any, where: str) -> Schema:
    """Return the variant of a `oneOf` that its discriminator chooses."""
    name = schema["discriminator"]["propertyName"]
    variants = {option["properties"][name]["const"]: option for option in schema["oneOf"]}
    if not isinstance(value, dict):
        raise HttpError(400, f"{where} must be an object, not {_shown(value)}")
    choice = value.get(name)
    if not isinstance(choice, str) or choice not in variants:
        hint = did_you_mean(str(choice), variants) if isinstance(choice, str) else ""
        raise HttpError(400, f"{where}.{name} must be one of {', '.join(variants)}, not {_shown(choice)}{hint}")
    variant: Schema = variants[choice]
    return variant


def _check_range(schema: Schema, value: float, where: str) -> None:
    least, most = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    above = schema.get("exclusiveMinimum", -math.inf)
    if not (least <= value <= most and value > above):
        raise HttpError(400, f"{where} must be {_range(schema, 'minimum', 'maximum')}, not {_shown(value)}")


def _range(schema: Schema, least: str, most: str) -> str:
    if "exclusiveMinimum" in schema:
        return f"more than {schema['exclusiveMinimum']} and at most {schema[most]}"
    return f"from {schema.get(least, 0)} to {schema[most]}" if most in schema else f"{schema.get(least, 0)} or more"


def _check_object(schema: Schema, value: Mapping[str, Any], where: str) -> None:
    properties = schema.get("properties", {})
    additional = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in properties:
            check(properties[name], item, f"{where}.{name}")
        elif additional is False:
            hint = did_you_mean(name, properties) or (f": it may have {', '.join(properties)}" if properties else "")
            raise HttpError(400, f"{where} cannot have {_shown(name)}{hint}")
        elif additional is not True:
            check(additional, item, f"{where}.{name}")
    for name in schema.get("required", ()):
        if name not in value:
            raise HttpError(400, f"{where} lacks {name}")


def _is(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, float):
        return name == "number" and math.isfinite(value)
    return isinstance(value, _TYPES[name])


def with_integers(value: Any) -> Any:
    """Return a JSON value with whole floats as ints, since 1.0 is an integer in JSON Schema."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [with_integers(item) for item in value]
    if isinstance(value, dict):
        return {name: with_integers(item) for name, item in value.items()}
    return value


def _shown(value: Any) -> str:
    """Return a value as JSON for a message, cut if long. Strings get single quotes, since messages are sent as JSON."""
    literal = repr(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return literal if len(literal) <= _LONG else f"{literal[:_LONG]}..."


def from_text(schema: Schema, value: str, where: str) -> Any:
    """Convert a parameter of the query or path to its schema's type. Raises HttpError 400."""
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    result: Any = value
    if "integer" in types or "number" in types:
        try:
            result = int(value) if "integer" in types else float(value)
        except ValueError:
            raise HttpError(400, f"{where} must be {types[0]}, not {_shown(value)}") from None
        if not value.isascii() or "_" in value or value != value.strip():
            raise HttpError(400, f"{where} must be {types[0]}, not {_shown(value)}")
    elif "boolean" in types:
        if value not in ("true", "false"):
            raise HttpError(400, f"{where} must be true or false, not {_shown(value)}")
        result = value == "true"
    check(schema, result, where)
    return result
