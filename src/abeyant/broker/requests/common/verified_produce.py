"""Before a transactional append, verify with the coordinator that the partitions are in the transaction (KIP-890)."""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct

from abeyant.broker.errors import ApiError
from abeyant.broker.log import split
from abeyant.broker.replica.partition import Partition
from abeyant.broker.replica.verification import Verification
from abeyant.broker.requests.common.call import Call
from abeyant.broker.transactions.verification import Key, VerificationRequest, verify
from abeyant.broker.wire.schema import ErrorCode

_PRODUCER = Struct(">21xh20xqhi")  # a batch's attributes, producer id, epoch and base sequence
_TRANSACTIONAL = 16
_KNOWS_ABORTABLE_SINCE, _ADDS_SINCE = 11, 12  # versions

# Older clients may not retry these. They do retry NOT_ENOUGH_REPLICAS, without looking for another leader.
_RETRIABLE = (
    ErrorCode.network_exception, ErrorCode.coordinator_load_in_progress, ErrorCode.coordinator_not_available,
    ErrorCode.not_coordinator,
)  # fmt: skip


class Verified:
    """The coordinator's results for the partitions that had to be verified."""

    def __init__(self, errors: dict[Key, ErrorCode], verifications: dict[Key, Verification], *, adds: bool) -> None:
        """`errors` and `verifications` are by partition. With `adds`, brokers add partitions to the transaction."""
        self._errors = errors
        self._verifications = verifications
        self._adds = adds

    def require(self, partition: Partition) -> None:
        """Raise ApiError if the partition's verification failed."""
        key = partition.topic, partition.index
        error = self._errors.get(key, ErrorCode.none)
        if error is not ErrorCode.none:
            partition.verifications.forget(self._verifications[key].producer_id)
            raise self._client_error(error)

    def check(self, partition: Partition, records: bytes) -> None:
        """Raise a LogError for records that are not part of a verified transaction."""
        if partition.leads:
            verification = self._verifications.get((partition.topic, partition.index))
            for batch in split(records):
                partition.verifications.check(batch, verification)

    def _client_error(self, error: ErrorCode) -> ApiError:
        if error is ErrorCode.invalid_txn_state:
            return ApiError(error, "Partition was not added to the transaction")
        if error in _RETRIABLE or (error is ErrorCode.concurrent_transactions and not self._adds):
            return ApiError(
                ErrorCode.not_enough_replicas,
                "Unable to verify the partition has been added to the transaction. Underlying error:"
                f" {error.name.upper()}",
            )
        return ApiError(error)


def verify_then(call: Call, then: Callable[[Verified], object]) -> None:
    """Verify the request's transactional partitions with the coordinator, then call `then` with the results."""
    adds = call.version >= _ADDS_SINCE
    verifications: dict[Key, Verification] = {}
    producers = set()
    for topic in call.request.topic_data:
        for data in topic.partition_data:
            records = data.records or b""
            if len(records) < _PRODUCER.size:
                continue
            attributes, producer_id, epoch, sequence = _PRODUCER.unpack_from(records)
            if not attributes & _TRANSACTIONAL:
                continue
            producers.add((producer_id, epoch))
            try:
                partition = call.partition(topic.name, topic.topic_id, data.index)
            except ApiError:
                continue  # the append reports the error
            if partition.leads and (needed := partition.verifications.needed(producer_id, epoch, sequence, bumps=adds)):
                verifications[partition.topic, partition.index] = needed
    if len(producers) > 1:
        response = call.api.error_response(call.request, ErrorCode.invalid_producer_id_mapping)
        for topic in response.responses:
            for partition in topic.partition_responses:
                partition.error_message = "Transactional records contained more than one producer ID"
        call.answer(response)
    elif not verifications:
        then(Verified({}, {}, adds=adds))
    else:
        ((producer_id, epoch),) = producers
        verification = VerificationRequest(
            call.request.transactional_id, producer_id, epoch, [*verifications], adds,
            call.version >= _KNOWS_ABORTABLE_SINCE,
        )  # fmt: skip
        verify(call.broker, verification, lambda errors: then(Verified(errors, verifications, adds=adds)))
