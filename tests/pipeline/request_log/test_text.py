"""Lines from before the JSON: of Kafka 2.6.3, genuine, at DEBUG and at TRACE, and of older and newer forms."""

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


HEAD = "[2026-11-24 23:10:38,122] DEBUG Completed request:"
TIMES = "totalTime:1538,requestQueueTime:1,localTime:37,remoteTime:1500,responseQueueTime:0,sendTime:0"
EXACT = (
    "totalTime:143.979,requestQueueTime:9.367,localTime:125.742,remoteTime:500.5,throttleTime:0,responseQueueTime:7.661,"
    "sendTime:1.207,securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT"
)
FETCH = "Name: FetchRequest; Version: 0; CorrelationId: 0; ClientId: one; two; ReplicaId: 2; MaxWait: 1500 ms"
FETCH += "; MinBytes: 1 bytes"
OLD = "from connection 127.0.0.1:9092-127.0.0.1:5"
STRUCT = "{api_key=%d,api_version=0,correlation_id=2,client_id=c} -- "
JOIN = "{group_id=g,session_timeout=1500,%smember_id=,protocol_type=consumer,group_protocols=[{protocol_name=range,"
JOIN += "protocol_metadata=java.nio.HeapByteBuffer[pos=0 lim=13 cap=13]}]}"
NEWER = "RequestHeader(apiKey=%s, apiVersion=2, clientId=c, correlationId=8) -- "


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Name: ProducerRequest; Version: 0; CorrelationId: 8; ClientId: c; RequiredAcks: -1; AckTimeoutMs: 1500 ms"
            f" from client /127.0.0.1:59254;{TIMES}",
            ("PRODUCE", "c", 1500, (), EXPIRED),
        ),
        (
            "Name: ProducerRequest; Version: 0; CorrelationId: 8; ClientId: c; RequiredAcks: -1; AckTimeoutMs: 1500 ms"
            f"; TopicAndPartition: [a.b,0] -> 115,[c,12] -> 7 from client /127.0.0.1:59254;{TIMES}",
            ("PRODUCE", "c", 1500, (("a.b-0", None), ("c-12", None)), EXPIRED),
        ),
        (f"{FETCH} from client /127.0.0.1:5;{TIMES}", ("FETCH_FOLLOWER", "one; two", 1500, (), EXPIRED)),
        (
            f"{FETCH}; MaxBytes:9 bytes; RequestInfo: ([t,0],PartitionFetchInfo(5,1048576)),"
            f"([t,1],PartitionFetchInfo(0,1)) {OLD};{TIMES},securityProtocol:PLAINTEXT,principal:User:ANONYMOUS",
            ("FETCH_FOLLOWER", "one; two", 1500, (("t-0", 6), ("t-1", 1)), EXPIRED),
        ),
        (
            f"{FETCH}; RequestInfo: [t,0] -> PartitionFetchInfo(5,1048576) from client /127.0.0.1:5;{TIMES}",
            ("FETCH_FOLLOWER", "one; two", 1500, (("t-0", 6),), EXPIRED),
        ),
        (
            f"{STRUCT % 11}{JOIN % ''} from connection c;{TIMES},securityProtocol:SSL,principal:User:CN=a, O=b",
            ("JOIN_GROUP", "c", 1500, (("join-g", None),), EXPIRED),
        ),
        (
            f"{NEWER % 'JOIN_GROUP'}{JOIN % 'rebalance_timeout=300000,'},response:{{error_code=0}} "
            f"from connection c;{EXACT}",
            ("JOIN_GROUP", "c", 300_000, (("join-g", None),), COMPLETED),
        ),
        (
            f"{STRUCT % 0}{{acks=-1,timeout=30000,partitionSizes=[t-0=115]}} from connection c;"
            + re.sub(r"(\d)\.(\d+)", r"\1,\g<2>000", EXACT),
            ("PRODUCE", "c", 30_000, (("t-0", None),), COMPLETED),
        ),
        (
            f"{NEWER % 'DELETE_RECORDS'}{{topics=[{{topic=t,partitions=[{{partition=3,offset=9}}]}}],timeout=400}},"
            f"response:{{}} from connection c;{EXACT}",
            ("DELETE_RECORDS", "c", 400, (("t-3", 9),), EXPIRED),
        ),
        (
            f"{NEWER % 'FETCH'}{{replica_id=-1,max_wait_ms=500,min_bytes=1,topics=[{{topic=t,partitions=[{{partition=0,"
            "current_leader_epoch=0,fetch_offset=4,_tagged_fields={}}],_tagged_fields={}}]},response:{error_code=0,"
            "responses=[{topic=t,partition_responses=[{partition=0,error_code=0,record_set=FileRecords(size=114, "
            f"file=/var/lib/t-0/0.log, start=0, end=114),_tagged_fields={{}}}}]}}]}} from connection c;{EXACT}",
            ("FETCH_CONSUMER", "c", 500, (("t-0", 5),), EXPIRED),
        ),
        (f"{STRUCT % 99}{{}} from connection c;{TIMES}", ("API_99", "c", None, (), None)),
        (
            "Name: OffsetCommitRequest; Version: 0; CorrelationId: 8; ClientId: ; GroupId: g; GroupGenerationId: -1; "
            f"ConsumerId:  from client /127.0.0.1:59254;{TIMES}",
            ("OFFSET_COMMIT", None, None, (("group-g", None),), None),
        ),
    ],
)
def test_forms_of_other_versions(text: str, expected: tuple[object, ...]) -> None:
    request = LineParser().parse(f"{HEAD}{text} (kafka.request.logger)".encode())
    found = operation(request, {})
    assert (found.kind, request.client_id, found.timeout_ms, found.watches, found.outcome) == expected


def test_a_line_that_was_cut_in_its_last_time_is_rejected() -> None:
    whole = f"{HEAD}{NEWER % 'HEARTBEAT'}{{}},response:{{}} from connection c;{EXACT}"
    cut = whole.index("sendTime:1") + len("sendTime:1")
    LineParser().parse(whole.encode())
    for end in range(cut, whole.index("listener:")):
        with pytest.raises(BadLineError, match=r"the line ends (directly after|before) its times"):
            LineParser().parse(whole[:end].encode())


def test_a_clock_that_went_back_is_no_bad_line() -> None:
    """Until 0.10 Kafka took the times from the wall clock."""
    times = TIMES.replace("sendTime:0", "sendTime:-3")
    request = LineParser().parse(f"{HEAD}{FETCH} from client /127.0.0.1:5;{times}".encode())
    assert (request.after_ms, request.remote_ms) == (0.0, 1500.0)
