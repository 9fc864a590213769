r"""Find the broker that wrote each line, if several brokers wrote the files of a folder or the lines of a file.

    [pod/kafka-0/kafka] [2024-05-01 12:00:00,123] DEBUG Completed request:{...}        kubectl logs --prefix
    kafka-1  | [2024-05-01 12:00:00,123] DEBUG Completed request:{...}                 docker compose logs
    {"kubernetes":{"pod_name":"kafka-0"},"log":"[2024-05-01 12:00:00,123] DEBUG ..."}  fluentd

Kafka's own line does not name the broker. The text around it often does: by a broker's id, a pod, a container, a log
stream or a host, in this order of preference. These names are used only if a sample of a folder's lines has several
names. The sample has the first lines of each file, lines from the middle and the end of a plain file, and some later
lines of a compressed file if the first lines name a broker. Otherwise the folder is the instance. If no line names a
broker and the file names are not rotations of one name (`kafka-0.log`, `kafka-1.log`), files that have no endpoint in
common are of different brokers. Files without a request in the sample are ignored in this decision.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, TypeVar

from abeyant.pipeline.request_log.files import Chunk, DamagedFileError, LogFile, is_remote, labelled, read_lines
from abeyant.pipeline.request_log.joining import documents, whole_lines
from abeyant.pipeline.request_log.wrapping import MARKER, document_broker, each_request, may_be_request

__all__ = ["broker_named", "by_broker", "joined_files"]

T = TypeVar("T")

_REQUESTS_AT_ONCE: Final = 16
_SAMPLE_LINES: Final = 400
_SAMPLE_BYTES: Final = 1 << 20
_SAMPLE_STEP: Final = 50
_COMPRESSED_LINES: Final = 2_000_000  # some seconds to decompress
_TIME: Final = rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*"
_PREFIXES: Final = re.compile(
    rb"(?:\x1b\[[\d;]*m)*(?:"
    rb"\[pod/([^/\]\s]+)[/\]]"  # kubectl logs --prefix
    rb"|([\w.-]+) +\| "  # docker compose logs
    rb"|([a-z0-9][a-z0-9.-]*-\d+) [\w.-]+ (?=\[?\d{4}-)"  # stern
    rb"|(?:<\d{1,3}>)?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? (\S+) [^\s:]+: "  # syslog, journald
    rb"|<\d{1,3}>1 \S+ (\S+) \S+ \S+ \S+ "  # syslog, RFC 5424
    rb"|" + _TIME + rb" (\S+) [\w.@/-]+(?:\[\d+\])?: "  # journalctl -o short-iso
    rb"|" + _TIME + rb" (?!std(?:out|err) )([\w./-]+) (?=\[?\d{4}-)"  # aws logs tail
    rb")"
)
_LABELS: Final = re.compile(rb'\{[^{}]*?\b(?:pod|pod_name|instance|host|hostname)="([^"]+)"')  # logcli
_BROKER: Final = re.compile(rb"\b(?:broker|node)(?:[_.-]?id)?[=:][\"' ]?(\d{1,9})\b", re.IGNORECASE)
_MOST_NAMED: Final = 3
_NOBODY: Final = frozenset({"", "-", "localhost", "unknown"})
_ENDPOINT: Final = re.compile(rb'connection(?:\\*"\s*:\s*\\*"| )([\w.:%\[\]]+?:\d+)-')
_SUFFIX: Final = re.compile(r"\.(?:log|txt|jsonl?|out|gz|bz2|zstd?)(?=[.-]|$).*")
_ROTATION: Final = re.compile(r"[-._]?\d{4}-\d\d(?:-\d\d)?(?:[-_T.]?\d\d)*(?:[-_.]\d+)?")


@dataclass
class _Sampled:
    """The broker names and endpoints in the sampled lines of a file."""

    names: set[str]
    """Broker names in the prefixes and suffixes of lines."""
    endpoints: set[bytes]
    """The broker's own endpoints (`host:port`), from the connections of its requests."""
    has_request: bool = False


def broker_named(line: bytes) -> str | None:
    """Return the broker that the prefix or suffix of a log line names; None if none does. O(len(line))."""
    marker = line.find(MARKER)
    head = line[:marker] if marker >= 0 else line
    begin = head.find(b"{")
    if begin >= 0:
        try:
            document, _ = json.JSONDecoder().raw_decode(line[begin:].decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            document = None
        name = document_broker(document) if isinstance(document, dict) else None
        if name is None and (labels := _LABELS.search(head)) is not None:
            name = labels[1].decode("utf-8", "replace")
        if name is not None and name not in _NOBODY:
            return name
        head = head[:begin]
    if (broker := _BROKER.search(head)) is not None:
        return f"broker-{int(broker[1])}"
    prefix = _PREFIXES.match(head)
    name = next(filter(None, prefix.groups()), b"").decode("utf-8", "replace") if prefix is not None else ""
    return name if name not in _NOBODY else None


def by_broker(files: Iterable[LogFile]) -> list[LogFile]:
    """Return the files with their broker as `instance`, or with `by_line` set if a file is of several brokers."""
    folders: dict[str, list[LogFile]] = defaultdict(list)
    for file in files:
        folders[file.instance].append(file)
    refined: list[LogFile] = []
    for group in folders.values():
        refined += _refined(group, len(folders) > 1)
    return labelled(refined)


def joined_files(files: Iterable[LogFile]) -> list[str]:
    """Return a warning for each broker whose files may be of several: file names differ, and lines name no broker."""
    joined: dict[str, list[str]] = defaultdict(list)
    for file in files:
        if file.joined:
            joined[file.instance].append(file.label)
    return [
        f"{len(names)} files read as one broker, {instance}: {', '.join(names[:_MOST_NAMED])}"
        f"{', ...' if len(names) > _MOST_NAMED else ''}; "
        "if several brokers wrote them, give each broker a folder; if one did, give --instance"
        for instance, names in joined.items()
    ]


def _refined(files: list[LogFile], several: bool) -> list[LogFile]:
    """Return the files of one folder with their brokers as instances.

    With `several` folders, put the folder before a broker that is named after its files.
    """
    bases = {file: _base(file) for file in files}
    if len(set(bases.values())) == 1 and not any(_of_each(files, _is_wrapped)):
        return files
    samples = dict(zip(files, _of_each(files, _look_into), strict=True))
    names = {file: sample.names for file, sample in samples.items()}
    if len(set().union(*names.values())) > 1:
        return [
            replace(file, by_line=True) if len(ids) > 1 else replace(file, instance=ids.pop()) if ids else file
            for file, ids in names.items()
        ]
    # Files without a request, such as server.log, have no influence on which files are of one broker.
    logs = [(bases[file], sample.endpoints) for file, sample in samples.items() if sample.has_request]
    if any(names.values()) or not logs:
        return files
    brokers = (
        _brokers_by_endpoint(logs)
        if all(endpoints for _, endpoints in logs)
        else dict.fromkeys((base for base, _ in logs), "")
    )
    joined = {broker for broker, number in Counter(brokers.values()).items() if number > 1}
    several_brokers = len(set(brokers.values())) > 1
    folder = f"{files[0].instance}/" if several else ""
    return [
        replace(
            file,
            instance=folder + brokers[base] if several_brokers else file.instance,
            joined=brokers[base] in joined and samples[file].has_request,
        )
        if (base := bases[file]) in brokers
        else file
        for file in files
    ]


def _brokers_by_endpoint(files: list[tuple[str, set[bytes]]]) -> dict[str, str]:
    """Map the name of each file to the name of its broker: the shortest name among the files of that broker.

    Files are of one broker if they share an endpoint, or each shares one with a third file of that broker. `files` has
    names without the suffixes of rotation.
    """
    groups: list[tuple[set[str], set[bytes]]] = []
    for base, endpoints in files:
        same = [group for group in groups if base in group[0] or endpoints & group[1]]
        groups = [group for group in groups if group not in same]
        groups.append(({base}.union(*(group[0] for group in same)), endpoints.union(*(group[1] for group in same))))
    return {base: min(bases, key=lambda name: (len(name), name)) for bases, _ in groups for base in bases}


def _base(file: LogFile) -> str:
    """Return a file's name without the suffixes of rotation."""
    name = os.path.basename(file.path)
    return _ROTATION.sub("", _SUFFIX.sub("", name)) or name


def _is_wrapped(file: LogFile) -> bool:
    line = next(_lines(file, 0, 1), b"")
    return not line.lstrip(b"\xef\xbb\xbf").startswith(b"[2")


def _of_each(files: Sequence[LogFile], work: Callable[[LogFile], T]) -> list[T]:
    """Return `work(file)` for each file; remote files are read in parallel, as each takes a request to a store."""
    if not any(is_remote(file.path) for file in files):
        return list(map(work, files))
    with ThreadPoolExecutor(min(len(files), _REQUESTS_AT_ONCE)) as pool:
        return list(pool.map(work, files))


def _look_into(file: LogFile) -> _Sampled:
    sample = _Sampled(set(), set())
    for line in _sample(file):
        sample.has_request = True
        sample.endpoints.update(_ENDPOINT.findall(line, 0, 1 << 16))
        sample.names.update(filter(None, map(broker_named, each_request(line))))
    return sample


def _sample(file: LogFile) -> Iterator[bytes]:
    if file.compressed:
        yield from _compressed_sample(file)
        return
    for place in sorted({0, file.size // 2, max(file.size - _SAMPLE_BYTES, 0)}):
        yield from filter(may_be_request, _lines(file, place, _SAMPLE_LINES))


def _compressed_sample(file: LogFile) -> Iterator[bytes]:
    """Yield the requests in the first lines. If any names its broker, sample later lines: other brokers may follow."""
    lines = _lines(file, 0, _COMPRESSED_LINES)
    first = list(filter(may_be_request, islice(lines, _SAMPLE_LINES)))
    yield from first
    if any(broker_named(request) for line in first for request in each_request(line)):
        yield from filter(may_be_request, islice(lines, 0, None, _SAMPLE_STEP))


def _lines(file: LogFile, start: int, count: int) -> Iterator[bytes]:
    end = file.size if file.compressed else min(start + _SAMPLE_BYTES, file.size)
    lines = documents(whole_lines(enumerate(read_lines(Chunk(file, start, end)))))  # documents may be indented
    try:
        yield from islice((line for _, line in lines if isinstance(line, bytes)), count)
    except DamagedFileError:
        return  # it is rejected, with its reason, when the log is parsed
