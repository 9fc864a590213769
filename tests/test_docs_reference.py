"""The site's reference shows a record whole: its constructor, and fields that need no docstring."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("griffe")

from scripts import docs_reference

RECORD = "abeyant.broker.api.cluster_api.Record"
FIELDS = ["partition", "offset", "timestamp", "key", "value", "headers"]


def test_a_named_tuples_page_has_its_constructor_and_every_field() -> None:
    record: Any = docs_reference.find(RECORD)
    assert list(docs_reference.members(record)) == FIELDS
    parameters = record.members["__init__"].parameters
    assert [one.name for one in parameters] == ["self", *FIELDS]
    assert [one.name for one in parameters if one.default is not None] == ["headers"]
    [(name, text)] = docs_reference.pages(f"# Broker\n\n::: {RECORD}\n", "broker")
    assert name == "abeyant.broker.Record.md"
    assert "show_if_no_docstring: true" in text


def test_a_typed_dicts_page_has_every_key_and_another_class_only_what_is_described() -> None:
    where = docs_reference.find("abeyant.broker.api.target.Where")
    assert list(docs_reference.members(where)) == [
        "topic", "partition", "broker", "client_id", "group", "transactional_id",
    ]  # fmt: skip
    pages = dict(docs_reference.pages("# Broker\n\n::: abeyant.broker.clock.Clock\n", "broker"))
    assert not any("show_if_no_docstring" in text for text in pages.values())
    assert "timer" not in docs_reference.members(docs_reference.find("abeyant.broker.clock.Clock"))
