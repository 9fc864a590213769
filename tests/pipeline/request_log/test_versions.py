"""Logs of genuine brokers of every minor version, 0.8.2 to 4.3, parse whole; counts equal those of a text search.

Recorded by `python -m scripts.record_versions`.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from datetime import UTC
from pathlib import Path

import pytest

from abeyant.pipeline.request_log.line import LineParser, topic_names
from abeyant.pipeline.request_log.operation import read_request
from abeyant.pipeline.request_log.typed import TypedParser
from scripts.record_versions.versions import VERSIONS

LOGS = Path(__file__).parents[2] / "data" / "versions"

# An API's name in JSON, its name in 1.0 to 2.7, its number in 0.10 and 0.11, and its Scala class.
NAMES = {
    "PRODUCE": (0, "ProducerRequest"),
    "FETCH": (1, "FetchRequest"),
    "METADATA": (3, "TopicMetadataRequest"),
    "OFFSET_COMMIT": (8, "OffsetCommitRequest"),
    "JOIN_GROUP": (11, "JoinGroupRequest"),
}


def found_in(text: bytes, api: str) -> int:
    """Search for an API's requests, as `grep -c` does."""
    number, scala = NAMES[api]
    begin = rf"RequestHeader\(apiKey={api},|\{{api_key={number},|Name: ?{scala};"
    return len(re.findall(rf'Completed request:(?:{begin})|"requestApiKeyName":"{api}"'.encode(), text))


def lines_of(minor: str) -> list[bytes]:
    return gzip.decompress((LOGS / f"{minor}.log.gz").read_bytes()).splitlines()


def number(minor: str) -> tuple[int, ...]:
    return tuple(int(part) for part in minor.split("."))


def test_there_is_a_log_of_every_version() -> None:
    assert {file.name.removesuffix(".log.gz") for file in LOGS.iterdir()} == VERSIONS.keys()


@pytest.mark.parametrize("minor", VERSIONS)
def test_every_line_is_read(minor: str) -> None:
    lines = lines_of(minor)
    parser = LineParser(UTC)
    read = Counter(parser.parse(line).api for line in lines)  # raises BadLineError for a line that cannot be read
    text = b"\n".join(lines)
    assert read.total() == text.count(b"Completed request:")
    assert {api: read[api] for api in NAMES} == {api: found_in(text, api) for api in NAMES}
    assert all(read[api] for api in NAMES if api != "JOIN_GROUP")
    assert read["JOIN_GROUP"] or number(minor) < (0, 9)
    assert not any(api.startswith("API_") and api != "API_VERSIONS" for api in read)


@pytest.mark.parametrize("minor", VERSIONS)
def test_what_waited_is_known(minor: str) -> None:
    lines = lines_of(minor)
    topics = dict(pair for line in lines for pair in topic_names(line))
    parser = LineParser(UTC)
    operations = [read_request(parser.parse(line), topics)[-1] for line in lines]
    kinds = Counter(operated[0] for operated in operations if operated is not None)
    assert kinds["PRODUCE"], kinds
    assert kinds["FETCH_CONSUMER"], kinds


@pytest.mark.parametrize("minor", [minor for minor in VERSIONS if number(minor) >= (2, 8)])
def test_json_lines_are_read_quickly(minor: str) -> None:
    """The typed parser refuses none, and reads what the other does."""
    lines = lines_of(minor)
    topics = dict(pair for line in lines for pair in topic_names(line))
    typed, slow = TypedParser(UTC, topics), LineParser(UTC)
    for line in lines:
        assert typed.read(line) == read_request(slow.parse(line), topics), line
