"""TxnOffsetCommit: how far a group is, as part of a producer's transaction: nobody sees it until that commits."""

from __future__ import annotations

from typing import Any

from abeyance.broker.errors import ApiError
from abeyance.broker.groups.records import Offset, OffsetKey
from abeyance.broker.groups.shard import GroupShard
from abeyance.broker.requests.call import Call
from abeyance.broker.requests.groups import shard_of
from abeyance.broker.requests.offset_commit import Errors, instead, missing, response
from abeyance.broker.transactions.verification import Key, Question, verify
from abeyance.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {
    "TxnOffsetCommitRequest": {"generation_id": -1, "member_id": "", "group_instance_id": None},
    "TxnOffsetCommitRequestTopic": {"topic_id": None},
    "TxnOffsetCommitRequestPartition": {"committed_leader_epoch": -1},
}
_KNOWS_LOADING_SINCE, _KNOWS_ABORTABLE_SINCE, _ADDS_SINCE = 2, 4, 5  # versions


def handle(call: Call) -> None:
    """Verify that the group's offsets are part of the transaction, then commit what can be."""
    request = call.request
    errors = [
        [missing(call, topic.name, asked.partition_index) for asked in topic.partitions] for topic in request.topics
    ]
    if all(error is not ErrorCode.none for topic in errors for error in topic):
        call.answer(response(request, errors))
        return
    try:
        shard = shard_of(call, request.group_id)
    except ApiError as error:
        _answer(call, errors, error.code)
        return
    partition = shard.partition
    adds = call.version >= _ADDS_SINCE
    producer_id, epoch = request.producer_id, request.producer_epoch
    needed = partition.verifications.needed(producer_id, epoch, 0, bumps=adds)
    wanted = call.broker.cluster.settings["transaction.partition.verification.enable"]
    if needed is None or not wanted:
        _commit(call, shard, errors)
        return
    key = partition.topic, partition.index
    knows_abortable = call.version >= _KNOWS_ABORTABLE_SINCE
    question = Question(request.transactional_id, producer_id, epoch, [key], adds, knows_abortable)

    def verified(found: dict[Key, ErrorCode]) -> None:
        error = found.get(key, ErrorCode.none)
        if error is ErrorCode.none and not partition.verifications.holds(needed):
            error = ErrorCode.invalid_txn_state  # its end has come in between
        if error is not ErrorCode.none:
            partition.verifications.forget(producer_id)
            _answer(call, errors, error)
        elif call.broker.group_coordinator.shards.get(partition.index) is not shard:
            _answer(call, errors, ErrorCode.not_coordinator)
        else:
            _commit(call, shard, errors)

    verify(call.broker, question, verified)


def refused(request: Any, error: ErrorCode) -> Message:
    """The same error for everything."""
    return response(request, [[error] * len(topic.partitions) for topic in request.topics])


def _commit(call: Call, shard: GroupShard, errors: Errors) -> None:
    request = call.request
    try:
        _require(call, shard)
    except ApiError as error:
        _answer(call, errors, error.code)
        return
    now = call.broker.now_ms()
    offsets: dict[OffsetKey, Offset] = {}
    for topic, of_topic in zip(request.topics, errors, strict=True):
        for place, asked in enumerate(topic.partitions):
            if of_topic[place] is not ErrorCode.none:
                continue
            if not shard.metadata_fits(asked.committed_metadata):
                of_topic[place] = ErrorCode.offset_metadata_too_large
                continue
            offsets[OffsetKey(request.group_id, topic.name, asked.partition_index)] = Offset(
                asked.committed_offset, asked.committed_leader_epoch, asked.committed_metadata or "", now, None
            )
    if not offsets:
        call.answer(response(request, errors))
        return
    shard.commit(
        offsets,
        lambda error: _answer(call, errors, error),
        client_id=call.client_id,
        producer=(request.producer_id, request.producer_epoch),
    )


def _require(call: Call, shard: GroupShard) -> None:
    """Whether the client may commit; a group that is not there is made for who is no member of any."""
    request = call.request
    if request.group_id not in shard.groups and request.generation_id >= 0:
        raise ApiError(ErrorCode.illegal_generation)
    group = shard.group_or_new(request.group_id)
    shard.protocol.require_may_commit(
        group, request.member_id, request.group_instance_id, request.generation_id, transactional=True
    )


def _answer(call: Call, errors: Errors, error: ErrorCode) -> None:
    if error is ErrorCode.network_exception:
        error = ErrorCode.coordinator_load_in_progress
    if error is ErrorCode.coordinator_load_in_progress and call.version < _KNOWS_LOADING_SINCE:
        error = ErrorCode.coordinator_not_available
    call.answer(response(call.request, instead(errors, error)))
