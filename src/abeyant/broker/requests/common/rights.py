"""The rights that each API needs, and the error code if they are missing. Kafka: `KafkaApis`, `ControllerApis`.

A right is an operation on a type of resource. `WHOLE` has the rights for whole requests, `ITEMS` the rights for single
items in a request. An API in neither table needs CLUSTER_ACTION on the cluster.
"""

from __future__ import annotations

from typing import Final

from abeyant.broker.acls import (
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    WRITE,
)
from abeyant.broker.wire.schema import ErrorCode

__all__ = [
    "CONFIGS",
    "FAILED",
    "FIELDS",
    "INSTEAD",
    "ITEMS",
    "NAMES",
    "NEEDING",
    "SAYING",
    "SAYS",
    "WHOLE",
    "WHOLE_CLUSTER",
]

FAILED: Final = {
    TOPIC: ErrorCode.topic_authorization_failed, GROUP: ErrorCode.group_authorization_failed,
    CLUSTER: ErrorCode.cluster_authorization_failed,
    TRANSACTIONAL_ID: ErrorCode.transactional_id_authorization_failed,
}  # fmt: skip
FIELDS: Final = {
    GROUP: ("group_id",), TRANSACTIONAL_ID: ("transactional_id", "v3_and_below_transactional_id"),
}  # fmt: skip

# The rights for the whole request, by API; an API that is neither here nor in ITEMS needs CLUSTER_ACTION.
WHOLE: Final[dict[str, tuple[tuple[int, int], ...]]] = {
    **dict.fromkeys(
        (
            "ApiVersions", "DescribeCluster", "SaslAuthenticate", "SaslHandshake", "Fetch", "InitProducerId",
            "CreateDelegationToken", "RenewDelegationToken", "ExpireDelegationToken", "DescribeDelegationToken",
            "GetTelemetrySubscriptions", "PushTelemetry",
        ),
        (),
    ),
    **dict.fromkeys(
        (
            "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "ConsumerGroupHeartbeat",
            "ShareGroupHeartbeat", "ShareFetch", "ShareAcknowledge", "AlterShareGroupOffsets", "StreamsGroupHeartbeat",
        ),
        ((READ, GROUP),),
    ),
    **dict.fromkeys(("Produce", "EndTxn", "AddPartitionsToTxn"), ((WRITE, TRANSACTIONAL_ID),)),
    **dict.fromkeys(("AddOffsetsToTxn", "TxnOffsetCommit"), ((WRITE, TRANSACTIONAL_ID), (READ, GROUP))),
    **dict.fromkeys(
        (
            "CreateAcls", "DeleteAcls", "AlterPartitionReassignments", "ElectLeaders", "AlterUserScramCredentials",
            "AlterReplicaLogDirs", "UpdateFeatures",
        ),
        ((ALTER, CLUSTER),),
    ),
    **dict.fromkeys(
        (
            "DescribeAcls", "DescribeQuorum", "ListPartitionReassignments", "DescribeUserScramCredentials",
            "DescribeLogDirs",
        ),
        ((DESCRIBE, CLUSTER),),
    ),
    **dict.fromkeys(("OffsetDelete", "DeleteShareGroupOffsets"), ((DELETE, GROUP),)),
    "AlterClientQuotas": ((ALTER_CONFIGS, CLUSTER),),
    **dict.fromkeys(("DescribeClientQuotas", "ListConfigResources"), ((DESCRIBE_CONFIGS, CLUSTER),)),
}  # fmt: skip

# Rights that allow the whole request as well, by API.
INSTEAD: Final = {"WriteTxnMarkers": (ALTER, CLUSTER)}

# Error messages by type of resource. Kafka sends them only to clients of the APIs in SAYING.
SAYS: Final = {
    TOPIC: "Topic authorization failed.",
    GROUP: "Group authorization failed.",
    CLUSTER: "Cluster authorization failed.",
    TRANSACTIONAL_ID: "Transactional Id authorization failed.",
}
SAYING: Final = frozenset(
    {
        "AlterClientQuotas", "AlterConfigs", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
        "DeleteShareGroupState", "DeleteTopics", "DescribeConfigs", "DescribeProducers", "FindCoordinator",
        "IncrementalAlterConfigs", "InitializeShareGroupState", "ReadShareGroupState", "ReadShareGroupStateSummary",
        "WriteShareGroupState",
    }
)  # fmt: skip
NEEDING: Final = frozenset(
    {
        "AlterPartitionReassignments", "AlterUserScramCredentials", "CreateAcls", "DeleteAcls", "DescribeAcls",
        "ElectLeaders", "ListPartitionReassignments",
    }
)  # fmt: skip
NAMES: Final = {ALTER: "ALTER", DESCRIBE: "DESCRIBE"}

# The operation and type of the items in a request's field, by API: topics, groups, transactional ids.
ITEMS: Final[dict[str, tuple[tuple[str, ...], int, int]]] = {
    "Produce": (("topic_data",), WRITE, TOPIC),
    "ListOffsets": (("topics",), DESCRIBE, TOPIC),
    "OffsetForLeaderEpoch": (("topics",), DESCRIBE, TOPIC),
    "DescribeTopicPartitions": (("topics",), DESCRIBE, TOPIC),
    "Metadata": (("topics",), DESCRIBE, TOPIC),
    "OffsetCommit": (("topics",), READ, TOPIC),
    "TxnOffsetCommit": (("topics",), READ, TOPIC),
    "DescribeProducers": (("topics",), READ, TOPIC),
    "AlterShareGroupOffsets": (("topics",), READ, TOPIC),
    "OffsetDelete": (("topics",), READ, TOPIC),
    "DeleteShareGroupOffsets": (("topics",), READ, TOPIC),
    "DescribeShareGroupOffsets": (("groups",), DESCRIBE, GROUP),
    "DeleteRecords": (("topics",), DELETE, TOPIC),
    "DeleteTopics": (("topics", "topic_names"), DELETE, TOPIC),
    "CreateTopics": (("topics",), CREATE, TOPIC),
    "CreatePartitions": (("topics",), ALTER, TOPIC),
    "DescribeGroups": (("groups",), DESCRIBE, GROUP),
    "ConsumerGroupDescribe": (("group_ids",), DESCRIBE, GROUP),
    "ShareGroupDescribe": (("group_ids",), DESCRIBE, GROUP),
    "StreamsGroupDescribe": (("group_ids",), DESCRIBE, GROUP),
    "DeleteGroups": (("groups_names",), DELETE, GROUP),
    "OffsetFetch": (("groups",), DESCRIBE, GROUP),
    "DescribeTransactions": (("transactional_ids",), DESCRIBE, TRANSACTIONAL_ID),
    "DescribeConfigs": (("resources",), DESCRIBE_CONFIGS, TOPIC),
    "AlterConfigs": (("resources",), ALTER_CONFIGS, TOPIC),
    "IncrementalAlterConfigs": (("resources",), ALTER_CONFIGS, TOPIC),
    "FindCoordinator": (("coordinator_keys",), DESCRIBE, GROUP),
    "ListGroups": ((), DESCRIBE, GROUP),
    "ListTransactions": ((), DESCRIBE, TRANSACTIONAL_ID),
}
WHOLE_CLUSTER: Final = {"CreateTopics": CREATE, "DeleteTopics": DELETE, "ListGroups": DESCRIBE}
"""By API, the operation on the cluster that makes up for all rights to items: a client needs either."""

CONFIGS: Final = {2: TOPIC, 4: CLUSTER, 8: CLUSTER, 16: CLUSTER, 32: GROUP}
