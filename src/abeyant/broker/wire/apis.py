"""The registry of supported APIs and their versions: those of Kafka 4 that kio has schemas for.

The module of `broker.requests` with an API's name handles the API. The first request imports the module, which defines
    `handle(call)`                     respond to a request, now or later
    `error_response(request, error)`   return the response with this error for everything in the request; only needed
                                       if setting `error_code` is not enough
    `FILL`                             optional: kio class -> defaults of fields that older versions lack (schema.py)

ApiVersions advertises only this list. A request for another API closes the connection, as in Kafka.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from abeyant.broker.wire.schema import Codec, ErrorCode, Message


class Api:
    """One API: its key, its name in Kafka's spelling, its versions, and its module of `broker.requests`."""

    __slots__ = ("_codecs", "_module", "highest", "key", "lowest", "module_name", "name")

    def __init__(self, key: int, name: str, lowest: int, highest: int, module: str) -> None:
        self.key = key
        self.name = name
        self.lowest = lowest
        self.highest = highest
        self.module_name = module
        self._module: Any = None
        self._codecs: dict[int, Codec] = {}

    @property
    def module(self) -> Any:
        """Return the handler's module. The first call imports it."""
        if self._module is None:
            self._module = import_module(f"abeyant.broker.requests.{self.module_name}")
        return self._module

    def error_response(self, request: Any, error: ErrorCode) -> Message:
        """Return the response with this error for everything in the request."""
        make = getattr(self.module, "error_response", None)
        response: Message = Message(error_code=error) if make is None else make(request, error)
        return response

    def codec(self, version: int) -> Codec:
        """Return the codec of a version between `lowest` and `highest`. The first call creates the codec."""
        codec = self._codecs.get(version)
        if codec is None:  # clusters in two threads may both make one; either is fine
            codec = self._codecs[version] = Codec(self.key, version, getattr(self.module, "FILL", {}))
        return codec

    def __repr__(self) -> str:
        return f"<Api {self.name} {self.lowest}-{self.highest}>"


APIS = (
    Api(0, "Produce", 3, 13, "produce"),
    Api(1, "Fetch", 4, 18, "fetch"),
    Api(2, "ListOffsets", 1, 11, "list_offsets"),
    Api(3, "Metadata", 0, 13, "metadata"),
    Api(8, "OffsetCommit", 2, 10, "offset_commit"),
    Api(9, "OffsetFetch", 1, 10, "offset_fetch"),
    Api(10, "FindCoordinator", 0, 6, "find_coordinator"),
    Api(11, "JoinGroup", 0, 9, "join_group"),
    Api(12, "Heartbeat", 0, 4, "heartbeat"),
    Api(13, "LeaveGroup", 0, 5, "leave_group"),
    Api(14, "SyncGroup", 0, 5, "sync_group"),
    Api(15, "DescribeGroups", 0, 6, "describe_groups"),
    Api(16, "ListGroups", 0, 5, "list_groups"),
    Api(17, "SaslHandshake", 0, 1, "sasl_handshake"),
    Api(18, "ApiVersions", 0, 4, "api_versions"),
    Api(19, "CreateTopics", 2, 7, "create_topics"),
    Api(20, "DeleteTopics", 1, 6, "delete_topics"),
    Api(21, "DeleteRecords", 0, 2, "delete_records"),
    Api(22, "InitProducerId", 0, 5, "init_producer_id"),
    Api(23, "OffsetForLeaderEpoch", 2, 4, "offset_for_leader_epoch"),
    Api(24, "AddPartitionsToTxn", 0, 5, "add_partitions_to_txn"),
    Api(25, "AddOffsetsToTxn", 0, 4, "add_offsets_to_txn"),
    Api(26, "EndTxn", 0, 5, "end_txn"),
    Api(27, "WriteTxnMarkers", 1, 2, "write_txn_markers"),
    Api(28, "TxnOffsetCommit", 0, 5, "txn_offset_commit"),
    Api(29, "DescribeAcls", 1, 3, "describe_acls"),
    Api(30, "CreateAcls", 1, 3, "create_acls"),
    Api(31, "DeleteAcls", 1, 3, "delete_acls"),
    Api(32, "DescribeConfigs", 1, 4, "describe_configs"),
    Api(33, "AlterConfigs", 0, 2, "alter_configs"),
    Api(34, "AlterReplicaLogDirs", 1, 2, "alter_replica_log_dirs"),
    Api(35, "DescribeLogDirs", 1, 5, "describe_log_dirs"),
    Api(36, "SaslAuthenticate", 0, 2, "sasl_authenticate"),
    Api(37, "CreatePartitions", 0, 3, "create_partitions"),
    Api(38, "CreateDelegationToken", 1, 3, "create_delegation_token"),
    Api(39, "RenewDelegationToken", 1, 2, "renew_delegation_token"),
    Api(40, "ExpireDelegationToken", 1, 2, "expire_delegation_token"),
    Api(41, "DescribeDelegationToken", 1, 3, "describe_delegation_token"),
    Api(42, "DeleteGroups", 0, 2, "delete_groups"),
    Api(43, "ElectLeaders", 0, 2, "elect_leaders"),
    Api(44, "IncrementalAlterConfigs", 0, 1, "incremental_alter_configs"),
    Api(45, "AlterPartitionReassignments", 0, 1, "alter_partition_reassignments"),
    Api(46, "ListPartitionReassignments", 0, 0, "list_partition_reassignments"),
    Api(47, "OffsetDelete", 0, 0, "offset_delete"),
    Api(48, "DescribeClientQuotas", 0, 1, "describe_client_quotas"),
    Api(49, "AlterClientQuotas", 0, 1, "alter_client_quotas"),
    Api(50, "DescribeUserScramCredentials", 0, 0, "describe_user_scram_credentials"),
    Api(51, "AlterUserScramCredentials", 0, 0, "alter_user_scram_credentials"),
    Api(55, "DescribeQuorum", 0, 2, "describe_quorum"),
    Api(57, "UpdateFeatures", 0, 2, "update_features"),
    Api(60, "DescribeCluster", 0, 2, "describe_cluster"),
    Api(61, "DescribeProducers", 0, 0, "describe_producers"),
    Api(65, "DescribeTransactions", 0, 0, "describe_transactions"),
    Api(66, "ListTransactions", 0, 2, "list_transactions"),
    Api(68, "ConsumerGroupHeartbeat", 0, 1, "consumer_group_heartbeat"),
    Api(69, "ConsumerGroupDescribe", 0, 1, "consumer_group_describe"),
    Api(71, "GetTelemetrySubscriptions", 0, 0, "get_telemetry_subscriptions"),
    Api(72, "PushTelemetry", 0, 0, "push_telemetry"),
    Api(74, "ListConfigResources", 0, 1, "list_config_resources"),
    Api(75, "DescribeTopicPartitions", 0, 0, "describe_topic_partitions"),
    Api(76, "ShareGroupHeartbeat", 1, 1, "share_group_heartbeat"),
    Api(77, "ShareGroupDescribe", 1, 1, "share_group_describe"),
    Api(78, "ShareFetch", 1, 2, "share_fetch"),
    Api(79, "ShareAcknowledge", 1, 2, "share_acknowledge"),
    Api(83, "InitializeShareGroupState", 0, 0, "initialize_share_group_state"),
    Api(84, "ReadShareGroupState", 0, 0, "read_share_group_state"),
    Api(85, "WriteShareGroupState", 0, 1, "write_share_group_state"),
    Api(86, "DeleteShareGroupState", 0, 0, "delete_share_group_state"),
    Api(87, "ReadShareGroupStateSummary", 0, 1, "read_share_group_state_summary"),
    Api(88, "StreamsGroupHeartbeat", 0, 0, "streams_group_heartbeat"),
    Api(89, "StreamsGroupDescribe", 0, 0, "streams_group_describe"),
    Api(90, "DescribeShareGroupOffsets", 0, 1, "describe_share_group_offsets"),
    Api(91, "AlterShareGroupOffsets", 0, 0, "alter_share_group_offsets"),
    Api(92, "DeleteShareGroupOffsets", 0, 0, "delete_share_group_offsets"),
)

BY_KEY = {api.key: api for api in APIS}
BY_NAME = {api.name: api for api in APIS}
