"""One broker: its replicas, its purgatories, its listening socket, and its clients' requests.

A stopped `Broker` is not used again: `Cluster.start` creates a new one with the same id.

Messages from other brokers, timers and requests all reach a broker through `run`. While the broker is paused they wait
in an inbox, as they would wait in the sockets and timers of a process under SIGSTOP.
"""

from __future__ import annotations

import asyncio
import math
import struct
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from abeyant import IdleDetector, Purgatory
from abeyant.broker.coordinator.coordinator import Coordinator
from abeyant.broker.coordinator.topics import OFFSETS, SHARES, TRANSACTIONS
from abeyant.broker.delayed.operation import Waiting
from abeyant.broker.delayed.throttle import ThrottledChannels
from abeyant.broker.housekeeping import Housekeeping
from abeyant.broker.log import Log, LogError
from abeyant.broker.quotas.limits import ClientQuotas
from abeyant.broker.replica.fetch_call import ReplicaFetchCall
from abeyant.broker.replica.fetcher import Fetchers
from abeyant.broker.replica.messages import Key, ReplicaFetch, ReplicaResponse
from abeyant.broker.replica.partition import Partition
from abeyant.broker.replica.session import Session
from abeyant.broker.replica.throttle import ReplicationThrottle
from abeyant.broker.requests.common import peer_call, ports
from abeyant.broker.requests.common.call import Call
from abeyant.broker.requests.common.fetch_sessions import FetchSessions
from abeyant.broker.requests.common.named import keys_of
from abeyant.broker.security.login import AuthenticationError, Login, SaslSession
from abeyant.broker.telemetry.clients import TelemetryClients
from abeyant.broker.transactions.shard import TransactionShard
from abeyant.broker.wire.apis import BY_KEY
from abeyant.broker.wire.connection import Connection, Staging
from abeyant.broker.wire.listener import Listener
from abeyant.broker.wire.quotas import ConnectionQuotas
from abeyant.broker.wire.schema import ErrorCode
from abeyant.reporting import logger

if TYPE_CHECKING:
    from abeyant.broker.coordinator.ports import Broker as CoordinatorBroker
    from abeyant.broker.groups.shard import GroupShard
    from abeyant.broker.partition_state import PartitionState, Topic
    from abeyant.broker.replica.ports import Timer
    from abeyant.broker.settings import Settings
    from abeyant.broker.shares.partitions import SharePartitions
    from abeyant.broker.shares.sessions import ShareSessions
    from abeyant.broker.shares.state.shard import ShareStateShard
    from abeyant.purgatory.ports import Stoppable

_HEADER = struct.Struct(">hhi")  # API key, version, correlation id: the same in every version
_API_VERSIONS = 18
_CENTURY_MS = 100 * 365 * 86_400_000


class Cluster(ports.Cluster, Protocol):
    """What a broker uses of its cluster."""

    host: str
    _staging: Staging

    def _client_address(self, broker: int) -> tuple[str, int]:
        """Return a broker's host and port for clients."""

    @property
    def _awaited(self) -> Sequence[object]:
        """Return the blocked calls of `until_waiting`. While there are any, each request calls `_check_awaited`."""

    def _check_awaited(self) -> None:
        """Complete the calls of `until_waiting` whose requests are pending now."""


class BrokerTimer:
    """The cluster's timer for one broker. While the broker is paused, callbacks that are due wait in its inbox."""

    __slots__ = ("_broker", "_call_later")

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._call_later = broker.cluster.clock.timer.call_later

    def call_later(self, delay: float, callback: Callable[..., object], /, *args: object) -> Stoppable:
        """Call `callback(*args)` after `delay` seconds. If the broker is paused at that time, wait until it resumes."""
        return self._call_later(delay, self._broker.run, callback, *args)


class Broker:
    """One of the cluster's brokers, from its start to its stop. Use from the loop's thread only."""

    def __init__(self, cluster: Cluster, broker_id: int) -> None:
        settings = cluster.settings
        self.cluster = cluster
        self.id = broker_id
        self.host = cluster.host
        self.port = 0
        self.paused = False
        self.stopped = False
        self.now = cluster.clock.now
        self.now_ms = cluster.clock.now_ms
        self.started_ms = self.now_ms()  # the periodic scans count from here, as in Kafka
        self.timer: Timer = BrokerTimer(self)
        self.partitions: dict[Key, Partition] = {}
        self.by_id: dict[tuple[int, int], Partition] = {}  # by topic id (its int) and partition index
        self.fetchers = Fetchers(self)
        self.sessions: dict[int, Session] = {}
        self.answered: defaultdict[str, int] = defaultdict(int)  # requests by API, for the metrics
        self.connections: dict[Connection, None] = {}  # in the order in which they came
        self.fetch_sessions = FetchSessions(settings["max.incremental.fetch.session.cache.slots"])
        self.lag_max: float = settings["replica.lag.time.max.ms"] / 1000
        self.replica_fetch_wait: float = settings["replica.fetch.wait.max.ms"] / 1000
        self.replica_fetch_backoff: float = settings["replica.fetch.backoff.ms"] / 1000
        self.replica_fetch_bytes: int = settings["replica.fetch.response.max.bytes"]
        self.replica_partition_bytes: int = settings["replica.fetch.max.bytes"]
        self.purgatories: list[Purgatory[Any]] = []
        self.produce_purgatory = self._purgatory("Produce")
        self.fetch_purgatory = self._purgatory("Fetch")  # consumers' and followers'
        self.delete_records_purgatory = self._purgatory("DeleteRecords")
        self.elect_leader_purgatory = self._purgatory("ElectLeader")
        self.rebalance_purgatory = self._purgatory("Rebalance")
        self.heartbeat_purgatory = self._purgatory("Heartbeat")
        self.share_fetch_purgatory = self._purgatory("ShareFetch")
        self.share_lock_purgatory = self._purgatory("ShareLock")
        self.inter_broker_purgatory = self._purgatory("InterBroker")
        self.held_purgatory = self._purgatory("Held")  # requests that a fault delays
        self.throttle_purgatory = self._purgatory("Throttle")
        self.throttled = ThrottledChannels(self.throttle_purgatory, self.now)
        self.leader_throttle = ReplicationThrottle(self, "leader")
        self.follower_throttle = ReplicationThrottle(self, "follower")
        self.group_coordinator = Coordinator(self, OFFSETS, _group_shard)
        self.transaction_coordinator = Coordinator(self, TRANSACTIONS, TransactionShard)
        self.share_coordinator = Coordinator(self, SHARES, _share_state_shard)
        self.coordinators: dict[str, Coordinator[Any]] = {
            coordinator.topic.name: coordinator
            for coordinator in (self.group_coordinator, self.transaction_coordinator, self.share_coordinator)
        }
        self.request_timeout: float = settings["request.timeout.ms"] / 1000
        self.housekeeping = Housekeeping(self)
        self._inbox: deque[tuple[Callable[..., object], tuple[Any, ...]]] = deque()
        self._listener: Listener | None = None
        subscriptions = cluster.controller.client_metrics
        self.telemetry = TelemetryClients(
            broker_id, subscriptions, settings["telemetry.max.bytes"], self.timer, self.now
        )
        quotas = cluster.controller.quotas
        self.client_quotas = ClientQuotas(quotas, settings, self.now)
        self._quotas = ConnectionQuotas(settings, cluster.security.protocol, broker_id, quotas.connection_rate)
        self._max_request: int = settings["socket.request.max.bytes"]
        # Connections of a paused broker stay open.
        self._idle = IdleDetector(
            _idle(settings), lambda client: self.run(self._close_idle, client), cluster.clock.timer
        )

    def _purgatory(self, name: str) -> Purgatory[Any]:
        self.purgatories.append(Purgatory(name, self.timer))
        return self.purgatories[-1]

    @cached_property
    def shares(self) -> SharePartitions:
        """Return the broker's share partitions. The module is imported here, as most clusters have no share groups."""
        from abeyant.broker.shares.partitions import SharePartitions

        return SharePartitions(self)

    @cached_property
    def share_sessions(self) -> ShareSessions:
        """Return the share sessions of the broker's clients."""
        from abeyant.broker.shares.sessions import ShareSessions

        return ShareSessions(self.shares, self.cluster.settings["group.share.max.share.sessions"])

    @property
    def advertised(self) -> tuple[str, int]:
        """Return the broker's host and port for clients."""
        return self.cluster._client_address(self.id)

    @property
    def address(self) -> str:
        """Return `advertised` as HOST:PORT."""
        return "{}:{}".format(*self.advertised)

    @property
    def log_dir(self) -> str:
        """Return the broker's log directory, as shown to clients. With logs in memory, no such directory exists."""
        directory = self.cluster.directory
        return f"/memory/broker-{self.id}" if directory is None else str(directory.folder(self.id))

    def __repr__(self) -> str:
        state = "stopped" if self.stopped else "paused" if self.paused else f"at {self.host}:{self.port}"
        return f"<Broker {self.id} {state}>"

    # -- from start to stop

    def listen(self, port: int) -> None:
        """Listen on `port` (0: a free port), and accept clients from the loop's next turn on. Raises OSError."""
        loop = asyncio.get_running_loop()

        def connection() -> Connection:
            return Connection(loop, self, self.cluster._staging, self._max_request)

        tls = self.cluster.security.tls_context(self.cluster.settings, self.id)
        self.cluster.security.start(self.cluster.settings, self.id)
        self._listener = Listener(self.host, port, connection, self._quotas, self.timer, self.now, tls)
        self.port = self._listener.port

    def stop(self) -> None:
        """Cancel pending operations, close connections, and hand over leadership."""
        self.cluster.controller.unregister(self.id)
        self.cluster.network.settle()
        self.stopped = True
        self.paused = False  # so that `resume` does not register it
        self._inbox.clear()
        if self._listener is not None:
            self._listener.close()
        for connection in list(self.connections):
            connection.abort()
        for purgatory in self.purgatories:
            purgatory.close("cancel")
        for peer in self.cluster.brokers.values():
            self.cluster.network.send(peer, peer.inter_broker_purgatory.check_and_complete, self.id)
        self.telemetry.close()
        self._idle.close()
        self.housekeeping.close()
        for partition in self.partitions.values():
            try:
                partition.retire()
            except LogError as error:  # the next start recovers the log from its batches
                logger("broker").error("broker %d: %s", self.id, error)

    def pause(self) -> None:
        """Pause until `resume`: handle nothing, but keep connections open, as under SIGSTOP."""
        if not self.paused and not self.stopped:
            self.paused = True
            self.cluster.controller.start_session(self.id)

    def resume(self) -> None:
        """End a pause, and handle everything that arrived during the pause, in order."""
        if not self.paused:
            return
        self.paused = False
        self.cluster.controller.end_session(self)
        inbox, self._inbox = self._inbox, deque()
        while inbox and not self.paused:
            action, args = inbox.popleft()
            self.run(action, *args)
        self._inbox.extendleft(reversed(inbox))  # left over if one of them paused it again

    def run(self, action: Callable[..., object], *args: Any) -> None:
        """Call `action(*args)` now. If the broker is paused, call it after the pause; if it is stopped, never."""
        if self.paused:
            self._inbox.append((action, args))
        elif not self.stopped:
            action(*args)

    # -- messages from the controller

    def apply_state(self, state: PartitionState, topic: Topic) -> None:
        """Apply the new state of a partition: open, change or delete this broker's replica."""
        partition = self.by_id.get((state.topic_id.int, state.partition))
        if self.id not in state.replicas:
            if partition is not None and partition.state.partition_epoch <= state.partition_epoch:
                self._forget(partition)
            return
        if partition is None:
            if self.cluster.controller.by_id.get(state.topic_id) is None:
                return  # the topic was deleted before the message arrived
            try:
                log = self._open_log(state, topic)
            except LogError as error:
                logger("broker").error("broker %d has no %s-%d: %s", self.id, state.topic, state.partition, error)
                return
            partition = Partition(self, state, topic, log)
            self.housekeeping.add(partition)
            self.partitions[state.topic, state.partition] = partition
            self.by_id[state.topic_id.int, state.partition] = partition
        partition.become(state)
        self._update_coordinator(partition)
        for broker in self.cluster.brokers.values():
            broker.elect_leader_purgatory.check_and_complete((state.topic, state.partition))

    def _update_coordinator(self, partition: Partition) -> None:
        coordinator = self.coordinators.get(partition.topic)
        if coordinator is not None:
            coordinator.update(partition)

    def _open_log(self, state: PartitionState, topic: Topic) -> Log:
        config = topic.settings.log_config(self.id)
        directory = self.cluster.directory
        if directory is None:
            return Log(state.topic, state.partition, config, self.now_ms())
        return directory.open_log(self.id, state.topic, state.partition, state.topic_id, config, self.now_ms())

    def apply_settings(self) -> None:
        """Apply the current settings to topics, certificates, connection limits, the cleaner and throttled replicas."""
        topics = self.cluster.controller.by_id
        for partition in self.partitions.values():
            topic = topics.get(partition.topic_id)
            if topic is not None:
                partition.configure(topic)
        if self._listener is not None:
            self._listener.tls = self.cluster.security.tls_context(self.cluster.settings, self.id)
            self._listener.check_room()
        # Close the connections above the limit that have been idle for longest, as Kafka does.
        by_idle_time = sorted(self.connections, key=lambda client: self._idle.idle_for(client) or 0.0, reverse=True)
        for connection in by_idle_time[: max(self._quotas.excess, 0)]:
            connection.abort()
        self.housekeeping.reconfigure()
        self._release_throttled()

    def apply_topic_settings(self, topic: Topic) -> None:
        """Apply the settings of a topic to its replicas on this broker."""
        for partition in self.partitions.values():
            if partition.topic_id == topic.id:
                partition.configure(topic)
        self._release_throttled()

    def _release_throttled(self) -> None:
        """Check all replicas that a throttle holds back again, by the current settings."""
        self.leader_throttle.release()
        self.follower_throttle.release()

    def keep_only(self, topic_ids: frozenset[uuid.UUID]) -> None:
        """Delete the replicas of topics not in `topic_ids`: these were deleted while this broker was away."""
        for partition in list(self.partitions.values()):
            if partition.topic_id not in topic_ids:
                self._forget(partition)

    def forget_topic(self, topic: Topic) -> None:
        """Delete the replicas, the committed offsets and the share partitions' states of a deleted topic."""
        for partition in list(self.partitions.values()):
            if partition.topic_id == topic.id:
                self._forget(partition)
        for shard in self.group_coordinator.loaded():
            shard.forget_topic(topic.name, topic.id)
        for states in self.share_coordinator.loaded():
            states.forget_topic(topic.id)

    def _forget(self, partition: Partition) -> None:
        del self.partitions[partition.topic, partition.index]
        del self.by_id[partition.topic_id.int, partition.index]
        partition.close()
        self.housekeeping.remove(partition)
        self._update_coordinator(partition)
        try:
            partition.log.delete(self.now_ms())
        except LogError as error:
            logger("broker").error("broker %d: %s", self.id, error)

    # -- followers and leaders

    def ask_leader(self, leader: int, fetch: ReplicaFetch) -> None:
        """Send a fetch to a leader. A stopped leader does not respond, and the controller elects another leader."""
        broker = self.cluster.brokers.get(leader)
        if broker is not None and not broker.stopped:
            self.cluster.network.send(broker, broker.take_fetch, fetch)

    def take_fetch(self, fetch: ReplicaFetch) -> None:
        """Receive a follower's fetch. Faults may delay or drop it."""
        gate = self.cluster._gate
        if gate is None or not gate(ReplicaFetchCall(self, fetch)):
            self.handle_fetch(fetch)

    def handle_fetch(self, fetch: ReplicaFetch) -> None:
        """Handle a follower's fetch."""
        self.session(fetch.follower).fetch(fetch)

    ask = peer_call.ask

    def session(self, follower: int) -> Session:
        """Return the session of a broker that follows this one. The first call creates it."""
        session = self.sessions.get(follower)
        if session is None:
            session = self.sessions[follower] = Session(self, follower)
        return session

    def answer_follower(self, follower: int, answer: ReplicaResponse) -> None:
        """Send the response to a follower's fetch."""
        broker = self.cluster.brokers.get(follower)
        if broker is not None:
            self.cluster.network.send(broker, broker.fetchers.receive, answer)

    # -- clients

    def connected(self, connection: Connection) -> None:
        """Register a connection."""
        if self.stopped:
            connection.abort()
            return
        connection.login = self.cluster.security.login(self.id)
        connection.user = self.cluster.security.user_of(connection.certificate)
        self.connections[connection] = None
        self._idle.seen(connection)

    def disconnected(self, connection: Connection) -> None:
        """Forget a connection."""
        self.connections.pop(connection, None)
        if "share_sessions" in self.__dict__ and not self.stopped:
            self.run(self.share_sessions.disconnected, connection)
        self.telemetry.disconnected(connection)
        self._quotas.leave(connection)
        self.throttled.forget(connection)
        if self._listener is not None:
            self._listener.check_room()
        if not self._idle.closed:
            self._idle.forget(connection)

    def receive(self, connection: Connection, frame: memoryview) -> None:
        """Handle a request. While the broker is paused, keep the request in the inbox."""
        if self.paused:
            self._inbox.append((self._receive_late, (connection, memoryview(bytes(frame)), self.now())))
            if self.cluster._awaited:
                self.cluster._check_awaited()
            return
        if connection.closed:
            return
        self._idle.seen(connection)
        if connection.login is not None and connection.login.bare:
            self._take_token(connection, connection.login, bytes(frame))
            return
        try:
            call = self._call(connection, frame)
        except Exception as error:  # noqa: BLE001  any bytes may come (K9)
            connection.close(f"cannot read the request{_api_and_version(frame)}: {type(error).__name__}: {error}")
            return
        session = connection.session
        if session is not None and connection.login is None and self._is_over(connection, session, call.api.name):
            connection.close(f"the session of {session.user} has ended, and the client has not authenticated again")
            return
        gate = self.cluster._gate
        if gate is None or not gate(call):
            self.handle(call)

    def _receive_late(self, connection: Connection, frame: memoryview, _: float) -> None:
        self.receive(connection, frame)

    def unread(self) -> list[Waiting]:
        """Return the requests that have arrived during the pause and wait in the inbox. O(requests)."""
        requests = []
        for action, args in self._inbox:
            if action != self._receive_late or args[0].closed:
                continue
            connection, frame, since = args
            try:
                call = self._call(connection, frame)
            except Exception:  # noqa: BLE001  any bytes may come (K9); logged on resume
                continue
            requests.append(Waiting(self.id, call.api.name, keys_of(call), call.client_id, since, math.inf, "pause"))
        return requests

    def _take_token(self, connection: Connection, login: Login, token: bytes) -> None:
        try:
            answer, session = login.answer(token, self.now_ms())
        except AuthenticationError as error:
            connection.close(str(error))
            return
        if session is not None:
            connection.authenticated(session)
        connection.answer([answer])

    def _is_over(self, connection: Connection, session: SaslSession, api: str) -> bool:
        """Return whether the client's session has ended. Start re-authentication on a SaslHandshake (KIP-368)."""
        now_ms = self.now_ms()
        if api == "SaslHandshake" and session.is_renewable(now_ms):
            connection.login = self.cluster.security.login(self.id, session)
            return False
        return session.is_over(now_ms)

    def handle(self, call: Call) -> None:
        """Handle a call. If its handler raises, log the exception and respond with UNKNOWN_SERVER_ERROR."""
        if self.client_quotas.table.enabled:
            call.began = self.now()
        try:
            call.proceed()
            call.local = self.now() - call.since
            if self.cluster._awaited:
                self.cluster._check_awaited()
        except Exception:  # noqa: BLE001  a bug of ours must not stop other requests
            logger("broker").exception("%r failed", call)
            try:
                call.refuse(ErrorCode.unknown_server_error)
            except Exception:  # noqa: BLE001  the client must not wait for ever
                call.drop()

    def _call(self, connection: Connection, frame: memoryview) -> Call:
        try:
            key, version, _ = _HEADER.unpack_from(frame)
        except struct.error:
            raise ValueError(f"{len(frame)} bytes are too few for a request header") from None
        api = BY_KEY.get(key)
        if api is None:
            raise ValueError(f"API key {key} is not supported")
        if connection.login is not None:
            connection.login.admit(api.name)
        requested = version
        if not api.lowest <= version <= api.highest:
            if key != _API_VERSIONS:
                raise ValueError(f"this version is not supported, only versions {api.lowest} to {api.highest}")
            version = 0  # ApiVersions is answered in any version (KIP-511)
        codec = api.codec(version)
        header, size = codec.read_header(frame, 0)
        if requested != version:
            return Call(self, connection, api, requested, codec, header, None)
        request = codec.read_request(frame, size)
        call = Call(self, connection, api, version, codec, header, request)
        call.size = len(frame)
        return call

    def _close_idle(self, connection: Connection) -> None:
        """Close an idle connection. On the second call abort it, as the client does not read what was sent."""
        if connection not in self.connections:
            return
        if connection.closed:
            connection.abort()
        else:
            connection.close()
            self._idle.seen(connection)


def _idle(settings: Settings) -> float:
    """Return the idle time-out in seconds; a century for negative values, which mean never."""
    idle: int = settings["connections.max.idle.ms"]
    return min(max(idle, 1), _CENTURY_MS) / 1000 if idle >= 0 else _CENTURY_MS / 1000


def _api_and_version(frame: memoryview) -> str:
    """Return the API and version of an unreadable request, in parentheses; "" if even they are unreadable."""
    key, version, _ = _HEADER.unpack_from(frame) if len(frame) >= _HEADER.size else (None, 0, 0)
    return f" ({BY_KEY[key].name} version {version})" if key in BY_KEY else ""


def _group_shard(broker: CoordinatorBroker, partition: Partition) -> GroupShard:
    """Create the shard of groups in a partition. The module is imported here, as a starting cluster has no groups."""
    from abeyant.broker.groups.shard import GroupShard

    return GroupShard(broker, partition)


def _share_state_shard(broker: CoordinatorBroker, partition: Partition) -> ShareStateShard:
    """Create the shard of share groups' states in a partition. Imported here, as most clusters have no share groups."""
    from abeyant.broker.shares.state.shard import ShareStateShard

    return ShareStateShard(broker, partition)
