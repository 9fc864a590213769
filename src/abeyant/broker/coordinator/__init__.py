"""The base of the coordinators of groups and of transactions: their state is a topic, and partition leaders coordinate.

`topics` has the topics and maps a key to its partition, `shard` is the state in one partition of such a topic, `schema`
describes its records, and `coordinator` has a broker's shards.
"""
