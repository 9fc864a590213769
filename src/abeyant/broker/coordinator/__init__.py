"""The base of the group, transaction and share coordinators: their state is in the partitions of an internal topic.

The leader of a partition coordinates the groups, transactional ids or share partitions whose state is in it.

`topics` defines the internal topics and maps a key to its partition; `shard` is the state in one partition; `schema`
describes the records; `coordinator` keeps a broker's shards.
"""
