"""Where ours differs from genuine Kafka, and why. What is not listed here has to be the same.

A key is a family and the beginning of a scenario's title.
"""

from __future__ import annotations

from .scenario import Scenario

_WHOLE_BATCHES = "Kafka cuts the last batch off where the bytes end, and consumers drop it; ours ends with a batch"
_DELAY = "rebalance delays and assignment intervals are 0 by default, so that tests need not wait"

DIFFERENCES: dict[tuple[str, str], str] = {
    ("api_versions", "every_api"): "there is no quorum, whose voters and brokers three of Kafka's APIs change",
    ("group_settings", "of_a_group ["): _DELAY,
    ("share_groups", "limits: unknown_mode"): "Kafka fails inside; ours refuses it",
    ("share_groups", "first_fetch_that_cannot_be: unknown_topic"): "Kafka fails inside; ours names the topic",
    ("streams_groups", "next_heartbeat: shuts_down"): "Kafka shows the partition counts after the next record",
    ("acl_rules", "rule_that_cannot_be: any_"): "Kafka fails inside; ours says what is wrong",
    ("acl_rules", "rule_that_cannot_be: match"): "Kafka fails inside; ours says what is wrong",
    ("transactions", "marker_is_written: of_an_older_epoch"): "Kafka fails inside; ours says what is wrong",
    ("fetch", "bytes_at_most: partition_max_of_one_batch_and_a_half"): _WHOLE_BATCHES,
    ("fetch", "bytes_at_most: max_of_one_batch_and_a_half"): _WHOLE_BATCHES,
    ("fetch", "bytes_over_two_partitions: of_one_batch"): _WHOLE_BATCHES,
    ("fetch", "isolation: unknown [Fetch v18]"): "Kafka fails inside and forgets the topics; ours names them",
    ("fetch", "as_a_follower_that_is_none"): "the error is the same; Kafka names the leader in some versions only",
    ("configs", "of_a_broker ["): _DELAY,
    ("configs", "setting_of_a_broker_that_nobody_knows"): "Kafka keeps one that nobody knows; ours refuses it",
    ("configs", "step_that_cannot_be: operation_that_does_not_exist"): "Kafka fails inside; ours says what is wrong",
    ("topics", "setting_that_cannot_be: broker_setting"): "ours also names the nearest setting that there is",
    ("frames", "frame: string_that_is_not_utf_8"): "Kafka replaces what it cannot read; for ours the frame is broken",
    ("produce", "batch_with: log_append_time_from_a_client"): "Kafka takes it and clears the mark; ours refuses it",
    (
        "produce",
        "batch_with: payload_that_is_no_record",
    ): "Kafka fails inside over a number; ours says what it is",
    ("produce", "compacted_topic_without_a_key"): "the error is the same; Kafka's words also name Java's classes",
}


def why(scenario: Scenario) -> str | None:
    """The reason for which ours may differ in a scenario; None where it may not."""
    for (family, title), reason in DIFFERENCES.items():
        if scenario.family == family and scenario.title.startswith(title):
            return reason
    return None
