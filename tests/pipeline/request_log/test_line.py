"""One line of the request log: what is read from it, and that nothing else than a reason comes from a bad one."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from abeyant.pipeline.request_log.line import BadLineError, LineParser, excerpt, topic_names
from abeyant.pipeline.request_log.operation import DELAYABLE, operation
from pipeline.conftest import shipped_lines
from pipeline.request_log.kafka_lines import line, produce


def moment(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) * 1_000_000


def test_a_genuine_line(shipped: tuple[bytes, ...]) -> None:
    genuine = next(one for one in shipped if b'"PRODUCE"' in one and b'"errorCode":7' in one)
    body = json.loads(genuine[genuine.index(b"{") : genuine.rindex(b"}") + 1])
    request = LineParser().parse(genuine)
    assert request.api == "PRODUCE"
    assert request.client_id == body["requestHeader"]["clientId"]
    assert request.request == body["request"]
    assert request.response == body["response"]
    assert request.remote_ms == body["remoteTimeMs"]
    assert request.listener == "PLAINTEXT"
    # The line is written when the response is sent: the wait began remote, queue and sending times before.
    sent = moment(genuine[1:20].decode()) + int(genuine[21:24]) * 1000
    after = body["responseQueueTimeMs"] + body["sendTimeMs"]
    assert request.sent_us == sent
    assert request.start_us == pytest.approx(sent - (after + body["remoteTimeMs"]) * 1000, abs=1)


def test_every_genuine_line_is_read(shipped: tuple[bytes, ...]) -> None:
    parser = LineParser()
    for one in shipped[::7]:
        operation(parser.parse(one), {})


def test_times_are_exact_to_the_microsecond() -> None:
    request = LineParser().parse(line(remote=2000.788, queue=0.077, send=0.099, sent="2026-11-21 10:56:42,207"))
    assert request.wait_us == 2_000_788
    assert request.start_us == moment("2026-11-21 10:56:42") + 207_000 - 176 - 2_000_788


@pytest.mark.parametrize(
    ("written", "zone", "meant"),
    [
        ("2026-07-01 12:00:00,250", "UTC", "2026-07-01 12:00:00"),
        ("2026-07-01 12:00:00,250", "Europe/Berlin", "2026-07-01 10:00:00"),
        ("2026-12-01 12:00:00,250", "Europe/Berlin", "2026-12-01 11:00:00"),
        ("2026-07-01T12:00:00.250+02:00", "UTC", "2026-07-01 10:00:00"),
        ("2026-07-01T12:00:00.250Z", "Europe/Berlin", "2026-07-01 12:00:00"),
        ("2026-07-01T12:00:00,250-0330", "UTC", "2026-07-01 15:30:00"),
    ],
)
def test_the_log_s_time_zone(written: str, zone: str, meant: str) -> None:
    parser = LineParser(ZoneInfo(zone))
    for _ in range(2):  # the second time from what the parser remembers of the last second
        assert parser.parse(line(sent=written)).sent_us == moment(meant) + 250_000


def test_other_layouts_are_read() -> None:
    body = line().partition(b"Completed")[2].removesuffix(b" (kafka.request.logger)")
    for head, tail in [
        (b"2026-11-21 10:00:01 INFO  kafka.request.logger:7 - Completed", b""),
        (b"[2026-11-21 10:00:01,000] TRACE [data-plane-1] Completed", b" (kafka.request.logger)\r"),
        (b"2026-11-21T10:00:01.000000 DEBUG Completed", b" - kafka.request.logger"),
    ]:
        assert LineParser().parse(head + body + tail).sent_us == moment("2026-11-21 10:00:01")


def test_a_line_without_bodies_tells_the_rest() -> None:
    for nothing in ("", None):
        request = LineParser().parse(line("FETCH", nothing, nothing, remote=3.5))
        assert (request.api, request.request, request.response, request.wait_us) == ("FETCH", None, None, 3500)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"", "not a completed request"),
        (b"java.lang.IllegalStateException: x", "not a completed request"),
        (b"\tat kafka.server.KafkaApis.handle(KafkaApis.scala:1)", "not a completed request"),
        (bytes(range(256)), "not a completed request"),
        (line()[:200], "the line ends inside its JSON"),
        (line()[:60], "the line ends inside its JSON"),
        (line().partition(b"{")[0], "the line ends inside its JSON"),
        (
            line().replace(b'"client"', b'"cli\xff\xfeent"'),
            "not valid UTF-8: byte 151",
        ),
        (line() + b" and more", "text after the JSON"),
        (line() + line(), "text after the JSON"),
        (line().replace(b"[2026-11-21 10:00:01,000]", b"[now]"), "no timestamp in front of the request"),
        (line(sent="2026-02-30 10:00:01,000"), "not a time: 2026-02-30 10:00:01,000"),
        (line().replace(b'"remoteTimeMs":0.0', b'"remoteTimeMs":NaN'), "not valid JSON: NaN is not a number"),
        (
            line().replace(b'"remoteTimeMs":0.0', b'"remoteTimeMs":1e999'),
            "field remoteTimeMs is inf, not a duration",
        ),
        (line(remoteTimeMs=-1), "field remoteTimeMs is -1, not a duration"),
        (line(remoteTimeMs=10**400), "field remoteTimeMs is"),
        (line(remoteTimeMs="2"), "field remoteTimeMs is a str, not a number"),
        (line(remoteTimeMs=True), "field remoteTimeMs is a bool, not a number"),
        (line(remoteTimeMs=None), "no field remoteTimeMs"),
        (line(sendTimeMs=None), "no field sendTimeMs"),
        (line(requestHeader=None), "no field requestHeader"),
        (line(requestHeader=[]), "field requestHeader is a list, not a dict"),
        (line(requestHeader={}), "no field requestApiKeyName"),
        (line("\x1b[31m"), "field requestApiKeyName is not the name of an API"),
        (line(request=[1]), "field request is a list, not a dict"),
        (line(response="text"), "field response is a str, not a dict"),
        (b"[2026-11-21 10:00:01,000] DEBUG Completed request:[1]", "the JSON is not a request object"),
        (b"[2026-11-21 10:00:01,000] DEBUG Completed request:{1:2}", "not valid JSON"),
        (b"[2026-11-21 10:00:01,000] DEBUG Completed request:" + b"[" * 100_000, "not valid JSON"),
        (b"[2026-11-21 10:00:01,000] DEBUG Completed request:" + b"9" * 5000, "not valid JSON"),
    ],
)
def test_a_bad_line_says_why(bad: bytes, reason: str) -> None:
    with pytest.raises(BadLineError) as caught:
        LineParser().parse(bad)
    assert str(caught.value).startswith(reason)
    assert "\n" not in str(caught.value)


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    lines = shipped_lines()
    sound = lines[draw(st.integers(0, len(lines) - 1))]
    at = draw(st.integers(0, len(sound)))
    to = draw(st.integers(at, min(len(sound), at + 40)))
    return sound[:at] + draw(st.binary(max_size=8)) + sound[to:]


@given(damaged())
def test_damage_gives_a_reason_or_a_request_never_another_error(text: bytes) -> None:
    with suppress(BadLineError):
        operation(LineParser().parse(text), {})


NAMES = [
    *("topics", "partitions", "topicData", "partitionData", "responses", "partitionResponses", "errorCode"),
    *(
        "index",
        "partition",
        "fetchOffset",
        "groupId",
        "groups",
        "timeoutMs",
        "maxWaitMs",
        "replicaState",
        "topicId",
    ),
]
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3)
BODIES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
)
APIS = [*sorted(DELAYABLE), "OFFSET_FETCH"]


@given(BODIES, st.sampled_from(APIS))
def test_any_body_gives_a_reason_or_an_operation(body: object, api: str) -> None:
    with suppress(BadLineError):
        operation(LineParser().parse(line(api, body, body, remote=2.0)), {})


@pytest.mark.slow  # all of a log
def test_topic_names_come_from_the_responses_that_tell_both(shipped: tuple[bytes, ...]) -> None:
    names = {pair for one in shipped for pair in topic_names(one)}
    assert {"orders", "clicks", "ledger", "alerts", "audit"} <= {name for _, name in names}
    assert len({topic_id for topic_id, _ in names}) == len(names)


@pytest.mark.parametrize("topics", [None, 3, [3], [{"name": None, "topicId": "x"}], [{"topicId": 3, "name": "x"}]])
def test_no_topic_name_from_a_damaged_response(topics: object) -> None:
    assert list(topic_names(line("METADATA", {"topics": []}, {"topics": topics}))) == []
    assert list(topic_names(line("METADATA")[:250])) == []


def test_an_excerpt_is_short_and_printable() -> None:
    assert excerpt(b"ok\r\n") == "ok"
    assert excerpt(b"\x1b[31m\x00\xff\tred") == "\\x1b[31m\\x00\\xff\\tred"
    shown = excerpt(produce() * 9)
    assert len(shown) == 200
    assert shown.endswith("…")
