"""ElectLeaders (key 43, versions 0-2): elect the preferred replica, or any live replica in an unclean election.

The response waits until the elected brokers lead.
Kafka: `ReplicationControlManager.electLeaders`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from abeyant.broker.controller import Controller
from abeyant.broker.delayed.operation import BrokerOperation
from abeyant.broker.errors import ApiError
from abeyant.broker.partition_state import PartitionState
from abeyant.broker.requests.common.call import Call
from abeyant.broker.wire.schema import ErrorCode, Message

FILL: dict[str, dict[str, object]] = {"ElectLeadersRequest": {"election_type": 0}}
_PREFERRED, _UNCLEAN = 0, 1
_Key = tuple[str, int]
_Error = tuple[ErrorCode, str | None]
_MESSAGES = {ErrorCode.election_not_needed: "Leader election not needed for topic partition."}


class DelayedElectLeader(BrokerOperation):
    """The wait until elected leaders lead, in the ElectLeader purgatory of the broker that got the request."""

    __slots__ = ("_answer", "_leads", "waiting")

    kind = "ElectLeader"

    def __init__(
        self,
        timeout: float,
        elected: Sequence[PartitionState],
        leads: Callable[[PartitionState], bool],
        client_id: str,
        since: float,
        answer: Callable[[], object],
    ) -> None:
        """Wait at most `timeout` seconds. `leads` returns whether a partition's elected broker leads it already.

        `answer` is called once. At that time `waiting` has the partitions whose new leader does not lead yet.
        """
        super().__init__(timeout, client_id, since)
        self._leads = leads
        self._answer = answer
        self.waiting = list(elected)

    def keys(self) -> Iterable[tuple[str, int]]:
        """Return the partitions whose new leader does not lead yet."""
        return ((state.topic, state.partition) for state in self.waiting)

    def try_complete(self) -> bool:
        """Complete when all elected leaders lead. Kafka: `DelayedElectLeader.tryComplete`."""
        self.waiting = [state for state in self.waiting if not self._leads(state)]
        return not self.waiting and self.force_complete()

    def on_complete(self) -> None:
        """Call `answer`. The partitions that are still in `waiting` have timed out."""
        self._answer()


def handle(call: Call) -> None:
    """Elect leaders, then wait until they lead."""
    request = call.request
    if request.election_type not in (_PREFERRED, _UNCLEAN):
        results = _all_failed(request, ErrorCode.invalid_request, f"Unknown election type {request.election_type}")
        call.answer(_response(ErrorCode.invalid_request, results))
        return
    controller = call.broker.cluster.controller
    every = request.topic_partitions is None
    keys = _partitions(request)
    if every:
        keys = [(topic.name, state.partition) for topic in controller.topics.values() for state in topic.partitions]
    results = {}
    elected: list[PartitionState] = []
    for key in keys:
        try:
            elected.append(_elect(controller, key, unclean=request.election_type == _UNCLEAN))
            results[key] = ErrorCode.none, None
        except ApiError as error:
            if not (every and error.code is ErrorCode.election_not_needed):
                results[key] = error.code, error.message or _MESSAGES.get(error.code)
    names = list(controller.topics) if every else []
    operation = DelayedElectLeader(
        request.timeout.total_seconds(),
        elected,
        lambda state: _leads(call, state),
        call.client_id,
        call.since,
        lambda: _answer(call, results, operation, names),
    )
    watched = [(state.topic, state.partition) for state in elected]
    call.broker.elect_leader_purgatory.try_complete_else_watch(operation, watched or [None])


def error_response(request: Any, error: ErrorCode) -> Message:
    """Return the response with this error for everything in the request."""
    return _response(error, _all_failed(request, error, None))


def _all_failed(request: Any, error: ErrorCode, message: str | None) -> dict[_Key, _Error]:
    return dict.fromkeys(_partitions(request), (error, message))


def _partitions(request: Any) -> list[_Key]:
    return [(topic.topic, index) for topic in request.topic_partitions or () for index in topic.partitions]


def _elect(controller: Controller, key: _Key, *, unclean: bool) -> PartitionState:
    name, index = key
    topic = controller.topics.get(name)
    if topic is None:
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        raise ApiError(ErrorCode.unknown_topic_or_partition, f"No such partition as {name}-{index}")
    state = topic.partitions[index]
    return controller.leaders.elect_unclean(state) if unclean else controller.leaders.elect_preferred(state)


def _leads(call: Call, state: PartitionState) -> bool:
    broker = call.broker.cluster.brokers.get(state.leader)
    partition = None if broker is None else broker.partitions.get((state.topic, state.partition))
    return partition is not None and partition.state.leader_epoch >= state.leader_epoch


def _answer(call: Call, results: dict[_Key, _Error], operation: DelayedElectLeader, names: list[str]) -> None:
    for state in operation.waiting:
        results[state.topic, state.partition] = ErrorCode.request_timed_out, "The request timed out."
    call.answer(_response(ErrorCode.none, results, names))


def _response(error: ErrorCode, results: dict[_Key, _Error], names: Iterable[str] = ()) -> Message:
    """Return the response. It lists each topic in `names`, even if no partition of the topic has a result."""
    topics = {name: Message(topic=name, partition_result=[]) for name in names}
    for (name, index), (code, message) in results.items():
        topic = topics.setdefault(name, Message(topic=name, partition_result=[]))
        topic.partition_result.append(Message(partition_id=index, error_code=code, error_message=message))
    return Message(error_code=error, replica_election_results=list(topics.values()))
