"""The APIs and the features that this set asks for."""

SERVED = frozenset({
    "AddOffsetsToTxn", "AddPartitionsToTxn", "AlterConfigs", "AlterPartitionReassignments", "ApiVersions",
    "CreatePartitions", "CreateTopics", "DeleteGroups", "DeleteRecords", "DeleteTopics", "DescribeCluster",
    "DescribeConfigs", "DescribeGroups", "DescribeLogDirs", "DescribeProducers", "DescribeTopicPartitions",
    "DescribeTransactions", "ElectLeaders", "EndTxn", "Fetch", "FindCoordinator", "Heartbeat",
    "IncrementalAlterConfigs", "InitProducerId", "JoinGroup", "LeaveGroup", "ListGroups", "ListOffsets",
    "ListPartitionReassignments", "ListTransactions", "Metadata", "OffsetCommit", "OffsetDelete", "OffsetFetch",
    "OffsetForLeaderEpoch", "Produce", "SyncGroup", "TxnOffsetCommit", "WriteTxnMarkers",
})  # fmt: skip

FEATURES = frozenset({"group.version", "kraft.version", "metadata.version", "transaction.version"})
