"""Lines of Kafka 2.6.3, genuine: the form from before the JSON, at DEBUG and at TRACE."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from abeyant.pipeline.request_log.line import ApiRequest, BadLineError, LineParser
from abeyant.pipeline.request_log.operation import COMPLETED, EXPIRED, Operation, operation

SAMPLE = (Path(__file__).parent / "samples" / "kafka-2.6.3.log").read_bytes().splitlines()


def found(api: str, *having: bytes) -> list[tuple[ApiRequest, Operation]]:
    lines = [one for one in SAMPLE if b"apiKey=" + api.encode() in one and all(part in one for part in having)]
    requests = [LineParser().parse(one) for one in lines]
    assert requests
    return [(request, operation(request, {})) for request in requests]


def test_every_line_is_read_with_its_bodies() -> None:
    for one in SAMPLE:
        request = LineParser().parse(one)
        assert request.request is not None
        assert (request.response is None) == (b"acks=0" in one)
        assert request.listener == "PLAINTEXT"
        remote = re.search(rb"remoteTime:([\d.]+)", one)
        assert remote is not None
        assert request.remote_ms == float(remote[1])


def test_produce_at_trace_and_at_debug() -> None:
    for level in (b"partitionSizes=[orders-", b"numPartitions=1"):
        for request, expired in found("PRODUCE", level, b"error_code=7"):
            assert (expired.kind, expired.timeout_ms, expired.outcome) == ("PRODUCE", 1500, EXPIRED)
            assert request.client_id == "impatient"
            # At DEBUG the request does not name its partitions; the response does.
            ((key, required),) = expired.watches
            assert key in {"orders-0", "orders-1"}
            assert required is not None


def test_fetch_of_consumers_and_followers() -> None:
    followers = found("FETCH", b"clientId=broker-2-fetcher-0")
    assert {operation.kind for _, operation in followers} == {"FETCH_FOLLOWER"}
    consumers = found("FETCH", b"replica_id=-1,max_wait_time=1000")
    assert {(o.kind, o.timeout_ms) for _, o in consumers} == {("FETCH_CONSUMER", 1000)}
    assert {o.outcome for r, o in consumers if r.remote_ms >= 1000} == {EXPIRED}
    assert {o.outcome for r, o in consumers if r.remote_ms < 990} == {COMPLETED}
    opening = found("FETCH", b"session_epoch=0", b"replica_id=2")
    assert {key for _, o in opening for key, _ in o.watches} == {"orders-0", "orders-1"}


def test_group_and_delete() -> None:
    joined = found("JOIN_GROUP", b"generation_id=1")
    assert {(o.timeout_ms, o.outcome, o.watches) for _, o in joined} == {(8000, COMPLETED, (("join-app", None),))}
    assert {o.error_code for _, o in found("JOIN_GROUP", b"error_code=79")} == {79}
    deleted = found("DELETE_RECORDS")
    assert {(o.timeout_ms, o.outcome, o.watches) for _, o in deleted} == {(2000, EXPIRED, (("orders-0", 10),))}


def test_a_name_that_breaks_the_form_costs_only_the_bodies() -> None:
    (one, *_) = (line for line in SAMPLE if b"apiKey=JOIN_GROUP" in line)
    broken = LineParser().parse(one.replace(b"group_id=app", b"group_id=a,b}]{"))
    assert (broken.api, broken.request, broken.response) == ("JOIN_GROUP", None, None)


@pytest.mark.parametrize(
    ("cut", "reason"), [(b"remoteTime:", "the line ends before its times"), (b" -- ", "no request header")]
)
def test_a_line_that_was_cut_off(cut: bytes, reason: str) -> None:
    with pytest.raises(BadLineError, match=reason):
        LineParser().parse(SAMPLE[3].partition(cut)[0])


@pytest.mark.parametrize("fill", [b"{" * 5000, b"{a=" * 5000, b"[" * 5000, b"(" * 5000, b"x" * 5000])
def test_nonsense_between_header_and_times_is_no_error(fill: bytes) -> None:
    head, _, rest = SAMPLE[3].partition(b" -- ")
    tail = rest[rest.rindex(b" from connection ") :]
    assert LineParser().parse(head + b" -- " + fill + tail).request is None
