"""Lines that others have cut or spread are whole again: parts of container runtimes, indented documents."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.pipeline.request_log.files import DamagedFileError, chunks, find_logs, read_lines
from abeyant.pipeline.request_log.joining import DOCKER_BYTES, documents, whole_lines
from abeyant.pipeline.request_log.line import BadLineError, LineParser
from abeyant.pipeline.request_log.requests import numbered_lines
from pipeline.request_log.test_wrapping import LATER, SENT, body, in_json, message, text

Part = Callable[[str, str, bool], bytes]
"""Makes a part's line: its text, its stream, whether it is the last."""

RUNTIMES: dict[str, Part] = {
    "CRI": lambda part, stream, last: f"{LATER} {stream} {'F' if last else 'P'} {part}".encode(),
    "docker": lambda part, stream, last: compact(log=part + "\n" * last, stream=stream, time=LATER),
    "docker, time first": lambda part, stream, last: compact(time=LATER, stream=stream, log=part + "\n" * last),
    "docker, stream first": lambda part, stream, last: in_json(stream=stream, log=part + "\n" * last, time=LATER),
    "Fluent Bit": lambda part, stream, last: compact(date=1.5, stream=stream, _p="F" if last else "P", log=part),
    "Fluent Bit's CRI": lambda part, stream, last: compact(logtag="F" if last else "P", stream=stream, log=part),
    "docker's driver for Fluentd": lambda part, stream, last: compact(
        log=part, source=stream, container_id="ab", partial_message="true", partial_last=str(last).lower()
    ),
}


def compact(**members: object) -> bytes:
    return json.dumps(members, separators=(",", ":")).encode()


def parts_of(line: str, size: int = DOCKER_BYTES) -> list[tuple[str, bool]]:
    """Return the parts of a line, and of each whether it is the last."""
    return [(line[at : at + size], at + size >= len(line)) for at in range(0, len(line), size)]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("padding", [0, 1, DOCKER_BYTES, 3 * DOCKER_BYTES, DOCKER_BYTES - len(text()) - 6])
def test_parts_that_a_runtime_cut_are_joined(runtime: str, padding: int) -> None:
    whole = text().replace('"client"', r'"cl\"i\\ent' + "x" * padding + '"')
    make = RUNTIMES[runtime]
    lines = [make(part, "stdout", last) for part, last in parts_of(whole)]
    other = make("a line of another stream", "stderr", True)
    lines.insert(len(lines) // 2, other)
    joined = list(whole_lines(enumerate(lines, 1)))
    assert max(number for number, _ in joined) == len(lines)
    [request] = [one for _, one in joined if one != other]
    assert isinstance(request, bytes)
    assert LineParser().parse(request).sent_us == round(SENT.timestamp() * 1e6)
    assert LineParser().parse(request).listener == "PLAINTEXT"


@given(st.lists(st.integers(1, 600), max_size=4))
def test_parts_of_any_size_are_joined(cuts: list[int]) -> None:
    places = [0, *sorted({cut for cut in cuts if cut < len(text())}), len(text())]
    parts = [text()[a:b] for a, b in pairwise(places)]
    for runtime in ("CRI", "Fluent Bit"):
        lines = [RUNTIMES[runtime](part, "stdout", at == len(parts) - 1) for at, part in enumerate(parts)]
        [(number, joined)] = whole_lines(enumerate(lines, 1))
        assert (number, isinstance(joined, bytes)) == (len(lines), True)
        assert LineParser().parse(joined if isinstance(joined, bytes) else b"").listener == "PLAINTEXT"


@pytest.mark.parametrize("line_break", ["", "\n"])
def test_documents_without_line_breaks_are_lines_each(line_break: str) -> None:
    lines = [compact(log=one + line_break, stream="stdout") for one in (text(), "of another logger", text())]
    assert list(whole_lines(enumerate(lines, 1))) == list(enumerate(lines, 1))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_parts_whose_last_is_missing_are_one_bad_line_each(runtime: str) -> None:
    whole = text().replace('"client"', '"' + "x" * 3 * DOCKER_BYTES + '"')
    lines = [RUNTIMES[runtime](part, "stdout", False) for part, _ in parts_of(whole)[:2]]
    joined = list(whole_lines(enumerate([*lines, RUNTIMES[runtime](text(), "stdout", True), *lines], 7)))
    assert [number for number, _ in joined] == [8, 9, 11]
    assert isinstance(joined[1][1], bytes)
    assert LineParser().parse(joined[1][1]).listener == "PLAINTEXT"
    for _, one in (joined[0], joined[2]):
        assert isinstance(one, bytes)
        with pytest.raises(BadLineError, match="the line ends inside its JSON"):
            LineParser().parse(one)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_lines_cut_at_a_chunks_border_are_read_once(tmp_path: Path, runtime: str) -> None:
    def parts(number: int, stream: str, pieces: int) -> list[bytes]:
        padding = "x" * ((pieces - 1) * DOCKER_BYTES)
        whole = text().replace('"client"', f'"client {number} {padding}"')
        return [RUNTIMES[runtime](part, stream, last) for part, last in parts_of(whole)]

    lines = [one for number in range(30) for one in parts(number, "stdout", number % 3 + 1)]
    between = iter(parts(30, "stderr", 9))
    for at in range(5, 50, 5):  # the other stream's one line
        lines.insert(at, next(between))
    lines.append(parts(31, "stdout", 2)[0])  # which nothing ends
    path = tmp_path / "kafka-request.log"
    path.write_bytes(b"".join(one + b"\n" for one in lines))
    parser = LineParser()
    for size in (17_000, 50_000, 111_111, 1 << 30):
        found, bad, before = [], [], 0
        for chunk in chunks(find_logs(path), size):
            for number, one in numbered_lines(replace(chunk, lines_before=before)):
                assert isinstance(one, bytes)
                try:
                    found.append((number, (parser.parse(one).client_id or "").split()[1]))
                except BadLineError as error:
                    bad.append((number, str(error)))
            before += sum(1 for _ in read_lines(chunk))
        assert sorted(int(client) for _, client in found) == list(range(31))
        assert len({number for number, _ in found}) == 31
        assert bad == [(len(lines), "the line ends inside its JSON")]


def indented(documents: object, indent: int = 2) -> list[bytes]:
    return json.dumps(documents, indent=indent).encode().splitlines()


EVENT = {"timestamp": SENT.isoformat(), "message": message()}
FLAT = {"@timestamp": SENT.isoformat()} | body()


@pytest.mark.parametrize(
    ("lines", "others"),
    [
        ([one for _ in range(3) for one in indented(EVENT)], 0),
        ([one for _ in range(3) for one in indented(FLAT, 4)], 0),
        (indented([FLAT] * 3), 2),
        (indented({"events": [EVENT] * 3, "searchedLogStreams": []}, 4), 5),
        ([*indented(EVENT)[:-1], *indented(EVENT), *indented([EVENT] * 2)], 5),
    ],
    ids=["documents", "flattened", "an array", "aws logs", "one of them cut off"],
)
def test_an_indented_document_is_a_line(lines: list[bytes], others: int) -> None:
    lines = [*lines, b"[main] INFO started", text().encode()]
    requests, reasons = 0, []
    for _, one in documents(enumerate(lines, 1)):
        assert isinstance(one, bytes)
        try:
            assert LineParser().parse(one).sent_us == round(SENT.timestamp() * 1e6)
            requests += 1
        except BadLineError as error:
            reasons.append(str(error))
    assert requests == 4
    assert len(reasons) == others + 1
    # Of the document that is cut off.
    assert set(reasons) <= {"not a completed request", "no timestamp in front of the request"}


def test_braces_that_are_no_document_leave_the_lines_as_they_are() -> None:
    lines: list[bytes | Exception]
    lines = [b"{", text().encode(), b"}", b"{", b'"a": 1,', b"}", b"{", DamagedFileError("x"), b"}", b"{", b"1"]
    assert list(documents(enumerate(lines, 1))) == list(enumerate(lines, 1))
