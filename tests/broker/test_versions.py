"""Every API in every version that is advertised: what is asked is read, and what is answered can be read."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from kio.schema.errors import ErrorCode

from abeyant.broker import Cluster
from abeyant.broker.wire.apis import APIS, BY_NAME, Api
from broker.asking import SECOND, asked
from broker.wire import WireClient


@pytest.fixture(scope="module")
def kafka() -> Iterator[Cluster]:
    with Cluster(brokers=1) as cluster:
        cluster.create_topic("there", partitions=2)
        with WireClient(cluster.bootstrap) as client:
            client.ask(10, 6, key_type=0, coordinator_keys=["group"])  # so that there are coordinators
            client.ask(10, 6, key_type=2, coordinator_keys=["group:AAAAAAAAAAAAAAAAAAAAAA:0"])
        yield cluster


_NOBODYS = ErrorCode.not_coordinator  # nobody has asked who coordinates transactions
EXPECTED: dict[str | tuple[str, int], ErrorCode] = {
    ("JoinGroup", 4): ErrorCode.member_id_required,
    "Heartbeat": ErrorCode.unknown_member_id,
    "LeaveGroup": ErrorCode.unknown_member_id,
    "SyncGroup": ErrorCode.unknown_member_id,
    ("SyncGroup", 5): ErrorCode.inconsistent_group_protocol,  # it has to name its protocol
    ("DescribeGroups", 6): ErrorCode.group_id_not_found,
    "DeleteGroups": ErrorCode.group_id_not_found,
    "ConsumerGroupDescribe": ErrorCode.group_id_not_found,
    "OffsetDelete": ErrorCode.group_id_not_found,
    "AddPartitionsToTxn": _NOBODYS,
    "AddOffsetsToTxn": _NOBODYS,
    "EndTxn": _NOBODYS,
    "DescribeTransactions": _NOBODYS,
    "TxnOffsetCommit": ErrorCode.coordinator_not_available,  # of transactions
    "SaslHandshake": ErrorCode.illegal_sasl_state,  # there is nothing to show
    "SaslAuthenticate": ErrorCode.illegal_sasl_state,
    "CreateDelegationToken": ErrorCode.delegation_token_request_not_allowed,
    "RenewDelegationToken": ErrorCode.delegation_token_request_not_allowed,
    "ExpireDelegationToken": ErrorCode.delegation_token_request_not_allowed,
    "DescribeDelegationToken": ErrorCode.delegation_token_request_not_allowed,
    "DescribeAcls": ErrorCode.security_disabled,
    "CreateAcls": ErrorCode.security_disabled,
    "DeleteAcls": ErrorCode.security_disabled,
    "ShareGroupDescribe": ErrorCode.group_id_not_found,
    "DeleteShareGroupOffsets": ErrorCode.group_id_not_found,
    "StreamsGroupDescribe": ErrorCode.group_id_not_found,
    "ShareAcknowledge": ErrorCode.share_session_not_found,
    "ReadShareGroupState": ErrorCode.invalid_request,  # nobody has initialized it
    "WriteShareGroupState": ErrorCode.invalid_request,
    "DeleteTopics": ErrorCode.unknown_topic_or_partition,
    "CreatePartitions": ErrorCode.invalid_partitions,
    "ElectLeaders": ErrorCode.election_not_needed,
    "PushTelemetry": ErrorCode.invalid_request,  # of a client without an id
    "AlterPartitionReassignments": ErrorCode.no_reassignment_in_progress,
}


def errors(response: Any) -> set[ErrorCode]:
    """All error codes in a response, at any depth."""
    if isinstance(response, (list, tuple)):
        return {error for one in response for error in errors(one)}
    if isinstance(response, ErrorCode):
        return {response} - {ErrorCode.none}
    if hasattr(response, "__dataclass_fields__"):
        return {error for name in response.__dataclass_fields__ for error in errors(getattr(response, name))}
    return set()


@pytest.mark.parametrize(("api", "version"), [(api, v) for api in APIS for v in range(api.lowest, api.highest + 1)])
def test_every_version_is_answered(kafka: Cluster, api: Api, version: int) -> None:
    with WireClient(kafka.bootstrap) as client:
        response = client.ask(api.key, version, **asked(api, version, kafka))
    expected = EXPECTED.get((api.name, version)) or EXPECTED.get(api.name)
    assert errors(response) == (set() if expected is None else {expected}), response


SPEECHLESS = {("DescribeLogDirs", 1), ("DescribeLogDirs", 2)}
"""Without a field for an error: the connection is closed instead."""


@pytest.mark.parametrize(("api", "version"), [(api, v) for api in APIS for v in range(api.lowest, api.highest + 1)])
def test_every_version_can_be_refused(kafka: Cluster, api: Api, version: int) -> None:
    def gate(call: Any) -> bool:
        if call.api is not api:
            return False
        call.refuse(ErrorCode.policy_violation)
        return True

    kafka._gate = gate
    try:
        with WireClient(kafka.bootstrap) as client:
            if (api.name, version) in SPEECHLESS:
                with pytest.raises(ConnectionError):
                    client.ask(api.key, version, **asked(api, version, kafka))
                return
            response = client.ask(api.key, version, **asked(api, version, kafka))
    finally:
        kafka._gate = None
    assert errors(response) == {ErrorCode.policy_violation}, response


def test_api_versions_that_nobody_knows_are_answered_in_version_0(kafka: Cluster) -> None:
    with WireClient(kafka.bootstrap) as client:
        number = client.send(18, 4)
        client.receive(18, 4, number)
        data = b"\0\x12\0\x63\0\0\0\x07\0\x04wire\0"
        client.socket.sendall(len(data).to_bytes(4, "big") + data)
        response = client.receive(18, 0, 7)
    assert response.error_code is ErrorCode.unsupported_version
    assert [(key.api_key, key.max_version) for key in response.api_keys] == [(18, BY_NAME["ApiVersions"].highest)]


def test_a_topic_id_that_nobody_knows(kafka: Cluster) -> None:
    with WireClient(kafka.bootstrap) as client:
        partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 9}
        topics = [{"topic_id": uuid.uuid4(), "partitions": [partition]}]
        response = client.ask(1, 17, topics=topics, max_wait=SECOND, min_bytes=1, session_epoch=-1)
    assert errors(response) == {ErrorCode.unknown_topic_id}
