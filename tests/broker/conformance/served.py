"""The APIs that this set asks for."""

SERVED = frozenset({
    "AlterConfigs", "AlterPartitionReassignments", "ApiVersions", "CreatePartitions", "CreateTopics", "DeleteGroups",
    "DeleteRecords", "DeleteTopics", "DescribeCluster", "DescribeConfigs", "DescribeGroups", "DescribeLogDirs",
    "DescribeProducers", "DescribeTopicPartitions", "ElectLeaders", "Fetch", "FindCoordinator", "Heartbeat",
    "IncrementalAlterConfigs", "InitProducerId", "JoinGroup", "LeaveGroup", "ListGroups", "ListOffsets",
    "ListPartitionReassignments", "Metadata", "OffsetCommit", "OffsetDelete", "OffsetFetch", "OffsetForLeaderEpoch",
    "Produce", "SyncGroup",
})  # fmt: skip
