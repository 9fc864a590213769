"""Kafka's own purgatory, which estimates when to purge its watch lists: for replay, and for the lab's comparisons."""
