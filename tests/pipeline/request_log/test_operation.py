"""Requests as delayed operations: limits, keys and outcomes, on genuine lines and on what they leave open."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from abeyant.pipeline.request_log.line import ApiRequest, BadLineError, LineParser
from abeyant.pipeline.request_log.operation import COMPLETED, DELAYABLE, EXPIRED, Operation, operation
from pipeline.request_log.kafka_lines import fetch, line, names_told, produce

Parsed = list[tuple[ApiRequest, Operation]]


def read(text: bytes, topics: dict[str, str] | None = None) -> Operation:
    return operation(LineParser().parse(text), topics or {})


@pytest.fixture(scope="module")
def genuine(shipped: tuple[bytes, ...]) -> Parsed:
    parser = LineParser()
    names = names_told(shipped)
    requests = (parser.parse(one) for one in shipped)
    return [(r, operation(r, names)) for r in requests if r.api in DELAYABLE or r.remote_ms > 0]


def of_kind(genuine: Parsed, kind: str, when: Callable[[ApiRequest, Operation], bool] = lambda r, o: True) -> Parsed:
    return [(r, o) for r, o in genuine if o.kind == kind and when(r, o)]


@pytest.mark.slow  # all of a log
def test_the_shipped_log_s_outcomes(genuine: Parsed) -> None:
    # The counts that the capture took of its own log, by its own program: examples/data/.../README.md.
    counts = Counter((o.kind, o.outcome) for _, o in genuine)
    assert counts["FETCH_CONSUMER", EXPIRED] == 3277
    assert counts["FETCH_FOLLOWER", EXPIRED] == 20
    assert counts["FETCH_RAFT", EXPIRED] == 943
    assert counts["PRODUCE", EXPIRED] == 60
    assert counts["DELETE_RECORDS", EXPIRED] == 2
    assert counts["JOIN_GROUP", EXPIRED] == 1
    assert Counter(o.kind for _, o in genuine)["PRODUCE"] == 18_229
    # Unknown are syncs that ended with an error, and coordinators' answers that may be their own time-out.
    assert {kind for kind, outcome in counts if outcome is None} == {
        *("SYNC_GROUP", "OFFSET_COMMIT", "SHARE_GROUP_HEARTBEAT")
    }


@pytest.mark.slow  # all of a log
def test_no_fetch_lies_where_the_rule_could_be_wrong(genuine: Parsed) -> None:
    """What justifies the threshold: below the limit by more than 1 ms, no fetch came back with too few bytes."""
    for request, found in of_kind(genuine, "FETCH_CONSUMER", lambda r, o: r.remote_ms > 0 and o.error_code == 0):
        assert request.request is not None
        assert request.response is not None
        received = sum(
            max(partition["recordsSizeInBytes"], 0)
            for topic in request.response["responses"]
            for partition in topic["partitions"]
        )
        if found.outcome == COMPLETED:
            assert received >= request.request["minBytes"]


@pytest.mark.slow  # all of a log
def test_produce_that_timed_out(genuine: Parsed) -> None:
    expired = of_kind(genuine, "PRODUCE", lambda r, o: o.outcome == EXPIRED)
    for request, found in expired:
        assert found.error_code == 7
        assert found.timeout_ms is not None
        assert request.local_ms + request.remote_ms >= found.timeout_ms - 1
        assert found.condition == "all"
        for key, required in found.watches:
            assert key.rpartition("-")[0] in {
                "orders",
                "clicks",
                "ledger",
                "alerts",
                "audit",
                "__consumer_offsets",
            }
            assert required is not None
            assert required > 0


def test_produce_requires_the_high_watermark_past_its_first_record() -> None:
    assert read(produce(base_offset=41)).watches == (("orders-0", 42),)
    assert read(produce(base_offset=-1, error_code=19)).watches == (("orders-0", None),)


@pytest.mark.slow  # all of a log
def test_produce_without_acks_completed_at_once(genuine: Parsed) -> None:
    silent = of_kind(genuine, "PRODUCE", lambda r, o: r.response is None)
    assert len(silent) == 248
    for request, found in silent:
        assert request.request is not None
        assert request.request["acks"] == 0
        assert (found.outcome, found.error_code, request.remote_ms) == (COMPLETED, None, 0)


def test_produce_is_judged_by_its_error_code_not_by_the_clock() -> None:
    # A broker that was frozen itself answers late, and well.
    assert read(produce(timeout_ms=1000, remote=9000.0)).outcome == COMPLETED
    assert read(produce(error_code=7, timeout_ms=1000, remote=998.0)).outcome == EXPIRED


def test_several_errors_are_told_by_a_rule() -> None:
    partitions = [{"index": n, "errorCode": code, "baseOffset": -1} for n, code in enumerate((19, 0, 3))]
    request = {"acks": -1, "timeoutMs": 9, "topicData": []}
    body = {"responses": [{"name": "x", "partitionResponses": partitions}]}
    assert read(line("PRODUCE", request, body)).error_code == 3
    partitions[1]["errorCode"] = 7
    assert read(line("PRODUCE", request, body)).error_code == 7


@pytest.mark.parametrize(
    ("local", "remote", "outcome"),
    [
        (0.1, 0.0, COMPLETED),
        (0.1, 498.8, COMPLETED),
        (0.1, 498.9, EXPIRED),  # both ends of Kafka's wait are truncated to milliseconds
        (3.4, 495.6, EXPIRED),  # the timer runs from inside the local time
        (0.1, 500.0, EXPIRED),
        (0.1, 10_071.25, EXPIRED),  # the broker was frozen
    ],
)
def test_fetch_expires_at_its_limit(local: float, remote: float, outcome: str) -> None:
    assert read(fetch(500, local=local, remote=remote)).outcome == outcome


def test_fetch_that_may_not_wait_never_expires() -> None:
    assert read(fetch(0, remote=0.0)).outcome == COMPLETED


def test_fetch_keys_and_required_offsets() -> None:
    assert read(fetch(offset=10)).watches == (("t-3", 11),)
    assert read(fetch(offset=10), {"t": "orders"}).watches == (("orders-3", 11),)
    assert read(fetch(offset=-1)).watches == (("t-3", None),)
    assert read(fetch()).condition == "any"


def test_a_key_given_twice_is_watched_once() -> None:
    partitions = [{"partition": 3, "fetchOffset": offset} for offset in (20, 10, 30)]
    request = {"maxWaitMs": 5, "minBytes": 1, "topics": [{"topic": "o", "partitions": partitions}]}
    assert read(line("FETCH", request)).watches == (("o-3", 11),)
    deletes = [{"partitionIndex": 3, "offset": offset} for offset in (20, 10, 30, -1)]
    request = {"timeoutMs": 5, "topics": [{"name": "o", "partitions": deletes}]}
    assert read(line("DELETE_RECORDS", request)).watches == (("o-3", 30),)


@pytest.mark.slow  # all of a log
def test_who_fetches(genuine: Parsed) -> None:
    for kind, client in [("FETCH_FOLLOWER", "-fetcher-"), ("FETCH_RAFT", "raft-client-")]:
        assert all(client in (r.client_id or "") for r, _ in of_kind(genuine, kind))
    for request, _ in of_kind(genuine, "FETCH_CONSUMER"):
        assert "fetcher" not in (request.client_id or "")
    assert read(line("FETCH", {"replicaId": -1, "maxWaitMs": 1, "topics": []})).kind == "FETCH_CONSUMER"
    assert read(line("FETCH", {"replicaId": 2, "maxWaitMs": 1, "topics": []})).kind == "FETCH_FOLLOWER"
    assert read(line("FETCH", "")).kind == "FETCH"


@pytest.mark.slow  # all of a log
def test_share_fetch_expires_at_its_limit(genuine: Parsed) -> None:
    found = of_kind(genuine, "SHARE_FETCH")
    assert {o.outcome for _, o in found} == {COMPLETED, EXPIRED}
    assert all(o.timeout_ms == 1500 for _, o in found)


@pytest.mark.slow  # all of a log
def test_join_group(genuine: Parsed) -> None:
    (request, found), *others = of_kind(genuine, "JOIN_GROUP", lambda r, o: o.outcome == EXPIRED)
    assert not others
    assert found.timeout_ms == 7000
    assert request.remote_ms > 7000
    assert found.watches == (("join-payments", None),)
    for _, rejected in of_kind(genuine, "JOIN_GROUP", lambda r, o: o.error_code == 79):
        assert rejected.outcome == COMPLETED
    oldest = read(line("JOIN_GROUP", {"groupId": "g", "sessionTimeoutMs": 9}, {"errorCode": 0}))
    assert (oldest.timeout_ms, oldest.watches) == (9, (("join-g", None),))


@pytest.mark.slow  # all of a log
def test_sync_group_with_an_error_after_a_wait_is_unknown(genuine: Parsed) -> None:
    for request, found in of_kind(genuine, "SYNC_GROUP"):
        assert found.timeout_ms is None
        assert found.watches[0][0].startswith("sync-")
        assert found.outcome == (COMPLETED if found.error_code == 0 or request.remote_ms == 0 else None)


@pytest.mark.slow  # all of a log
def test_delete_records(genuine: Parsed) -> None:
    outcomes = Counter((o.outcome, o.error_code) for _, o in of_kind(genuine, "DELETE_RECORDS"))
    assert outcomes == {(COMPLETED, 0): 3, (EXPIRED, 7): 2}
    # One asked for everything up to the high watermark of the moment, which the log does not tell.
    required = sorted(o.watches[0][1] or 0 for _, o in of_kind(genuine, "DELETE_RECORDS"))
    assert required[0] == 0
    assert all(required[1:])


def test_other_requests_that_waited() -> None:
    commit = line("OFFSET_COMMIT", {"groupId": "g"}, {"topics": [{"partitions": [{"errorCode": 0}]}]}, remote=7.0)
    assert read(commit) == Operation("OFFSET_COMMIT", None, (("group-g", None),), "all", COMPLETED, 0)
    late = line("OFFSET_COMMIT", {"groupId": "g"}, {"topics": [{"partitions": [{"errorCode": 15}]}]}, remote=5004.0)
    assert read(late).outcome is None
    groups = line("OFFSET_FETCH", {"groups": [{"groupId": "a"}, {"groupId": "b"}]}, {"errorCode": 0}, remote=1.0)
    assert read(groups).watches == (("group-a", None), ("group-b", None))
    election = line("ELECT_LEADERS", {"timeoutMs": 30}, {"errorCode": 0}, remote=30.0)
    assert (read(election).timeout_ms, read(election).outcome) == (30, EXPIRED)


@pytest.mark.parametrize("api", sorted(DELAYABLE))
def test_without_bodies_only_a_wait_leaves_the_outcome_open(api: str) -> None:
    assert read(line(api, remote=0.0)).outcome == COMPLETED
    assert read(line(api, remote=5.0)) == Operation(api, None, (), "any" if "FETCH" in api else "all", None, None)


def test_a_request_without_its_response_is_judged_by_the_clock() -> None:
    request = {"acks": -1, "timeoutMs": 100, "topicData": []}
    assert read(line("PRODUCE", request, remote=99.0)).outcome == EXPIRED
    assert read(line("PRODUCE", request, remote=50.0)).outcome == COMPLETED


@pytest.mark.parametrize(
    ("request_body", "reason"),
    [
        ({"acks": -1}, "no field timeoutMs"),
        ({"timeoutMs": "1"}, "field timeoutMs is a str, not an integer"),
        ({"timeoutMs": 1.5}, "field timeoutMs is a float, not an integer"),
        ({"timeoutMs": 2**40}, "field timeoutMs is 1099511627776, beyond Kafka's 32 bits"),
        ({"timeoutMs": 10**30}, f"field timeoutMs is {10**23}, beyond 64 bits"),
        ({"timeoutMs": 1, "topicData": 3}, "field topicData is a int, not a list"),
        ({"timeoutMs": 1, "topicData": [3]}, "field topicData holds a int, not an object"),
        ({"timeoutMs": 1, "topicData": [{}]}, "unexpected body of PRODUCE: no 'topicId'"),
        ({"timeoutMs": 1, "topicData": [{"name": 3}]}, "field name is a int, not a str"),
    ],
)
def test_a_body_that_kafka_does_not_write_says_why(request_body: object, reason: str) -> None:
    with pytest.raises(BadLineError, match=f"^{reason}$"):
        read(line("PRODUCE", request_body))
