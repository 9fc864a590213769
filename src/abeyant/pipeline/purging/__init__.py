"""Kafka's own purgatory, whose watch lists are purged by an estimate: for replay, and for the lab's comparisons."""
