"""The base of the group and transaction coordinators. Their state is a topic, and its partition leaders coordinate.

`topics` has the topics and maps a key to its partition; `shard` is the state in one partition; `schema` describes the
records; `coordinator` has a broker's shards.
"""
