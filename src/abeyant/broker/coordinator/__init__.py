"""What the coordinators of groups and of transactions share: their state is a topic, and partition leaders coordinate.

`topics` has the topics and maps a key to its partition, `shard` is the state in one partition of such a topic, and
`coordinator` has a broker's shards.
"""
