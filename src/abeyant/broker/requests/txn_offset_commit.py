"""TxnOffsetCommit (key 28, versions 0-5): commit offsets in a transaction, invisible until it commits.

Kafka: `KafkaApis.handleTxnOffsetCommitRequest`.
"""

from __future__ import annotations

from abeyant.broker.errors import ApiError
from abeyant.broker.groups.shard import GroupShard
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.commits import Commit, error_response
from abeyant.broker.requests.common.coordinators import group_shard
from abeyant.broker.transactions.verification import Key, VerificationRequest, verify
from abeyant.broker.wire.schema import ErrorCode

__all__ = ["FILL", "error_response", "handle"]

FILL: dict[str, dict[str, object]] = {
    "TxnOffsetCommitRequest": {"generation_id": -1, "member_id": "", "group_instance_id": None},
    "TxnOffsetCommitRequestTopic": {"topic_id": None},
    "TxnOffsetCommitRequestPartition": {"committed_leader_epoch": -1},
}
_KNOWS_LOADING_SINCE, _KNOWS_ABORTABLE_SINCE, _ADDS_SINCE = 2, 4, 5  # versions


def handle(call: Call) -> None:
    """Verify that the group's offsets are part of the transaction, then commit the valid ones."""
    request = call.request
    commit = Commit(call, [topic.name for topic in request.topics], ErrorCode.unknown_topic_or_partition)
    if commit.all_failed:
        commit.answer(ErrorCode.none)
        return
    try:
        shard = group_shard(call, request.group_id)
    except ApiError as error:
        _answer(call, commit, error.code)
        return
    partition = shard.partition
    adds = call.version >= _ADDS_SINCE
    producer_id, epoch = request.producer_id, request.producer_epoch
    guard = partition.verifications.needed(producer_id, epoch, 0, bumps=adds)
    enabled = call.broker.cluster.settings.value("transaction.partition.verification.enable", call.broker.id)
    if guard is None or not enabled:
        _commit(call, shard, commit)
        return
    key = partition.topic, partition.index
    knows_abortable = call.version >= _KNOWS_ABORTABLE_SINCE
    verification = VerificationRequest(request.transactional_id, producer_id, epoch, [key], adds, knows_abortable)

    def verified(errors: dict[Key, ErrorCode]) -> None:
        error = errors.get(key, ErrorCode.none)
        if error is ErrorCode.none and not partition.verifications.holds(guard):
            error = ErrorCode.invalid_txn_state  # the transaction ended meanwhile
        if error is not ErrorCode.none:
            partition.verifications.forget(producer_id)
            _answer(call, commit, error)
        elif call.broker.group_coordinator.shards.get(partition.index) is not shard:
            _answer(call, commit, ErrorCode.not_coordinator)
        else:
            _commit(call, shard, commit)

    verify(call.broker, verification, verified)


def _commit(call: Call, shard: GroupShard, commit: Commit) -> None:
    request = call.request
    try:
        commit.require_allowed(shard, request.generation_id, transactional=True)
    except ApiError as error:
        _answer(call, commit, error.code)
        return
    producer = request.producer_id, request.producer_epoch
    commit.write(shard, lambda error: _answer(call, commit, error), producer=producer)


def _answer(call: Call, commit: Commit, error: ErrorCode) -> None:
    if error is ErrorCode.network_exception:
        error = ErrorCode.coordinator_load_in_progress
    if error is ErrorCode.coordinator_load_in_progress and call.version < _KNOWS_LOADING_SINCE:
        error = ErrorCode.coordinator_not_available
    commit.answer(error)
