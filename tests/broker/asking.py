"""A request that means something, for every API."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from abeyant.broker import Cluster
from abeyant.broker.wire.apis import Api
from broker.log.batches import batch

SECOND = timedelta(seconds=1)


def asked(api: Api, version: int, kafka: Cluster) -> dict[str, Any]:
    """A request that means something: of partition 0 of the topic that is there."""
    topic = {"name": "there", "topic": "there", "topic_name": "there", "topic_id": kafka.controller.topics["there"].id}
    rule = {
        "resource_type": 2, "resource_name": "there", "principal": "User:alice", "host": "*", "operation": 3,
        "permission_type": 3,
    }  # fmt: skip
    by_name: dict[str, dict[str, Any]] = {
        "Produce": {
            "acks": -1, "timeout": SECOND,
            "topic_data": [{**topic, "partition_data": [{"index": 0, "records": batch().data}]}],
        },
        "Fetch": {
            "max_wait": timedelta(0), "min_bytes": 1, "max_bytes": 1000, "session_epoch": -1,
            "topics": [{**topic, "partitions": [{"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}]}],
        },
        "ListOffsets": {
            "replica_id": -1, "topics": [{**topic, "partitions": [{"partition_index": 0, "timestamp": -2}]}],
        },
        "Metadata": {"topics": [{**topic, "topic_id": None}]},
        "FindCoordinator": {"key": "group", "coordinator_keys": ["group"]},
        "OffsetCommit": {
            "group_id": "committing", "member_id": "", "topics": [
                {**topic, "partitions": [{"partition_index": 0, "committed_offset": 1, "committed_metadata": None}]},
            ],
        },
        "OffsetFetch": {
            "group_id": "committing", "topics": [{**topic, "partition_indexes": [0]}],
            "groups": [{"group_id": "committing", "topics": [{**topic, "partition_indexes": [0]}]}],
        },
        "JoinGroup": {
            "group_id": f"joining-{version}", "session_timeout": 10 * SECOND, "rebalance_timeout": SECOND,
            "member_id": "", "group_instance_id": "one", "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b"topics"}],
        },
        "Heartbeat": {"group_id": "absent", "member_id": "nobody"},
        "LeaveGroup": {"group_id": "absent", "member_id": "nobody", "members": [{"member_id": "nobody"}]},
        "SyncGroup": {"group_id": "absent", "member_id": "nobody", "assignments": []},
        "DescribeGroups": {"groups": ["absent"]},
        "DeleteGroups": {"groups_names": ["absent"]},
        "OffsetDelete": {"group_id": "absent", "topics": []},
        "ConsumerGroupHeartbeat": {
            "group_id": f"consuming-{version}", "member_id": "one", "member_epoch": 0, "rebalance_timeout": SECOND,
            "subscribed_topic_names": ["there"], "topic_partitions": [],
        },
        "ConsumerGroupDescribe": {"group_ids": ["absent"]},
        "ShareGroupHeartbeat": {
            "group_id": f"sharing-{version}", "member_id": "one", "member_epoch": 0,
            "subscribed_topic_names": ["there"],
        },
        "ShareGroupDescribe": {"group_ids": ["absent"]},
        "StreamsGroupHeartbeat": {
            "group_id": "streaming", "member_id": "one", "member_epoch": 0, "rebalance_timeout": SECOND,
            "topology": {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": ["there"]}]},
            "client_tags": None, "task_offsets": None, "task_end_offsets": None,
        },
        "StreamsGroupDescribe": {"group_ids": ["absent"]},
        "DescribeShareGroupOffsets": {"groups": [{"group_id": "absent", "topics": None}]},
        "AlterShareGroupOffsets": {
            "group_id": "altered", "topics": [{**topic, "partitions": [{"partition_index": 1, "start_offset": 0}]}],
        },
        "DeleteShareGroupOffsets": {"group_id": "absent", "topics": [topic]},
        "ShareFetch": {"group_id": "sharing", "member_id": "one", "max_wait": timedelta(0), "topics": []},
        "ShareAcknowledge": {"group_id": "sharing", "member_id": "nobody", "share_session_epoch": 1},
        "InitializeShareGroupState": {"group_id": "sharing", "topics": [{**topic, "partitions": [{"partition": 0}]}]},
        "ReadShareGroupState": {"group_id": "sharing", "topics": [{**topic, "partitions": [{"partition": 1}]}]},
        "WriteShareGroupState": {"group_id": "sharing", "topics": [{**topic, "partitions": [{"partition": 1}]}]},
        "DeleteShareGroupState": {"group_id": "sharing", "topics": [{**topic, "partitions": [{"partition": 1}]}]},
        "ReadShareGroupStateSummary": {"group_id": "sharing", "topics": [{**topic, "partitions": [{"partition": 1}]}]},
        "CreateTopics": {
            "topics": [{"name": f"made-{version}", "num_partitions": 1, "replication_factor": 1}], "timeout": SECOND,
        },
        "DeleteTopics": {
            "topic_names": ["absent"], "topics": [{"name": "absent", "topic_id": None}], "timeout": SECOND,
        },
        "DeleteRecords": {
            "topics": [{**topic, "partitions": [{"partition_index": 1, "offset": 0}]}], "timeout": SECOND,
        },
        "InitProducerId": {"transactional_id": None, "transaction_timeout": SECOND},
        "AddPartitionsToTxn": {
            "v3_and_below_transactional_id": "till",
            "v3_and_below_topics": [{**topic, "partitions": [0]}],
            "transactions": [{"transactional_id": "till", "topics": [{**topic, "partitions": [0]}]}],
        },
        "AddOffsetsToTxn": {"transactional_id": "till"},
        "EndTxn": {"transactional_id": "till"},
        "TxnOffsetCommit": {
            "transactional_id": "till", "group_id": "group",
            "topics": [{**topic, "partitions": [{"partition_index": 0, "committed_offset": 0}]}],
        },
        "WriteTxnMarkers": {"markers": [{"topics": [{**topic, "partition_indexes": [0]}]}]},
        "DescribeTransactions": {"transactional_ids": ["till"]},
        "OffsetForLeaderEpoch": {"topics": [{**topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}]},
        "CreateAcls": {"creations": [rule]},
        "DeleteAcls": {"filters": [{"resource_type_filter": 2, "operation": 3, "permission_type": 3}]},
        "AlterReplicaLogDirs": {
            "dirs": [{"path": kafka.brokers[1].log_dir, "topics": [{"name": "there", "partitions": [0]}]}],
        },
        "AlterClientQuotas": {
            "entries": [
                {
                    "entity": [{"entity_type": "client-id", "entity_name": "till"}],
                    "ops": [{"key": "producer_byte_rate", "value": 1e9, "remove": False}],
                }
            ],
        },
        "DescribeClientQuotas": {"components": []},
        "AlterUserScramCredentials": {
            "deletions": [],
            "upsertions": [
                {"name": "alice", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": bytes(32)}
            ],
        },
        "DescribeUserScramCredentials": {"users": None},
        "CreateDelegationToken": {"max_lifetime": SECOND},
        "DescribeQuorum": {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]},
        "ListConfigResources": {"resource_types": []},
        "DescribeConfigs": {"resources": [{"resource_type": 2, "resource_name": "there", "configuration_keys": None}]},
        "AlterConfigs": {"resources": [{"resource_type": 2, "resource_name": "there", "configs": []}]},
        "IncrementalAlterConfigs": {"resources": [{"resource_type": 2, "resource_name": "there", "configs": []}]},
        "DescribeLogDirs": {"topics": [{"topic": "there", "partitions": [0]}]},
        "DescribeProducers": {"topics": [{"name": "there", "partition_indexes": [0]}]},
        "CreatePartitions": {"topics": [{**topic, "count": 1, "assignments": None}], "timeout": SECOND},
        "ElectLeaders": {"topic_partitions": [{**topic, "partitions": [0]}], "timeout": SECOND},
        "AlterPartitionReassignments": {
            "topics": [{**topic, "partitions": [{"partition_index": 0, "replicas": None}]}],
        },
        "DescribeTopicPartitions": {"topics": [topic]},
        "ApiVersions": {"client_software_name": "wire", "client_software_version": "1.0"},
    }  # fmt: skip
    return by_name.get(api.name, {})
