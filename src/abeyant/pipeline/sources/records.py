"""Read records of one JSON object each (of a Kafka topic, or lines of files) as operations and events.

    value, record ── the object's fields ── columns, as the mapping says ── converted to their types ── reason

A record that cannot be read is rejected with a reason. A stream goes on after text that is not JSON, a field that is
missing or of another type, and an expression that fails.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DayTimeIntervalType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from abeyant.pipeline.schemas import EVENTS, FURTHER, HOW_LONG, OPERATIONS, REJECT_REASON, REJECTED_ROW, SchemaError
from abeyant.pipeline.sources.expressions import fields_named, null_on_error
from abeyant.pipeline.sources.tables import (
    Name,
    cast_or_null,
    check_mapped,
    default,
    duration_of,
    is_readable,
    unreadable_reason,
)
from abeyant.pipeline.spark.columns import conversion

__all__ = ["read_events", "read_operations"]

_TEXT: Final = StringType()
_WATCHES: Final = "array<struct<key string, required long>>"
_NEEDED: Final = ("op_id", "start", *HOW_LONG, "at")
_DEFAULTED: Final = ("instance", "required", "progress")  # a null `kind` or `condition` is a value
_VALUE: Final = "_value"
_BYTES: Final = "_bytes"
_OBJECT: Final = "_object"
_END: Final = "_end"
_STRICT: Final = {"allowSingleQuotes": "false", "allowNonNumericNumbers": "false"}


def read_operations(
    records: DataFrame, columns: Mapping[str, str] | None = None, fields: StructType | None = None
) -> DataFrame:
    """Return records as `operations`, with `REJECT_REASON` and `REJECTED_ROW` where `resolve_stream` is to reject them.

    `records` has `value` (text or bytes, one JSON object) and `record`, a struct with its origin (file, or topic,
    partition and offset). `columns` are SQL expressions over the object's fields and `record`; a column without an
    expression is the field of the same name. `fields` are the object's fields with their types; further fields that
    `columns` name are read as text. Instead of `watches` there may be `key` and `required`. If a field is missing,
    `instance` is '' and `required` 1. Records do not show which columns there are. So optional columns such as
    `timeout`, `deadline` and `cancel_key` are read only if `columns` or `fields` name them, and `role` only if the type
    of `watches` has it.

    Raises `AbeyantError` for an expression that Spark cannot analyze, `SchemaError` for an expression of a wrong type.
    """
    declared = [field for field in fields or () if not isinstance(field.dataType, StructType | ArrayType | MapType)]
    column_names = {*(columns or {}), *(field.name.lower() for field in declared)}
    how_long = next((name for name in HOW_LONG if name in column_names), HOW_LONG[0])
    kinds = {"timeout": DayTimeIntervalType(), "deadline": TimestampType()}
    plain = [
        StructField(how_long, kinds[how_long]) if field.name == "timeout_ms" and how_long in kinds else field
        for field in OPERATIONS.fields
        if field.name != "watches"
    ]
    plain += [StructField(name, kind) for name, kind in FURTHER.items() if name in column_names]
    single = [StructField("key", _TEXT), StructField("required", LongType())]
    reader = _Opened(records, "operations", [*plain, *single, StructField("watches", _TEXT)], columns, fields)
    values = {field.name: reader.read(field) for field in [*plain, *single]}
    watches, no_watches = _watches(reader, values["key"], values["required"])
    reasons = [reason for field in [*plain, *single] for reason in reader.reasons(field)]
    names = [field.name for field in plain]
    names.insert(OPERATIONS.fieldNames().index("watches"), "watches")
    return reader.table({**values, "watches": watches}, names, [*reasons, no_watches])


def read_events(
    records: DataFrame, columns: Mapping[str, str] | None = None, fields: StructType | None = None
) -> DataFrame:
    """Return records as `events`, in the same way as `read_operations`. If the field is missing, `progress` is 1."""
    reader = _Opened(records, "events", list(EVENTS.fields), columns, fields)
    values = {field.name: reader.read(field) for field in EVENTS.fields}
    no_key = F.when(F.col("key").isNull(), "no key")
    return reader.table(
        values, EVENTS.fieldNames(), [*(reason for field in EVENTS.fields for reason in reader.reasons(field)), no_key]
    )


class _Opened:
    """Records whose objects' fields are columns with the names of our schema; it converts each column to its type."""

    def __init__(
        self,
        records: DataFrame,
        table: Name,
        ours: list[StructField],
        columns: Mapping[str, str] | None,
        fields: StructType | None,
    ) -> None:
        self._name = table
        self._mapped = dict(columns or {})
        names = [field.name for field in ours]
        check_mapped(table, self._mapped)
        object_fields = list(fields.fields) if fields is not None else []
        field_names = {field.name.lower() for field in object_fields}  # Spark's names are case-insensitive
        object_fields += [
            StructField(name, _TEXT) for name in names if name not in self._mapped and name not in field_names
        ]
        schema = StructType([*object_fields, records.schema["record"]])
        text_fields = fields_named(records.sparkSession, self._mapped, schema, table)
        rows = _fields(records, StructType([*object_fields, *text_fields.fields]))
        expressions = null_on_error(rows, {name: F.expr(sql) for name, sql in self._mapped.items()})
        values = {name: expressions[name] if name in expressions else F.col(f"`{name}`") for name in names}
        self._columns = rows.select(
            _VALUE, _BYTES, _END, "record", *(value.alias(name) for name, value in values.items())
        )

    def read(self, field: StructField) -> Column:
        """Return one of our columns converted to its type; null where the conversion fails."""
        source_type, target_type = self.type_of(field.name), field.dataType
        value = F.col(field.name)
        if isinstance(target_type, DayTimeIntervalType) and isinstance(source_type, StringType):
            return duration_of(field.name, value)[0]
        if isinstance(target_type, DayTimeIntervalType) and isinstance(source_type, DayTimeIntervalType):
            return value.cast(target_type)  # of minutes only, say
        if source_type.simpleString() != target_type.simpleString():
            if not is_readable(source_type.simpleString(), target_type):
                kinds = source_type.simpleString(), target_type.simpleString()
                hint = conversion(self._mapped.get(field.name, field.name), *kinds)
                raise SchemaError(
                    f"{self._name}: column {field.name!r} is {kinds[0]}, expected {kinds[1]}{hint}; "
                    f"--{self._name.removesuffix('s')} {field.name}=SQL converts it"
                )
            value = cast_or_null(value, source_type.simpleString(), target_type)
        if field.name in _DEFAULTED and field.name not in self._mapped:
            return F.when(F.col(field.name).isNull(), default(field.name)).otherwise(value)
        return value

    def reasons(self, field: StructField) -> list[Column]:
        """Return columns with the reasons why this field rejects a record; null where it does not."""
        name, raw = field.name, F.col(field.name)
        because = f": {self._mapped[name]} is null" if name in self._mapped else ""
        required = name in _NEEDED or (name in _DEFAULTED and name in self._mapped)
        reasons = [F.when(raw.isNull(), f"no {name}{because}")] if required else []
        type_name = self.type_of(name).simpleString()
        if isinstance(field.dataType, DayTimeIntervalType):
            reasons += [duration_of(name, raw)[1]] if type_name == "string" else []
        elif type_name != field.dataType.simpleString():
            reasons.append(unreadable_reason(name, raw, type_name, field.dataType))
        return reasons

    def type_of(self, name: str) -> DataType:
        """Return the type of a column before conversion."""
        return self._columns.schema[name].dataType

    def table(self, values: Mapping[str, Column], names: Sequence[str], reasons: list[Column]) -> DataFrame:
        """Return the table of these columns; of rejected rows also the first reason, and the row as JSON."""
        text = F.col(_VALUE)
        broken = F.when(text.isNull(), "no value, or not UTF-8").when(F.col(_END).isNull(), "not a JSON object")
        bytes_ = F.when(text.isNull(), F.base64(_BYTES))
        row = F.to_json(F.struct("record.*", text.alias("value"), bytes_.alias("value_base64")))
        return self._columns.select(
            *(values[name].alias(name) for name in names),
            F.coalesce(broken, *reasons).alias(REJECT_REASON),
            row.alias(REJECTED_ROW),
        )


def _fields(records: DataFrame, fields: StructType) -> DataFrame:
    """Return the object's fields as columns, and `_END`, which is null unless the text is exactly one JSON object."""
    # Bytes that are not UTF-8 would pass through Spark, and fail in Python.
    text = F.try_validate_utf8(F.col("value").cast("string"))
    # Spark parses a first object and ignores what follows it. Wrapped in another object, what follows is an error
    # (unless the text is crafted to close our wrapper).
    wrapper = StructType([StructField(_OBJECT, StructType(list(fields.fields))), StructField(_END, IntegerType())])
    wrapped = F.concat(F.lit(f'{{"{_OBJECT}":'), text, F.lit(f',"{_END}":0}}'))
    parsed = F.from_json(wrapped, wrapper, _STRICT).alias("_parsed")
    rows = records.select(text.alias(_VALUE), F.col("value").cast("binary").alias(_BYTES), "record", parsed)
    end = F.when(F.col(f"_parsed.{_OBJECT}").isNotNull(), F.col(f"_parsed.{_END}"))
    return rows.select(_VALUE, _BYTES, end.alias(_END), "record", f"_parsed.{_OBJECT}.*")


def _watches(reader: _Opened, key: Column, required: Column) -> tuple[Column, Column]:
    """Return the watches, given as a list or as one key, and the reason for rejection if a record has no watches."""
    raw = F.col("watches")
    single = F.when(key.isNotNull(), F.array(F.struct(key.alias("key"), required.alias("required"))))
    watch_list = F.from_json(raw, _WATCHES, _STRICT) if reader.type_of("watches").simpleString() == "string" else raw
    role = re.search(r"\brole:string", reader.type_of("watches").simpleString()) is not None

    def read(watch: Column) -> Column:
        required = F.coalesce(watch["required"], default("required")).alias("required")
        return F.struct(watch["key"].alias("key"), required, *([watch["role"].alias("role")] if role else []))

    watches = F.transform(watch_list, read)
    if role:
        single = F.transform(single, lambda watch: watch.withField("role", F.lit(None).cast("string")))
    reason = F.when(raw.isNotNull() & watch_list.isNull(), "watches is not a list of key and required")
    return F.coalesce(watches, single), F.coalesce(
        reason, F.when(raw.isNull() & key.isNull(), "no key, and no watches")
    )
