"""The APIs that this set asks for."""

SERVED = frozenset({
    "AlterConfigs", "AlterPartitionReassignments", "ApiVersions", "CreatePartitions", "CreateTopics", "DeleteRecords",
    "DeleteTopics", "DescribeCluster", "DescribeConfigs", "DescribeLogDirs", "DescribeProducers",
    "DescribeTopicPartitions", "ElectLeaders", "Fetch", "FindCoordinator", "IncrementalAlterConfigs", "InitProducerId",
    "ListOffsets", "ListPartitionReassignments", "Metadata", "OffsetForLeaderEpoch", "Produce",
})  # fmt: skip
