"""Describe the lines of a log for people: the logger's layout, and the formats that other tools wrap around it.

    Strimzi's layout, in docker's json-file

The first lines of a file show its layout. Parsing does not depend on it: `wrapping` unwraps each line on its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, Final

from abeyant.pipeline.request_log.files import Chunk, DamagedFileError, LogFile, read_lines
from abeyant.pipeline.request_log.joining import documents, whole_lines
from abeyant.pipeline.request_log.wrapping import MARKER, may_be_request, unwrap

__all__ = ["KAFKAS", "layout", "layouts"]

KAFKAS: Final = "Kafka's layout"

_MOST_FILES: Final = 24
_MOST_LINES: Final = 200
_TEXT_MARKER: Final = MARKER.decode()

_PREFIXES: Final[Mapping[str, re.Pattern[str]]] = {
    "CRI": re.compile(r"\S+ (?:stdout|stderr) [PF](?::\S*)? "),
    "kubectl's prefixes": re.compile(r"\[pod/\S+\] "),
    "docker compose's prefixes": re.compile(r"(?:\x1b\[[\d;]*m)?[\w.-]+ +\| "),
    "journald's lines": re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}\S* \S+ [\w.-]+(?:\[\d+\])?: "),
    "kubectl's timestamps": re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}\.\d{9}(?:Z|[+-]\d\d:\d\d) "),
    "syslog": re.compile(r"(?:<\d{1,3}>1 |(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ )"),
}
"""Prefixes that may precede a line, by the name of their writer."""

_DOCUMENTS: Final[Mapping[str, Callable[[Mapping[str, Any]], bool]]] = {
    "fluentd's JSON": lambda document: "log" in document and "kubernetes" in document,
    "docker's json-file": lambda document: "log" in document and "stream" in document,
    "journald's JSON": lambda document: "MESSAGE" in document,
    "CloudWatch's JSON": lambda document: (
        not document.keys().isdisjoint(("ingestionTime", "logEvents", "logStreamName"))
    ),
    "ECS JSON": lambda document: not document.keys().isdisjoint(("ecs.version", "ecs", "log.level")),
    "log4j2's JSON": lambda document: not document.keys().isdisjoint(("instant", "timeMillis", "loggerFqcn")),
    "logstash's JSON": lambda document: not document.keys().isdisjoint(("@version", "logger_name")),
    "JSON": lambda document: True,
}
"""Tests for the JSON documents that may hold a line; the first that matches counts."""

_LAYOUTS: Final[Mapping[str, re.Pattern[str]]] = {
    "Strimzi's layout": re.compile(r"[^\[].*\(kafka\.request\.logger\S*\) \[[^\[\]]*\]\s*$", re.DOTALL),
    KAFKAS: re.compile(r"\[[^\[\]]*\] [A-Z]+ Completed request:"),
    "logback's layout": re.compile(r".*\bk[\w.]*\.logger\b\S* +-+ +Completed request:", re.DOTALL),
    "bare messages": re.compile(r"Completed request:"),
}
_TIME: Final = re.compile(r"\[?\d{4}-\d\d-\d\d [\d:,.]+(?!.*\d{4}-\d\d-\d\d )", re.DOTALL)
"""The time next to the request, as Kafka and Strimzi write it."""
_VERSIONS: Final = {
    "RequestHeader(": " of Kafka 1.0 to 2.7",
    "{api_key=": " of Kafka 0.9 to 0.11",
    "Name:": " of Kafka 0.8 to 0.10",
}


def layouts(files: Iterable[LogFile]) -> list[str]:
    """Return the layouts of a log, the most frequent first, from the first lines of the first file of each instance."""
    first: dict[str, LogFile] = {}
    for file in files:
        first.setdefault(file.instance, file)
    counts: Counter[str] = Counter()
    for file in islice(first.values(), _MOST_FILES):
        try:
            lines = documents(whole_lines(enumerate(read_lines(Chunk(file, 0, file.size)))), named=False)
            for _, line in islice(lines, _MOST_LINES):
                if isinstance(line, bytes) and may_be_request(line):
                    counts[layout(line.decode("utf-8", "replace"))] += 1
        except DamagedFileError:
            continue  # it is rejected, with its reason, when the log is parsed
    return [name for name, _ in counts.most_common()]


def layout(line: str) -> str:
    """Describe the layout of a line with a request in words, then the formats around the line, the innermost first."""
    line = line.removeprefix("\ufeff")
    text, _, body, documents = unwrap(line)
    wrappers = [name for name, prefix in _PREFIXES.items() if prefix.match(line)][:1]
    if not documents and line.lstrip().startswith('"'):
        wrappers.append("indented JSON" if '{\\"' in line else "CSV")
    wrappers += [next(name for name, fits in _DOCUMENTS.items() if fits(document)) for document in documents]
    if body is not None:
        inner, wrappers = "flattened documents", wrappers[:-1]
    else:
        marked = text.find(_TEXT_MARKER)
        if wrappers and not documents and (time := _TIME.search(text[:marked])) is not None:
            text = text[time.start() :]  # a prefix or a CSV field is still there
        inner = next((name for name, form in _LAYOUTS.items() if form.match(text)), "a layout of its own")
        after = text.find(_TEXT_MARKER) + len(_TEXT_MARKER)
        inner += next((version for start, version in _VERSIONS.items() if text.startswith(start, after)), "")
    return ", in ".join([inner, *reversed(wrappers)])
